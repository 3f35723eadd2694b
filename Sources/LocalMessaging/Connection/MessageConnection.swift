import NIOCore
import Synchronization

/// One connection between two processes of a group, seen from one side.
///
/// Thread: any. Senders that outrun the peer are suspended; what arrives is handed to the side's `MessageHandlers`. A
/// connection ends once, for one reason, and everything that waits on it then fails with that reason.
public final class MessageConnection: Sendable, Identifiable {
    /// Who is at the other end.
    public let peer: PeerIdentity
    /// The types that the peer accepts.
    public let acceptedByPeer: Set<MessageType>

    let configuration: MessagingConfiguration
    let handlers: MessageHandlers
    let state: Mutex<State>
    let maximumFrameByteCount: Int
    let channel: any Channel
    let driver: NIOLoopBound<ConnectionHandler>
    /// Whether handlers run on the connection's own thread: there they begin without a switch to a task's executor.
    let servesOnEventLoop: Bool

    struct State {
        var inbox = Inbox()
        var outbox: Outbox
        var pending = PendingRequests()
        var isFlushScheduled = false
        /// After the goodbye, which is the last frame.
        var isClosing = false
        var invalidation: Invalidation?
        var whenInvalidated: [@Sendable (Invalidation) -> Void] = []
        var topics: Set<String> = []
        /// Requests of the peer that it waits for.
        var served: [UInt64: ServedRequest] = [:]
        /// Tasks that answer requests, waited for by the peer or not.
        var answeringCount = 0
        /// Waits until there are fewer of those.
        var nextToServe: CheckedContinuation<Void, Never>?

        /// Why nothing more can be sent.
        var end: Invalidation? { invalidation ?? (isClosing ? .closed : nil) }
    }

    /// How far a request of the peer has come.
    enum ServedRequest {
        case waiting
        case answering(Task<Void, Never>)
    }

    init(
        channel: any Channel,
        driver: NIOLoopBound<ConnectionHandler>,
        peer: PeerIdentity,
        introduction: Handshake.Introduction,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration
    ) {
        self.channel = channel
        self.driver = driver
        self.peer = peer
        self.handlers = handlers
        self.configuration = configuration
        acceptedByPeer = Set(introduction.accepts)
        maximumFrameByteCount = introduction.maximumFrameByteCount
        let executor = configuration.handlerExecutor as? MessagingExecutor
        servesOnEventLoop = executor?.isThread(of: channel.eventLoop) ?? false
        state = Mutex(State(outbox: Outbox(capacity: configuration.sendBufferByteCount)))
    }

    // MARK: Sending

    /// Sends a message; returns when it is on its way, which under back-pressure takes until the peer has read others.
    ///
    /// - Throws: `MessagingError`; `CancellationError` when the task is cancelled while it waits: then nothing was sent.
    public func send<Message: LocalMessage>(
        _ message: Message,
        topic: String = "",
        attachments: Attachments = .none
    ) async throws {
        try await enqueue(outgoing(message, as: .message, topic: topic, attachments: attachments))
    }

    /// Sends a request and waits for its answer.
    ///
    /// - Throws: `MessagingError`, as when no answer comes within `timeout`, or the peer's handler threw;
    ///   `CancellationError` when the task is cancelled. In both cases the peer's handler is cancelled.
    public func request<Request: LocalRequest>(
        _ request: Request,
        attachments: Attachments = .none,
        timeout: Duration = .seconds(5)
    ) async throws -> Request.Reply {
        try await exchange(request, attachments: attachments, timeout: timeout).reply
    }

    /// Sends a request and waits for its answer and what comes with it; throws as `request` does.
    public func exchange<Request: LocalRequest>(
        _ request: Request,
        attachments: Attachments = .none,
        timeout: Duration = .seconds(5)
    ) async throws -> (reply: Request.Reply, attachments: Attachments) {
        let type = Request.messageType
        let correlation = try beginRequest(timeout: timeout)
        let answer: ReceivedFrame
        do {
            let frame = try outgoing(request, as: .request, correlation: correlation, attachments: attachments)
            answer = try await self.answer(to: frame, correlation, timeout: timeout)
        } catch {
            state.withLock { $0.pending.remove(correlation) }
            throw error
        }
        do throws(MessageCoding.Failure) {
            let bounds = MessageBounds(configuration)
            let reply = try MessageCoding.decode(Request.Reply.self, from: answer.frame.payload, within: bounds)
            return (reply, try self.attachments(of: answer))
        } catch {
            throw MessagingError.coding(type, error.description)
        }
    }

    // MARK: The end

    /// Why the connection is over; nil while it is not.
    public var invalidation: Invalidation? { state.withLock { $0.invalidation } }

    /// Calls `handler` once, when the connection is over; at once when it is.
    ///
    /// Thread: `handler` runs on the thread that serves all connections, and must not wait there.
    public func onInvalidation(_ handler: @escaping @Sendable (Invalidation) -> Void) {
        let reason = state.withLock { state in
            if state.invalidation == nil { state.whenInvalidated.append(handler) }
            return state.invalidation
        }
        if let reason { handler(reason) }
    }

    /// Waits for the end of the connection.
    public func invalidated() async -> Invalidation {
        await withCheckedContinuation { continuation in onInvalidation { continuation.resume(returning: $0) } }
    }

    /// Ends the connection after what was sent before is written; when the peer does not take that, the reason is
    /// `stalled`.
    public func close() async {
        channel.eventLoop.execute { [driver] in driver.value.closeInOrder() }
        _ = await invalidated()
    }
}

// MARK: - The end, from the event loop

extension MessageConnection {
    /// Marks the connection as over, once, and fails everything that waits on it.
    func ended(_ reason: Invalidation) {
        let error = MessagingError.invalidated(reason)
        let ended = state.withLock { state -> State? in
            guard state.invalidation == nil else { return nil }
            let before = state
            state.invalidation = reason
            state.outbox = Outbox(capacity: 0)
            state.served = [:]
            state.whenInvalidated = []
            return before
        }
        guard let ended else { return }
        for sender in ended.outbox.waiters { sender.continuation.resume(throwing: error) }
        for correlation in ended.pending.correlations { end(correlation, with: .failure(error)) }
        for case .answering(let task) in ended.served.values { task.cancel() }
        for handler in ended.whenInvalidated { handler(reason) }
    }
}

// MARK: - What a server asks of a client's connection

extension MessageConnection {
    /// Whether the client wants messages of a topic; "*" stands for all.
    func isSubscribed(to topic: String) -> Bool {
        state.withLock { $0.topics.contains(topic) || $0.topics.contains(Self.everyTopic) }
    }

    /// The topic that stands for every topic.
    public static let everyTopic = "*"

    /// Whether the frame is not too large for the peer.
    func takes(_ frame: OutgoingFrame) -> Bool { frame.byteCount - 4 <= maximumFrameByteCount }
}
