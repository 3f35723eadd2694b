import NIOCore
import Synchronization

/// Connected to a server of a group; to its successor, too, when that is asked for.
///
/// Losing a connection is an interruption when there is a `Reconnection`: what waits for answers fails, and once the
/// server is back the client is connected to it and subscribed as before. Without one, and when the server refuses, it
/// is the end of the client.
///
/// Thread: any.
public final class MessageClient: Sendable {
    /// What happened to the client's connection.
    public enum Change: Sendable {
        /// It is lost; the client tries to connect again.
        case interrupted(Invalidation)
        /// It is made again.
        case reconnected(MessageConnection)
        /// It is over for good.
        case invalidated(Invalidation)
    }

    private struct State {
        var connection: MessageConnection?
        var end: Invalidation?
        var topics: Set<String> = []
        var isClosing = false
        var waiters: [CheckedContinuation<Invalidation, Never>] = []
        var reconnecting: Task<Void, Never>?
        /// When `connection` was made.
        var connectedAt = NIODeadline.distantPast
        /// Tries to connect again since a connection lasted.
        var attempts = 0
        /// Changes in their order; whoever adds one tells of it, unless somebody does already.
        var untold: [Change] = []
        var isTelling = false
        var isEndTold = false
    }

    private let name: String
    private let transport: any MessageTransport
    private let handlers: MessageHandlers
    private let configuration: MessagingConfiguration
    private let reconnection: Reconnection?
    private let changed: (@Sendable (Change) -> Void)?
    private let state = Mutex(State())

    /// Connects to the server called `name`.
    ///
    /// - Parameters:
    ///   - name: The server's name.
    ///   - group: The server's group.
    ///   - handlers: The messages that are accepted of the server.
    ///   - configuration: Bounds of the connection.
    ///   - limit: How long a server that is not there yet is waited for; nil fails at once.
    ///   - reconnection: When to connect again; nil never does.
    ///   - changed: Told of each interruption, and once of the end, which is the last; one call ends before the next
    ///     begins, and it must not wait.
    /// - Returns: The client, connected.
    /// - Throws: `Invalidation`, as when there is no server or it refuses; `GroupError` when it is no name.
    public static func connect(
        to name: String,
        in group: GroupContainer,
        handlers: MessageHandlers = MessageHandlers(),
        configuration: MessagingConfiguration = MessagingConfiguration(),
        waitingForServer limit: Duration? = nil,
        reconnection: Reconnection? = nil,
        changed: (@Sendable (Change) -> Void)? = nil
    ) async throws -> MessageClient {
        try await connect(
            to: name,
            over: SocketTransport(group: group),
            handlers: handlers,
            configuration: configuration,
            waitingForServer: limit,
            reconnection: reconnection,
            changed: changed
        )
    }

    package static func connect(
        to name: String,
        over transport: any MessageTransport,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration,
        waitingForServer limit: Duration?,
        reconnection: Reconnection?,
        changed: (@Sendable (Change) -> Void)?
    ) async throws -> MessageClient {
        let client = MessageClient(
            name: name,
            transport: transport,
            handlers: handlers,
            configuration: configuration,
            reconnection: reconnection,
            changed: changed
        )
        let deadline = limit.map { transport.eventLoop.now + TimeAmount($0) }
        try await client.use(client.waitForServer(until: deadline))
        return client
    }

    private init(
        name: String,
        transport: any MessageTransport,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration,
        reconnection: Reconnection?,
        changed: (@Sendable (Change) -> Void)?
    ) {
        self.name = name
        self.transport = transport
        self.handlers = handlers
        self.configuration = configuration
        self.reconnection = reconnection
        self.changed = changed
    }

    // MARK: Use

    /// Who serves; nil while the connection is interrupted or over.
    public var server: PeerIdentity? { state.withLock { $0.connection?.peer } }

    /// Sends a message; see `MessageConnection.send`.
    public func send<Message: LocalMessage>(
        _ message: Message,
        topic: String = "",
        attachments: Attachments = .none
    ) async throws {
        try await connection().send(message, topic: topic, attachments: attachments)
    }

