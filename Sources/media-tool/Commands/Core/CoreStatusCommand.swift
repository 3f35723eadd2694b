internal import CallBasics
import ArgumentParser
internal import FoundationEssentials
import LocalMessaging
import SharedCore

/// Says what runs in a group.
struct CoreStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Says which core runs in a group, and how many messages wait.",
        discussion: """
            The state is free, main, executor or executorStopping; of `core calls` it is an executor's, and its owner's role is call. A \
            core whose process has died counts as free. Where no core has run yet nothing is made.

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
        var files = Files()
        var last: Snapshot?
        repeat {
            try files.open(in: groupOption)
            let now = try await Snapshot(files)
            if now != last { common.show(now.json, text: now.text) }
            last = now
            if follow { await Interruption.wait(for: .milliseconds(20)) }
        } while follow && !Interruption.hasCome
    }

    /// What there is of a group's files; who only asks makes none of them.
    private struct Files {
        var store: SharedStore?
        var lock: CoreLock?

        mutating func open(in option: GroupOption) throws {
            guard store == nil || lock == nil else { return }
            let group: GroupContainer
            do throws(GroupError) {
                group = try option.container(isCreated: false)
            } catch {
                guard error.code == .missing else { throw error }
                return
            }
            if store == nil, SharedStore.exists(in: group) { store = try SharedStore(group: group) }
            if lock == nil, CoreLock.exists(in: group) { lock = try CoreLock(group: group) }
        }
    }

    /// What is printed.
    private struct Snapshot: Equatable {
        let state: CoreState
        let epoch: Epoch
        let owner: OwnerRecord?
        let pending: Int
        let acknowledged: Int
        let accounts: [StoredAccount]
        let registrations: [StoredRegistration]
        let callCount: Int
        let receiptCount: Int
        let actionCount: Int
        let refusedCount: Int

        init(_ files: Files) async throws {
            let status = try await files.store?.status()
            owner = try files.lock?.owner()
            // What a killed core left in the store is no state: the lock is free.
            state = owner == nil ? .free : status?.state ?? .free
            epoch = status?.epoch ?? Epoch(rawValue: 0)
            let counts = try await files.store?.counts()
            pending = counts?.pending ?? 0
            acknowledged = counts?.acknowledged ?? 0
            accounts = try await files.store?.accounts() ?? []
            registrations = try await files.store?.registrations() ?? []
            callCount = try await files.store?.calls().count ?? 0
            receiptCount = try await files.store?.receipts().count ?? 0
            actionCount = try await files.store?.actions().count ?? 0
            refusedCount = try await files.store?.refusedActions().count ?? 0
        }

        /// How an account is registered; `expiresAt` is in seconds since 1970, UTC.
        private func json(of account: StoredAccount) -> JSONValue {
            let registration = registrations.first { $0.address == account.address }
            return [
                "account": .string(account.address), "state": .string(registration?.state ?? "none"),
                "reason": JSONValue(registration?.reason),
                "expiresAt": registration?.expiresAt.map { .integer(Int($0.timeIntervalSince1970)) } ?? .null,
                "pushServed": registration?.isPushServed.map { .bool($0) } ?? .null,
            ]
        }

        var json: JSONValue {
            [
                "state": .string(state.rawValue),
                "owner": owner.map { ["pid": .integer(Int($0.pid)), "role": .string($0.role.rawValue)] } ?? .null,
                "epoch": .integer(Int(epoch.rawValue)),
                "pending": .integer(pending),
                "acknowledged": .integer(acknowledged),
                "accounts": .array(accounts.map(json)),
                "calls": .integer(callCount),
                "receiptsPending": .integer(receiptCount),
                "actionsPending": .integer(actionCount),
                "actionsRefused": .integer(refusedCount),
            ]
        }

        var text: String {
            let holder = owner.map { " (process \($0.pid), \($0.role.rawValue): \($0.why.printable))" } ?? ""
            return "\(state.rawValue)\(holder), epoch \(epoch), "
                + "pending \(pending), acknowledged \(acknowledged)\n"
                + accounts.map { account in
                    let registration = registrations.first { $0.address == account.address }
                    let reason = registration?.reason.map { ": \($0.printable)" } ?? ""
                    return "\(account.address.printable): \(registration?.state ?? "none")\(reason)\n"
                }.joined()
        }
    }
}
