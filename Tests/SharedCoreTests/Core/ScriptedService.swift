import LocalMessaging
import SharedCore
import Synchronization
import TestSupport

/// A server's messages in memory, and a service that delivers them; counts how often it was started.
final class ScriptedService: CoreService {
    /// What the server holds, shared by the services of several cores.
    final class Server: Sendable {
        struct State {
            var messages: [IncomingMessage] = []
            var invitations: [RoomInvitation] = []
            var performed: [MessageAction] = []
            var starts = 0
            var running = 0
            var most = 0
        }

        let state = Watched(State())

        func put(_ message: IncomingMessage) { state.update { $0.messages.append(message) } }
        func invite(_ invitation: RoomInvitation) { state.update { $0.invitations.append(invitation) } }
        var performed: [MessageAction] { state.value.performed }
        var starts: Int { state.value.starts }
        /// The most services that ran at the same time.
        var most: Int { state.value.most }
    }

    let server: Server
    /// What it does before it ends, for a core that takes its time.
    private let ending: @Sendable (CoreContext) async -> Void
    /// What it does before it has started.
    private let starting: @Sendable () async -> Void
    private let context = Mutex<CoreContext?>(nil)

    init(
        _ server: Server,
        ending: @escaping @Sendable (CoreContext) async -> Void = { _ in },
        starting: @escaping @Sendable () async -> Void = {}
    ) {
        self.server = server
        self.ending = ending
        self.starting = starting
    }

    func start(_ context: CoreContext) async throws {
        await starting()
        self.context.withLock { $0 = context }
        server.state.update {
            $0.starts += 1
            $0.running += 1
            $0.most = max($0.most, $0.running)
        }
    }

    func fetchPending() async throws {
        guard let context = context.withLock({ $0 }) else { return }
        while let message = server.state.value.messages.first {
            try await context.deliver(message)
            server.state.update { state in state.messages.removeAll { $0 == message } }
        }
        while let invitation = server.state.value.invitations.first {
            try await context.deliver(invitation)
            server.state.update { state in state.invitations.removeAll { $0 == invitation } }
        }
    }

    func run() async throws {
        while true {
            try await fetchPending()
            try await server.state.wait { !$0.messages.isEmpty || !$0.invitations.isEmpty }
        }
    }

    /// What the server answers to an action that it refuses.
    struct Refusal: Error {}

    func perform(_ action: MessageAction) async throws {
        if action.kind == .reply("refused") { throw Refusal() }
        if action.kind == .reply("never") { throw ActionRefusal("404 Not Found") }
        server.state.update { $0.performed.append(action) }
    }

    /// Says that a call is on, or none any more, in the core that has started it.
    func setInCall(_ isInCall: Bool) { context.withLock { $0 }?.setInCall(isInCall) }

    func stop() async {
        if let context = context.withLock({ $0 }) { await ending(context) }
        server.state.update { $0.running -= 1 }
    }
}
