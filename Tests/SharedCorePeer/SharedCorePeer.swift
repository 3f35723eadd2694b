import GRDB
import Glibc
import LocalMessaging
import Mailbox
import SharedCore

/// A process of a group that does what the tool has no command for.
///
///     SharedCorePeer settings DIR PORT            a main that sets and removes settings and accounts; "done"
///     SharedCorePeer import DIR PORT SOURCE       a main that imports `config`, `data` and `downloads` of SOURCE; "done"
///     SharedCorePeer refuse DIR PORT CALLID       a push whose message cannot be shown; "refused"
///     SharedCorePeer main DIR PORT YIELDMS        a main with that limit for an executor to give way; "running"
///     SharedCorePeer call DIR PORT                a core with a call that is over at once; "ended"
///     SharedCorePeer talk DIR PORT                a core with a call that goes on until it is killed; "talking"
///     SharedCorePeer hold DIR PORT                keeps the database locked until it is killed; "holding"
///
/// PORT is that of a mailbox on this machine.
@main enum SharedCorePeer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4, let port = Int(arguments[3]) else { exit(64) }
        let group = try GroupContainer(directory: arguments[2])
        let service = MailboxService(host: "127.0.0.1", port: port)
        switch (arguments[1], arguments.dropFirst(4).first) {
        case ("settings", nil):
            let core = try MainCore(group: group, service: service)
            let epoch = try await core.start()
            try await core.store.set("first", for: "ring", as: epoch)
            try await core.store.set("second", for: "ring", as: epoch)
            try await core.store.setAccount(StoredAccount(address: "sip:a@example.org"), as: epoch)
            try await core.store.setAccount(StoredAccount(address: "sip:b@example.org"), as: epoch)
            try await core.store.removeAccount(address: "sip:a@example.org", as: epoch)
            try await core.store.removeSetting("old", as: epoch)
            await core.stop()
            say("done")
        case ("import", let source?):
            let core = try MainCore(group: group, service: service)
            let epoch = try await core.start()
            let sources = GroupImport.Part.allCases.map { ($0, "\(source)/\($0.rawValue)") }
            _ = try await GroupImport(group: group, sources: Dictionary(uniqueKeysWithValues: sources))
                .run(store: core.store, as: epoch)
            await core.stop()
            say("done")
        case ("refuse", let callID?):
            let core = try ExecutorCore(group: group, service: service)
            do {
                try await core.notify(callID: callID) { @Sendable _, _ in throw Refusal() }
            } catch is Refusal {
                say("refused")
            }
            await core.stop()
        case ("main", let limit?):
            var configuration = CoreConfiguration()
            configuration.yieldLimit = .milliseconds(Int(limit) ?? 0)
            let core = try MainCore(group: group, service: service, configuration: configuration)
            try await core.start()
            say("running")
            if let failure = await core.failed() { throw failure }
        case ("call", nil):
            let core = try CallExecutorCore(group: group, service: ServiceInCall(service, isOver: true))
            try await core.start()
            try await core.ended()
            say("ended")
        case ("talk", nil):
            let core = try CallExecutorCore(group: group, service: ServiceInCall(service, isOver: false))
            try await core.start()
            say("talking")
            try await core.ended()
        case ("hold", nil):
            let store = try SharedStore(group: group)
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let database = try DatabaseQueue(path: store.path, configuration: configuration)
            try await database.write { db in
                try db.execute(sql: "UPDATE meta SET acknowledged = 99")
                say("holding")
                while true { pause() }
            }
        default: exit(64)
        }
    }

    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}

/// A mailbox's service that has a call from its start.
private struct ServiceInCall: CoreService {
    private let service: MailboxService
    private let isOver: Bool

    init(_ service: MailboxService, isOver: Bool) {
        (self.service, self.isOver) = (service, isOver)
    }

    func start(_ context: CoreContext) async throws {
        await service.start(context)
        context.setInCall(true)
        if isOver { context.setInCall(false) }
    }

    func fetchPending() async throws { try await service.fetchPending() }
    func run() async throws { try await service.run() }
    func perform(_ action: MessageAction) async throws { try await service.perform(action) }
    func stop() async { await service.stop() }
}

/// Why the message cannot be shown.
private struct Refusal: Error {}
