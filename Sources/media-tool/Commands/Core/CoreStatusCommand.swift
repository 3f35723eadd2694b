import ArgumentParser
import LocalMessaging
import SharedCore

/// Says what runs in a group.
struct CoreStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Says which core runs in a group, and how many messages wait.",
        discussion: """
            The state is free, main, executor or executorStopping. A core whose process has died counts as free.

            EXAMPLES
              media-tool core status --group /tmp/group
              media-tool core status --group /tmp/group --follow --json
            """
    )

    @OptionGroup var groupOption: GroupOption

    @Flag(help: "Prints a line at each change, until Ctrl-C.")
    var follow = false

    @OptionGroup var common: CommonOptions

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        if follow { StandardOutput.watch() }
        let group = try groupOption.container()
        let store = try SharedStore(group: group)
        let lock = try CoreLock(group: group)
        var last: Snapshot?
        repeat {
            let now = try await Snapshot(store, lock)
            if now != last { common.show(now.json, text: now.text) }
            last = now
            if follow { await Interruption.wait(for: .milliseconds(20)) }
        } while follow && !Interruption.hasCome
    }

    /// What is printed.
    private struct Snapshot: Equatable {
        let state: CoreState
        let epoch: Epoch
        let owner: OwnerRecord?
        let counts: MessageCounts

        init(_ store: SharedStore, _ lock: CoreLock) async throws {
            let status = try await store.status()
            owner = try lock.owner()
            // What a killed core left in the store is no state: the lock is free.
            state = owner == nil ? .free : status.state
            epoch = status.epoch
            counts = try await store.counts()
        }

        var json: JSONValue {
            [
                "state": .string(state.rawValue),
                "owner": owner.map { ["pid": .integer(Int($0.pid)), "role": .string($0.role.rawValue)] } ?? .null,
                "epoch": .integer(Int(epoch.rawValue)),
                "pending": .integer(counts.pending),
                "acknowledged": .integer(counts.acknowledged),
            ]
        }

        var text: String {
            let holder = owner.map { " (process \($0.pid), \($0.role.rawValue): \($0.why))" } ?? ""
            return "\(state.rawValue)\(holder), epoch \(epoch), "
                + "pending \(counts.pending), acknowledged \(counts.acknowledged)\n"
        }
    }
}