    /// Sends a request and waits for its answer; see `MessageConnection.request`.
    public func request<Request: LocalRequest>(
        _ request: Request,
        attachments: Attachments = .none,
        timeout: Duration = .seconds(5)
    ) async throws -> Request.Reply {
        try await connection().request(request, attachments: attachments, timeout: timeout)
    }

    /// Sends a request and waits for its answer and what comes with it; see `MessageConnection.exchange`.
    public func exchange<Request: LocalRequest>(
        _ request: Request,
        attachments: Attachments = .none,
        timeout: Duration = .seconds(5)
    ) async throws -> (reply: Request.Reply, attachments: Attachments) {
        try await connection().exchange(request, attachments: attachments, timeout: timeout)
    }

    /// Has messages of a topic sent to this client, on this connection and on those that follow it.
    ///
    /// - Throws: `MessagingError` when the client is over, or the topic has more than 255 bytes.
    public func subscribe(to topic: String) throws {
        guard topic.utf8.count <= UInt8.max else {
            throw MessagingError.topicTooLong(byteCount: topic.utf8.count)
        }
        let end = state.withLock { state in
            state.topics.insert(topic)
            // Under the lock, here and below: frames go out in the order in which `topics` changed.
            state.connection?.enqueueControl(Frame(.subscribe, topic: topic))
            return state.end
        }
        if let end { throw MessagingError.invalidated(end) }
    }

    /// Ends a subscription; without one nothing happens.
    public func unsubscribe(from topic: String) {
        state.withLock { state in
            guard state.topics.remove(topic) != nil else { return }
            state.connection?.enqueueControl(Frame(.unsubscribe, topic: topic))
        }
    }

    /// Waits for the end of the client.
    public func invalidated() async -> Invalidation {
        await withCheckedContinuation { continuation in
            let end = state.withLock { state in
                if !state.isEndTold { state.waiters.append(continuation) }
                return state.isEndTold ? state.end : nil
            }
            if let end { continuation.resume(returning: end) }
        }
    }

    /// Ends the client after what was sent before is written; when the server does not take that, the reason is `stalled`.
    public func close() async {
        let (connection, reconnecting) = state.withLock { state in
            state.isClosing = true
            return (state.connection, state.reconnecting)
        }
        reconnecting?.cancel()
        await connection?.close()
        finish(.closed)
        // Another thread may be about to tell of it.
        _ = await invalidated()
    }

    // MARK: Connecting

    private func connection() throws(MessagingError) -> MessageConnection {
        let (connection, end) = state.withLock { ($0.connection, $0.end) }
        guard let connection else { throw .invalidated(end ?? .noServer(name)) }
        return connection
    }

    /// Connects once.
    private func connectOnce() async throws -> MessageConnection {
        let (transport, handlers, configuration, name) = (transport, handlers, configuration, name)
        let promised = Mutex<EventLoopFuture<MessageConnection>?>(nil)
        _ = try await transport.connect(to: name) { channel in
            channel.eventLoop.makeCompletedFuture {
                let established = channel.eventLoop.makePromise(of: MessageConnection.self)
                promised.withLock { $0 = established.futureResult }
                try channel.pipeline.syncOperations.addHandler(
                    ConnectionHandler(
                        role: .client(serverName: name),
                        transport: transport,
                        handlers: handlers,
                        configuration: configuration,
                        established: established
                    )
                )
            }
        }
        guard let future = promised.withLock({ $0 }) else { throw Invalidation.noServer(name) }
        return try await future.get()
    }

    /// Connects as soon as there is a server; once only without a deadline.
    private func waitForServer(until deadline: NIODeadline?) async throws -> MessageConnection {
        let pauses = reconnection ?? .backingOff
        var attempt = 0
        while true {
            do {
                return try await connectOnce()
            } catch let reason as Invalidation {
                guard reason.mayPass, let deadline, transport.eventLoop.now < deadline else { throw reason }
                try await pause(pauses.delay(before: attempt), until: deadline)
                attempt += 1
            }
        }
    }

