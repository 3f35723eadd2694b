internal import CallBasics
package import SharedCore

/// A core's service over a mailbox.
///
/// Each operation has a connection of its own, which is made again with back-off when it ends. A message is delivered to
/// the context and then acknowledged; a delivery that has begun is finished and acknowledged, also when the task is
/// cancelled, so that the server has the receipt of all that was committed.
package actor MailboxService: CoreService {
    private let client: MailboxClient
    private let onDisconnect: @Sendable (MailboxError) -> Void
    private let pause: @Sendable (Duration) async throws -> Void
    private let now: @Sendable () -> ContinuousClock.Instant
    private var context: CoreContext?
    private var operations: [Int: Task<Void, any Error>] = [:]
    private var nextOperation = 0

    /// A service for the mailbox at `host` and `port`.
    ///
    /// - Parameters:
    ///   - host: the name or address of the mailbox.
    ///   - port: its port.
    ///   - onDisconnect: is told why there is no connection each time before one is made again.
    ///   - now: tells for how long a connection lasted.
    ///   - pause: waits for so long; throws when cancelled.
    package init(
        host: String,
        port: Int,
        onDisconnect: @escaping @Sendable (MailboxError) -> Void = { _ in },
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        client = MailboxClient(host: host, port: port)
        self.onDisconnect = onDisconnect
        self.pause = pause
        self.now = now
    }

    /// Takes the context; the operations connect.
    package func start(_ context: CoreContext) {
        self.context = context
    }

    /// Fetches until nothing more comes.
    ///
    /// The answer to a fetch says that the server has taken the acknowledgements sent before it, so the last one, which
    /// brings nothing, says that it has all of them.
    package func fetchPending() async throws {
        try await operate { context, connection, progress in
            var deliveryCount = 0
            repeat {
                deliveryCount = 0
                try await connection.sender.send(.fetch)
                while case .post(let content) = try await connection.receive() {
                    try await Self.take(content, context, connection.sender, &progress)
                    deliveryCount += 1
                }
            } while deliveryCount > 0
        }
    }

    /// Listens, and fetches what is there already.
    package func run() async throws {
        try await operate { context, connection, progress in
            try await connection.sender.send(.listen(true))
            try await connection.sender.send(.fetch)
            while true {
                guard case .post(let content) = try await connection.receive() else { continue }
                try await Self.take(content, context, connection.sender, &progress)
            }
        }
    }

    /// Checks that the mailbox can take an action, which is refused by every attempt otherwise: do it before one is queued.
    ///
    /// - Throws: `MailboxError` when it has too much text.
    package static func check(_ action: MessageAction) throws(MailboxError) {
        _ = try MailboxRequest.action(action).line()
    }

    /// Sends the action until the server has answered it.
    package func perform(_ action: MessageAction) async throws {
        try await operate { _, connection, _ in
            try await connection.sender.send(.action(action))
            while try await connection.receive() != .performed(action.id) {}
        }
    }

    /// Cancels what runs and waits for its end.
    package func stop() async {
        context = nil
        let ending = operations.values
        for operation in ending { operation.cancel() }
        // What they threw reaches who called them.
        for operation in ending { _ = await operation.result }
    }

    /// What a connection led to.
    ///
    /// The next one is made soon after one that brought something, or that lasted for the longest pause: a server that
    /// drops whoever connects is not asked as fast as one can.
    private struct Progress {
        var connectedAt: ContinuousClock.Instant?
        var hasDelivered = false
    }

    /// Runs `body` over a connection, and over the next one when it ends.
    private func operate(
        _ body: @escaping @Sendable (CoreContext, inout MailboxConnection, inout Progress) async throws -> Void
    ) async throws {
        // Stopped, or never started: there is nobody to deliver to.
        guard let context else { throw CancellationError() }
        let operation = Task { [client, onDisconnect, pause, now] in
            var backoff = Backoff()
            while true {
                var progress = Progress()
                do {
                    return try await client.withConnection { connection in
                        progress.connectedAt = now()
                        return try await body(context, &connection, &progress)
                    }
                } catch let error as MailboxError where error.isTransient {
                    try Task.checkCancellation()
                    onDisconnect(error)
                }
                let hasLasted = progress.connectedAt.map { now() - $0 >= Backoff.longest } ?? false
                if progress.hasDelivered || hasLasted { backoff.reset() }
                try await pause(backoff.next())
            }
        }
        let number = nextOperation
        nextOperation += 1
        operations[number] = operation
        defer { operations[number] = nil }
        try await withTaskCancellationHandler {
            try await operation.value
        } onCancel: {
            operation.cancel()
        }
    }

    /// Delivers, then acknowledges, whether cancelled or not.
    private static func take(
        _ content: MailboxContent,
        _ context: CoreContext,
        _ sender: MailboxSender,
        _ progress: inout Progress
    ) async throws {
        _ = try await Task {
            switch content {
            case .message(let message): try await context.deliver(message)
            case .invitation(let invitation): try await context.deliver(invitation)
            }
        }.value
        progress.hasDelivered = true
        try await Task { try await sender.send(.acknowledge(content.key)) }.value
    }
}
