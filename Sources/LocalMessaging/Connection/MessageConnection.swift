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
    private let maximumFrameByteCount: Int
    private let channel: any Channel
    private let driver: NIOLoopBound<ConnectionHandler>
    /// Whether handlers run on the connection's own thread: there they begin without a switch to a task's executor.
    private let servesOnEventLoop: Bool

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
        let correlation = state.withLock { $0.pending.nextCorrelation() }
        let frame = try outgoing(.message, Message.messageType, correlation, message, topic: topic, attachments)
        try await enqueue(frame)
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
            let frame = try outgoing(.request, type, correlation, request, topic: "", attachments)
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

    /// Ends the connection after what was sent before is written.
    public func close() async {
        channel.eventLoop.execute { [driver] in driver.value.closeInOrder() }
        _ = await invalidated()
    }

    /// Ends the connection at once, for a reason that its handlers hear.
    func invalidate(_ reason: Invalidation) {
        channel.eventLoop.execute { [driver] in driver.value.end(reason) }
    }
}

// MARK: - How a frame goes out

extension MessageConnection {
    /// The frame of a message, whose type the peer accepts and whose size it takes.
    func outgoing(
        _ kind: Frame.Kind,
        _ type: MessageType,
        _ correlation: UInt64,
        _ message: some Encodable,
        topic: String,
        _ attachments: Attachments
    ) throws(MessagingError) -> OutgoingFrame {
        guard acceptedByPeer.contains(type) else {
            let versions = acceptedByPeer.filter { $0.name == type.name }.map(\.version).sorted()
            throw .notAccepted(type, accepted: versions)
        }
        return try checked(coded(kind, type, correlation, message, topic: topic, attachments))
    }

    /// The frame of a message, whether the peer takes it or not.
    func coded(
        _ kind: Frame.Kind,
        _ type: MessageType,
        _ correlation: UInt64,
        _ message: some Encodable,
        topic: String,
        _ attachments: Attachments
    ) throws(MessagingError) -> OutgoingFrame {
        let payload: ByteBuffer
        do throws(MessageCoding.Failure) {
            payload = try MessageCoding.encode(message)
        } catch {
            throw .coding(type, error.description)
        }
        let frame = Frame(kind, correlation: correlation, type: type, topic: topic, payload: payload)
        return try OutgoingFrame(frame, attachments, configuration, allocator: channel.allocator)
    }

    private func checked(_ frame: OutgoingFrame) throws(MessagingError) -> OutgoingFrame {
        guard takes(frame) else { throw .tooLarge(byteCount: frame.byteCount - 4, limit: maximumFrameByteCount) }
        return frame
    }