    /// Takes a new connection into use; false when the client was closed meanwhile.
    @discardableResult
    private func use(_ connection: MessageConnection, isSuccessor: Bool = false) -> Bool {
        let isUsed = state.withLock { state in
            guard !state.isClosing else { return false }
            if isSuccessor { state.untold.append(.reconnected(connection)) }
            state.connection = connection
            state.connectedAt = transport.eventLoop.now
            for topic in state.topics { connection.enqueueControl(Frame(.subscribe, topic: topic)) }
            return true
        }
        guard isUsed else { return false }
        tellChanges()
        connection.onInvalidation { [weak self] reason in self?.lost(reason) }
        return true
    }

    private func lost(_ reason: Invalidation) {
        let isFinal = state.withLock { state -> Bool in
            state.connection = nil
            if let reconnection, transport.eventLoop.now - state.connectedAt >= TimeAmount(reconnection.maximumDelay) {
                state.attempts = 0
            }
            guard !state.isClosing, state.end == nil, reconnection != nil, reason.mayPass else { return true }
            state.untold.append(.interrupted(reason))
            return false
        }
        guard !isFinal, let reconnection else { return finish(reason) }
        tellChanges()
        state.withLock { state in
            if !state.isClosing { state.reconnecting = Task { await self.reconnect(reconnection) } }
        }
    }

    private func reconnect(_ pauses: Reconnection) async {
        do {
            let connection = try await successor(pauses)
            if !use(connection, isSuccessor: true) { await connection.close() }
        } catch let reason as Invalidation {
            finish(reason)
        } catch is CancellationError {
            finish(.closed)
        } catch {
            finish(.system("\(error)"))
        }
    }

    /// Connects as soon as there is a server again.
    ///
    /// A connection alone is no success: one that is lost right away counts as a try that failed, or a server that drops
    /// its clients would be connected to as fast as the processor allows.
    private func successor(_ pauses: Reconnection) async throws -> MessageConnection {
        while true {
            let attempt = state.withLock { state in
                state.attempts += 1
                return state.attempts - 1
            }
            if attempt > 0 { try await pause(pauses.delay(before: attempt - 1), until: .distantFuture) }
            do {
                return try await connectOnce()
            } catch let reason as Invalidation where reason.mayPass {
                continue
            }
        }
    }

    private func pause(_ duration: Duration, until deadline: NIODeadline) async throws {
        try await transport.eventLoop.sleep(until: min(transport.eventLoop.now + TimeAmount(duration), deadline))
    }

    private func finish(_ reason: Invalidation) {
        state.withLock { state in
            guard state.end == nil else { return }
            state.end = reason
            state.untold.append(.invalidated(reason))
        }
        tellChanges()
    }

    /// Tells of what has changed, one after the other and in its order, unless another thread does.
    private func tellChanges() {
        let isFirst = state.withLock { state in
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard isFirst else { return }
        while let change = nextChange() {
            changed?(change)
            guard case .invalidated(let reason) = change else { continue }
            // Whoever waited for the end finds it told.
            let waiters = state.withLock { state in
                state.isEndTold = true
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in waiters { waiter.resume(returning: reason) }
        }
    }

    /// The next change to be told; after the last one another thread may tell.
    private func nextChange() -> Change? {
        state.withLock { state in
            guard !state.untold.isEmpty else {
                state.isTelling = false
                return nil
            }
            return state.untold.removeFirst()
        }
    }
}

extension EventLoop {
    fileprivate func sleep(until deadline: NIODeadline) async throws {
        let timer = scheduleTask(deadline: deadline) {}
        try await withTaskCancellationHandler {
            do {
                try await timer.futureResult.get()
            } catch {
                throw CancellationError()
            }
        } onCancel: {
            timer.cancel()
        }
    }
}

extension Invalidation {
    /// Whether the next server of that name may do better.
    fileprivate var mayPass: Bool {
        switch self {
        case .closedByPeer, .peerDied, .stalled, .handshakeTimedOut, .noServer: true
        case .closed, .refused, .incompatible, .violation, .system: false
        }
    }
}
