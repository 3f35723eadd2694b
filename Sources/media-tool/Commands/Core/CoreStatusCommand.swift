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
        var store: SharedStore?
        var last: Snapshot?
        repeat {
            if store == nil { store = try openStore() }
            let now = try await Snapshot(store)
            if now != last { common.show(now.json, text: now.text) }
            last = now
            if follow { await Interruption.wait(for: .milliseconds(20)) }
        } while follow && !Interruption.hasCome
    }

    /// The store of the group, if there is one; who only asks makes none.
    private func openStore() throws -> SharedStore? {
        let group: GroupContainer
        do throws(GroupError) {
            group = try groupOption.container(isCreated: false)
        } catch {
            guard error.code == .missing else { throw error }
            return nil
        }
        return SharedStore.exists(in: group) ? try SharedStore(group: group) : nil
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

        init(_ store: SharedStore?) async throws {
            let status = try await store?.status()
            (owner, state) = (status?.owner, status?.state ?? .free)
            epoch = status?.epoch ?? Epoch(rawValue: 0)
            let counts = try await store?.counts()
            pending = counts?.pending ?? 0
            acknowledged = counts?.acknowledged ?? 0
            accounts = try await store?.accounts() ?? []
            registrations = try await store?.registrations() ?? []
            callCount = try await store?.calls().count ?? 0
            receiptCount = try await store?.receipts().count ?? 0
            actionCount = try await store?.actions().count ?? 0
            refusedCount = try await store?.refusedActions().count ?? 0
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