    /// Puts a frame on its way, after a wait while there is no room; `id` is the request's when it is one.
    ///
    /// With `isPrompt` it is written at once where that can be: somebody waits for it. Otherwise frames that are sent one
    /// after the other are written together.
    func enqueue(_ frame: OutgoingFrame, as id: UInt64? = nil, isPrompt: Bool = false) async throws {
        guard try !admit(frame, isPrompt: isPrompt) else { return }
        let id = id ?? state.withLock { $0.pending.nextCorrelation() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Outbox.Waiter(id: id, frame: frame, continuation: continuation)
                let (refusal, admitted, mustFlush) = state.withLock { state -> ((any Error)?, [Outbox.Waiter], Bool) in
                    if let reason = state.end { return (MessagingError.invalidated(reason), [], false) }
                    if Task.isCancelled { return (CancellationError(), [], false) }
                    // Its time may have run out while it was encoded; nobody would look at it again.
                    if let failure = state.pending.failure(of: id) { return (failure, [], false) }
                    state.outbox.wait(waiter)
                    // Room may have come before the wait began; and a flush looks at the time that requests have.
                    return (nil, state.outbox.written(0), state.scheduleFlush())
                }
                if let refusal { continuation.resume(throwing: refusal) }
                for waiter in admitted { waiter.continuation.resume() }
                if mustFlush { flush() }
            }
        } onCancel: {
            stopWaiting(id, for: CancellationError())
        }
    }

    /// Takes a frame back that still waits for room; false when it does not.
    @discardableResult
    private func stopWaiting(_ id: UInt64, for reason: any Error) -> Bool {
        let waiter = state.withLock { $0.outbox.removeWaiter(id) }
        waiter?.continuation.resume(throwing: reason)
        return waiter != nil
    }

    /// Puts a frame on its way when there is room; false when there is none.
    func admit(_ frame: OutgoingFrame, isPrompt: Bool = false) throws(MessagingError) -> Bool {
        let (reason, isAdmitted, mustFlush) = state.withLock { state -> (Invalidation?, Bool, Bool) in
            if let reason = state.end { return (reason, false, false) }
            guard state.outbox.hasRoom else { return (nil, false, false) }
            state.outbox.append(frame)
            return (nil, true, state.scheduleFlush())
        }
        if let reason { throw .invalidated(reason) }
        if mustFlush { flush(isPrompt: isPrompt) }
        return isAdmitted
    }

    /// Puts one of the protocol's own frames on its way, whatever the room.
    func enqueueControl(_ frame: Frame) {
        let frame = plain(frame)
        let mustFlush = state.withLock { state in
            guard state.end == nil else { return false }
            state.outbox.append(frame)
            return state.scheduleFlush()
        }
        if mustFlush { flush() }
    }

    /// Puts the goodbye on its way, and lets nobody send any more.
    func sayGoodbye() {
        let goodbye = plain(Frame(.goodbye))
        let waiters = state.withLock { state in
            state.isClosing = true
            state.outbox.append(goodbye)
            return state.outbox.takeWaiters()
        }
        for waiter in waiters { waiter.continuation.resume(throwing: MessagingError.invalidated(.closed)) }
    }

    private func plain(_ frame: Frame) -> OutgoingFrame {
        OutgoingFrame(header: frame.serialized(with: channel.allocator), blob: ByteBuffer(), files: [])
    }

    /// Counts bytes as written, and lets in whom that made room for.
    func written(_ count: Int) {
        let (admitted, mustFlush) = state.withLock { state in
            let admitted = state.outbox.written(count)
            return (admitted, !admitted.isEmpty && state.scheduleFlush())
        }
        for waiter in admitted { waiter.continuation.resume() }
        if mustFlush { flush() }
    }

    private func flush(isPrompt: Bool = false) {
        if isPrompt, channel.eventLoop.inEventLoop { return driver.value.flushPromptly() }
        channel.eventLoop.execute { [driver] in driver.value.flushOutbox() }
    }
}

extension MessageConnection.State {
    /// Whether somebody must ask for a flush: one that was asked for takes all frames with it.
    mutating func scheduleFlush() -> Bool {
        defer { isFlushScheduled = true }
        return !isFlushScheduled
    }
}

extension OutgoingFrame {
    /// A frame with its attachments: blobs that are large, or memory already, become its first descriptor.
    init(
        _ frame: Frame,
        _ attachments: Attachments,
        _ configuration: MessagingConfiguration,
        allocator: ByteBufferAllocator
    ) throws(MessagingError) {
        var frame = frame
        guard frame.topic.utf8.count <= UInt8.max else {
            throw .attachments("a topic of \(frame.topic.utf8.count) bytes; 255 are the most.")
        }
        var files = attachments.files
        switch attachments.blob?.storage {
        case .buffer(let bytes) where bytes.readableBytes < configuration.sealedBlobByteCount: frame.blob = bytes
        case nil: break
        default:
            do {
                if let memory = try attachments.blob?.sealed() { files.insert(memory.file, at: 0) }
                frame.hasSealedBlob = true
            } catch {
                throw error as? MessagingError ?? .attachments("\(error)")
            }
        }
        guard files.count <= Attachments.maximumFileCount else {
            throw .attachments("\(files.count) descriptors; \(Attachments.maximumFileCount) are the most.")
        }
        frame.fileCount = files.count
        self.files = files
        header = frame.serialized(with: allocator)
        blob = frame.blob
    }
}

// MARK: - Answers

extension MessageConnection {
    /// Gives a request its number, and room among those that wait for their answers.
    private func beginRequest(timeout: Duration) throws(MessagingError) -> UInt64 {
        let deadline = channel.eventLoop.now + TimeAmount(timeout)
        let limit = configuration.maximumPendingRequests
        return try state.withLock { state throws(MessagingError) in
            guard state.pending.count < limit else { throw .tooManyRequests(limit: limit) }
            return state.pending.add(deadline: deadline, timeout: timeout)
        }
    }

    private func answer(
        to frame: OutgoingFrame,
        _ correlation: UInt64,
        timeout: Duration
    ) async throws -> ReceivedFrame {
        try await enqueue(frame, as: correlation, isPrompt: true)
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let ended = state.withLock { $0.pending.wait(for: correlation, continuation) }
                    if let ended { continuation.resume(with: ended) }
                }
            } onCancel: {
                end(correlation, with: .failure(CancellationError()))
            }
        } catch  where error is CancellationError || error as? MessagingError == .timedOut(timeout) {
            enqueueControl(Frame(.cancel, correlation: correlation))
            throw error
        }
    }

    func end(_ correlation: UInt64, with result: Result<ReceivedFrame, any Error>) {
        let continuation = state.withLock { $0.pending.end(correlation, with: result) }
        continuation?.resume(with: result)
    }

    /// Ends the requests that waited too long.
    func endLateRequests(at now: NIODeadline) {
        for (correlation, timeout) in state.withLock({ $0.pending.takeDue(at: now) }) {
            let error = MessagingError.timedOut(timeout)
            if !stopWaiting(correlation, for: error) { end(correlation, with: .failure(error)) }
        }
    }

    /// Takes the other side's word on a frame of this one.
    func failed(_ frame: Frame) {
        let bounds = MessageBounds(configuration)
        let failure =
            (try? MessageCoding.decode(RemoteFailure.self, from: frame.payload, within: bounds))
            ?? RemoteFailure(.handlerFailed, "The peer failed without saying why.")
        if state.withLock({ $0.pending.isKnown(frame.correlation) }) {
            end(frame.correlation, with: .failure(MessagingError.failed(failure)))
        } else if let type = frame.type {
            handlers.failed?(failure, type, self)
        }
    }
}

// MARK: - What was received

extension MessageConnection {
    /// Takes a message or request for its handler; answers the cost of all that wait.
    ///
    /// Thread: the channel's event loop.
    func receive(_ received: ReceivedFrame) -> Int {
        let isRequest = received.frame.kind == .request
        let (isNext, mustServe, cost) = state.withLock { state in
            if servesOnEventLoop, isRequest, state.inbox.isIdle, state.answeringCount < maximumAnswering {
                return (true, false, 0)
            }
            return (false, state.inbox.append(received), state.inbox.cost)
        }
        if isNext {
            answer(received)
        } else if mustServe, servesOnEventLoop {
            Task.immediate(executorPreference: configuration.handlerExecutor) { await self.serveInbox() }
        } else if mustServe {
            Task(executorPreference: configuration.handlerExecutor) { await self.serveInbox() }
        }
        return cost
    }

    private var maximumAnswering: Int { configuration.maximumConcurrentRequests }

    /// Runs the handlers of what has arrived: those of messages one after the other, those of requests side by side.
    private func serveInbox() async {
        let half = configuration.receiveBufferByteCount / 2
        while let received = state.withLock({ $0.inbox.takeFirst() }) {
            if received.frame.kind == .request {
                await roomToAnswer()
                answer(received)
            } else {
                await serve(received)
            }
            if state.withLock({ $0.inbox.handled(received, below: half) }) {
                channel.eventLoop.execute { [driver] in driver.value.resumeReading() }
            }
        }
    }

    private func serve(_ received: ReceivedFrame) async {
        do throws(RemoteFailure) {
            let (entry, context) = try handler(of: received)
            guard case .message(let perform) = entry else { throw RemoteFailure(notTaken: received.frame) }
            do {
                try await perform(received.frame.payload, MessageBounds(configuration), context)
            } catch {
                throw RemoteFailure(describing: error)
            }
        } catch {
            await fail(received.frame, error)
        }
    }

    /// What is to be done with a frame, and what is told beside its message.
    private func handler(
        of received: ReceivedFrame
    ) throws(RemoteFailure) -> (entry: MessageHandlers.Entry, context: MessageContext) {
        let frame = received.frame
        guard let type = frame.type, let entry = handlers.entry(for: type) else {
            throw RemoteFailure(.unknownType, "No handler for \(frame.type?.description ?? "a message without type").")
        }
        do throws(MessageCoding.Failure) {
            let attachments = try attachments(of: received)
            return (entry, MessageContext(connection: self, topic: frame.topic, attachments: attachments))
        } catch {
            throw RemoteFailure(.undecodable, error.description)
        }
    }

    /// Waits until fewer requests than the most are being answered.
    private func roomToAnswer() async {
        await withCheckedContinuation { continuation in
            let isNext = state.withLock { state in
                guard state.answeringCount >= maximumAnswering else { return true }
                state.nextToServe = continuation
                return false
            }
            if isNext { continuation.resume() }
        }
    }

    /// Begins to answer a request that the peer still waits for.
    private func answer(_ received: ReceivedFrame) {
        let correlation = received.frame.correlation
        let isWaitedFor = state.withLock { state in
            guard state.served[correlation] != nil else { return false }
            state.answeringCount += 1
            return true
        }
        guard isWaitedFor else { return }
        let answering = Task.immediate(executorPreference: configuration.handlerExecutor) {
            await self.reply(to: received)
        }
        let isStillWaitedFor = state.withLock { state in
            guard state.served[correlation] != nil else { return false }
            state.served[correlation] = .answering(answering)
            return true
        }
        // It has ended meanwhile, or the peer does not wait any more.
        if !isStillWaitedFor { answering.cancel() }
    }

    private func reply(to received: ReceivedFrame) async {
        let frame = received.frame
        do {
            let (entry, context) = try handler(of: received)
            guard case .request(let answer) = entry else { throw RemoteFailure(notTaken: frame) }
            let (payload, attachments) = try await answer(frame.payload, MessageBounds(configuration), context)
            let reply = Frame(.reply, correlation: frame.correlation, payload: payload)
            let outgoing = try OutgoingFrame(reply, attachments, configuration, allocator: channel.allocator)
            try await enqueue(checked(outgoing), isPrompt: true)
        } catch {
            await fail(frame, RemoteFailure(describing: error))
        }
        let next = state.withLock { state in
            state.served[frame.correlation] = nil
            state.answeringCount -= 1
            return state.nextToServe.take()
        }
        next?.resume()
    }

    /// Tells the sender of a frame why it was not taken; waits for room as any sender does.
    private func fail(_ frame: Frame, _ failure: RemoteFailure) async {
        guard let payload = try? MessageCoding.encode(failure.shortened) else { return }
        // A connection that is over has told its end already.
        try? await enqueue(plain(Frame(.failure, correlation: frame.correlation, type: frame.type, payload: payload)))
    }

    /// Takes note of a request that arrived; false when one with its number is waited for already.
    func begin(_ correlation: UInt64) -> Bool {
        state.withLock { state in
            // The task that answers the first one must stay known: the end of the connection cancels it.
            guard state.served[correlation] == nil else { return false }
            state.served[correlation] = .waiting
            return true
        }
    }

    /// The peer does not wait for the answer any more.
    func cancelServing(_ correlation: UInt64) {
        let request = state.withLock { $0.served.removeValue(forKey: correlation) }
        if case .answering(let task) = request { task.cancel() }
    }

    func attachments(of received: ReceivedFrame) throws(MessageCoding.Failure) -> Attachments {
        guard received.frame.hasSealedBlob, let first = received.files.first else {
            let blob = received.frame.blob
            return Attachments(blob: blob.readableBytes > 0 ? Blob(blob) : nil, files: received.files)
        }
        do throws(MessagingError) {
            let memory = try SealedMemory(mapping: first, maximumByteCount: configuration.maximumBlobByteCount)
            return Attachments(blob: Blob(memory), files: Array(received.files.dropFirst()))
        } catch {
            throw MessageCoding.Failure(error.description)
        }
    }
}

extension RemoteFailure {
    /// What a handler threw.
    init(describing error: any Error) {
        self = error as? RemoteFailure ?? RemoteFailure(.handlerFailed, "\(error)")
    }

    /// The type is known, and is not what the frame says it is.
    init(notTaken frame: Frame) {
        let type = frame.type?.description ?? "A message without type"
        self.init(.unknownType, "\(type) is not accepted as a \(frame.kind).")
    }

    /// With as much of the message as fits any frame.
    var shortened: RemoteFailure { RemoteFailure(code, String(message.prefix(512))) }
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
