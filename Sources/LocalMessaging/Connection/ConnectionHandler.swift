import Glibc
import NIOCore
import Synchronization

/// The event loop's half of a connection: the stream's bytes, who the peer is, descriptors, and what takes too long.
///
/// Thread: the channel's event loop.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How this side came to the connection.
    enum Role: Sendable {
        case client(serverName: String)
        /// Decides on a client, and is told of its connection.
        case server(shouldAccept: @Sendable (PeerIdentity) async -> String?)
    }

    /// Descriptors that the peer had no room for are tried again after this.
    private static var attachmentRetry: TimeAmount { .milliseconds(1) }

    private let role: Role
    private let transport: any MessageTransport
    private let handlers: MessageHandlers
    private let configuration: MessagingConfiguration
    private var established: EventLoopPromise<MessageConnection>?
    private let acceptAttachments: @Sendable () -> Void
    /// Nil where time is the tests'.
    private let polling: BusyPolling?

    private var context: ChannelHandlerContext?
    private var parser: FrameParser
    private var peer: PeerIdentity?
    private var introduction: Handshake.Introduction?
    private var isAccepted: Bool
    private var connection: MessageConnection?
    private var isOver = false
    private var handshakeTimer: Scheduled<Void>?
    private var requestTimer: (deadline: NIODeadline, scheduled: Scheduled<Void>)?

    /// What a client must say on its connection for descriptors.
    let token: [UInt8]
    private var attachments: AttachmentSocket?
    private var hasAskedForAttachments = false
    private var passedCount: UInt64 = 0
    private var receivedCount: UInt64 = 0

    /// Frames out of the outbox that wait for their descriptors to be passed.
    private var backlog: [OutgoingFrame] = []
    private var unwrittenByteCount = 0
    private var lastProgress = NIODeadline.distantPast
    private var stallTimer: Scheduled<Void>?
    private var isClosing = false
    private var isRetryScheduled = false

    private var isReadingPaused = false
    private var isAtEnd = false
    private var isReadPending = false

    init(
        role: Role,
        transport: any MessageTransport,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration,
        established: EventLoopPromise<MessageConnection>,
        acceptAttachments: @escaping @Sendable () -> Void = {}
    ) {
        self.role = role
        self.transport = transport
        self.handlers = handlers
        self.configuration = configuration
        self.established = established
        self.acceptAttachments = acceptAttachments
        polling = transport is SocketTransport ? SocketTransport.polling : nil
        parser = FrameParser(maximumByteCount: configuration.maximumFrameByteCount)
        switch role {
        case .client: (isAccepted, token) = (true, [])
        case .server:
            isAccepted = false
            var generator = SystemRandomNumberGenerator()
            token = (0..<AttachmentListener.tokenByteCount).map { _ in generator.next() }
        }
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin() }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        polling?.note()
        parser.append(unwrapInboundIn(data))
        receiveFrames()
    }

    func read(context: ChannelHandlerContext) {
        if isReadingPaused { isReadPending = true } else { context.read() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        endOfStream()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? IOError, [EPIPE, ECONNRESET].contains(error.errnoCode) { return endOfStream() }
        end(.system("the socket failed: \(error)."))
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end(.closed)
        self.context = nil
    }

    /// Ends the connection; the first reason counts.
    func end(_ reason: Invalidation) {
        guard !isOver else { return }
        isOver = true
        handshakeTimer?.cancel()
        requestTimer?.scheduled.cancel()
        stallTimer?.cancel()
        backlog = []
        attachments = nil
        // Each of the two refers to this handler, too.
        if let connection = connection.take() { connection.ended(reason) } else { established?.fail(reason) }
        established = nil
        context?.close(promise: nil)
    }

    // MARK: The handshake

    private func begin() {
        guard let context else { return }
        let limit = configuration.handshakeLimit
        handshakeTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limit)) {
            self.end(.handshakeTimedOut(limit))
        }
        transport.identity(of: context.channel).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let peer): self.identified(peer)
            case .failure(let error): self.end(.system("the peer is unknown: \(error)."))
            }
        }
    }

    private func identified(_ peer: PeerIdentity) {
        guard let context, !isOver else { return }
        self.peer = peer
        switch role {
        case .client: write(.hello, introduction(token: nil))
        case .server(let shouldAccept):
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            let eventLoop = context.eventLoop
            Task {
                let refusal = await shouldAccept(peer)
                eventLoop.execute { bound.value.decided(refusal) }
            }
        }
    }

    private func decided(_ refusal: String?) {
        guard !isOver else { return }
        if let refusal {
            write(.refusal, Handshake.Refusal(reason: refusal))
            return end(.refused(refusal))
        }
        isAccepted = true
        establishWhenReady()
    }

    private func receiveHandshake(_ frame: Frame) {
        let bounds = MessageBounds(configuration)
        do throws(MessageCoding.Failure) {
            switch (role, frame.kind) {
            case (.server, .hello), (.client, .welcome):
                let introduction = try MessageCoding.decode(
                    Handshake.Introduction.self,
                    from: frame.payload,
                    within: bounds
                )
                guard introduction.accepts.count <= Handshake.maximumTypeCount, self.introduction == nil else {
                    return end(.violation("an introduction that is too long, or not the first."))
                }
                self.introduction = introduction
                establishWhenReady()
            case (.client, .refusal):
                let refusal = try MessageCoding.decode(Handshake.Refusal.self, from: frame.payload, within: bounds)
                end(.refused(refusal.reason))
            default: end(.violation("a \(frame.kind) before the introduction."))
            }
        } catch {
            end(.violation("an introduction that cannot be read: \(error)"))
        }
    }

    private func establishWhenReady() {
        guard let context, let peer, let introduction, isAccepted, connection == nil else { return }
        handshakeTimer?.cancel()
        if case .server = role { write(.welcome, self.introduction(token: token)) }
        let connection = MessageConnection(
            channel: context.channel,
            driver: NIOLoopBound(self, eventLoop: context.eventLoop),
            peer: peer,
            introduction: introduction,
            handlers: handlers,
            configuration: configuration
        )
        self.connection = connection
        established.take()?.succeed(connection)
    }

    private func introduction(token: [UInt8]?) -> Handshake.Introduction {
        Handshake.Introduction(
            accepts: handlers.types,
            maximumFrameByteCount: configuration.maximumFrameByteCount,
            token: token.map { $0.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined() }
        )
    }

    private func write(_ kind: Frame.Kind, _ value: some Encodable) {
        guard let context, let payload = try? MessageCoding.encode(value) else { return }
        let frame = Frame(kind, payload: payload)
        context.writeAndFlush(wrapOutboundOut(frame.serialized(with: context.channel.allocator)), promise: nil)
    }

    // MARK: Receiving

    private func receiveFrames() {
        do throws(FrameParser.Failure) {
            while !isOver, !isReadingPaused || isAtEnd, let frame = try parser.next() { receive(frame) }
        } catch {
            if case .version(let version) = error { return end(.incompatible(version: version)) }
            end(.violation(error.description))
        }
    }

    /// Takes the frames that are here, however many wait for their handlers: no more of them come.
    private func endOfStream() {
        isAtEnd = true
        receiveFrames()
        end(.peerDied)
    }

    private func receive(_ frame: Frame) {
        guard let connection else { return receiveHandshake(frame) }
        var files: [OpenFile] = []
        if frame.fileCount > 0 {
            guard let received = receiveFiles(frame.fileCount) else { return }
            files = received
        }
        switch frame.kind {
        case .message, .request:
            guard frame.kind == .message || connection.begin(frame.correlation) else {
                return end(.violation("two requests with one number."))
            }
            let received = ReceivedFrame(frame: frame, files: files)
            if connection.receive(received) >= configuration.receiveBufferByteCount { isReadingPaused = true }
        case .reply: connection.end(frame.correlation, with: .success(ReceivedFrame(frame: frame, files: files)))
        case .failure: connection.failed(frame)
        case .cancel: connection.cancelServing(frame.correlation)
        case .subscribe, .unsubscribe: changeTopics(frame, of: connection)
        case .openAttachments: if case .client = role { openAttachments() }
        case .attachmentsOpen: if case .server = role { acceptOpenedAttachments() }
        case .goodbye: end(.closedByPeer)
        case .hello, .welcome, .refusal: end(.violation("a second introduction."))
        }
    }

    private func changeTopics(_ frame: Frame, of connection: MessageConnection) {
        let maximum = configuration.maximumTopics
        let isFull = connection.state.withLock { state in
            if frame.kind == .unsubscribe {
                state.topics.remove(frame.topic)
            } else {
                state.topics.insert(frame.topic)
            }
            return state.topics.count > maximum
        }
        if isFull { end(.violation("more than \(maximum) topics.")) }
    }

    /// Reads on after the handlers have caught up.
    func resumeReading() {
        guard isReadingPaused, !isOver, let connection,
            connection.state.withLock({ $0.inbox.cost }) < configuration.receiveBufferByteCount
        else { return }
        isReadingPaused = false
        receiveFrames()
        if isReadPending, !isReadingPaused {
            isReadPending = false
            context?.read()
        }
    }

    // MARK: Descriptors

    private func receiveFiles(_ count: Int) -> [OpenFile]? {
        guard let attachments else {
            end(.violation("descriptors before a socket for them."))
            return nil
        }
        guard case .done(let files) = attachments.receive(for: receivedCount), files.count == count else {
            end(.violation("descriptors that did not come with their message."))
            return nil
        }
        receivedCount += 1
        return files
    }

    /// Passes a frame's descriptors; false when the frame has to wait.
    private func passFiles(of frame: OutgoingFrame) -> Bool {
        guard let context else { return false }
        if attachments == nil {
            switch role {
            case .client: openAttachments()
            case .server:
                guard !hasAskedForAttachments else { return false }
                hasAskedForAttachments = true
                write(Frame(.openAttachments))
                return false
            }
        }
        switch attachments?.pass(frame.files, for: passedCount) {
        case .done:
            passedCount += 1
            return true
        case .later:
            guard !isRetryScheduled else { return false }
            isRetryScheduled = true
            context.eventLoop.assumeIsolated().scheduleTask(in: Self.attachmentRetry) {
                self.isRetryScheduled = false
                self.writeBacklog()
            }
        case .failed(let why): end(.system("descriptors could not be passed: \(why)."))
        case nil: break
        }
        return false
    }

    /// A client's half of making the socket for descriptors.
    private func openAttachments() {
        guard attachments == nil, case .client(let name) = role, let token = introduction?.token else { return }
        var bytes: [UInt8] = []
        var digits = Substring(token)
        while let byte = UInt8(digits.prefix(2), radix: 16) {
            bytes.append(byte)
            digits = digits.dropFirst(2)
        }
        attachments = transport.connectAttachments(to: name, token: bytes)
        guard attachments != nil else { return end(.system("the server takes no connection for descriptors.")) }
        write(Frame(.attachmentsOpen))
    }

    /// A server's half.
    private func acceptOpenedAttachments() {
        if attachments == nil { acceptAttachments() }
        guard attachments != nil else { return end(.violation("no connection for descriptors was made.")) }
        writeBacklog()
    }

    /// Takes the socket of a client that said this connection's token.
    func take(_ socket: AttachmentSocket, from process: pid_t) {
        if attachments == nil, process == peer?.process { attachments = socket }
    }

    private func write(_ frame: Frame) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(frame.serialized(with: context.channel.allocator)), promise: nil)
    }

    // MARK: Sending

    /// Writes what the outbox holds, and stays awake for an answer when one is about to come.
    func flushPromptly() {
        flushOutbox()
        polling?.begin()
    }

    /// Writes what the outbox holds.
    func flushOutbox() {
        guard !isOver, let connection else { return }
        let (frames, deadline) = connection.state.withLock { state in
            state.isFlushScheduled = false
            return (state.outbox.takeFrames(), state.pending.earliestDeadline)
        }
        if let deadline { watchRequests(until: deadline) }
        if backlog.isEmpty { backlog = frames } else { backlog += frames }
        writeBacklog()
    }

    private func writeBacklog() {
        guard !isOver, let context else { return }
        var written = 0
        var chunk = 0
        for frame in backlog {
            guard frame.files.isEmpty || passFiles(of: frame) else { break }
            written += 1
            chunk += frame.byteCount
            unwrittenByteCount += frame.byteCount
            let isLast = written == backlog.count
            // Progress is seen at least for each 64 KiB.
            let promise = isLast || chunk >= 1 << 16 ? wrote(chunk, on: context.eventLoop) : nil
            if promise != nil { chunk = 0 }
            if frame.blob.readableBytes > 0 {
                context.write(wrapOutboundOut(frame.header), promise: nil)
                context.write(wrapOutboundOut(frame.blob), promise: promise)
            } else {
                context.write(wrapOutboundOut(frame.header), promise: promise)
            }
        }
        guard !isOver else { return }
        if chunk > 0 { context.write(wrapOutboundOut(ByteBuffer()), promise: wrote(chunk, on: context.eventLoop)) }
        backlog.removeFirst(written)
        context.flush()
        if unwrittenByteCount > 0 || !backlog.isEmpty { watchForStall() }
    }

    private func wrote(_ count: Int, on eventLoop: any EventLoop) -> EventLoopPromise<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess {
            self.unwrittenByteCount -= count
            self.lastProgress = eventLoop.now
            self.connection?.written(count)
            // The goodbye was the last of them.
            if self.isClosing, self.unwrittenByteCount == 0, self.backlog.isEmpty { self.end(.closed) }
        }
        return promise
    }

    private func watchForStall() {
        guard stallTimer == nil, let context else { return }
        let limit = configuration.stallLimit
        let begin = context.eventLoop.now
        stallTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limit)) {
            self.stallTimer = nil
            guard self.unwrittenByteCount > 0 || !self.backlog.isEmpty else { return }
            guard self.lastProgress < begin else { return self.watchForStall() }
            self.end(self.isClosing ? .closed : .stalled(limit))
        }
    }

    private func watchRequests(until deadline: NIODeadline) {
        guard let context, requestTimer.map({ deadline < $0.deadline }) ?? true else { return }
        requestTimer?.scheduled.cancel()
        let scheduled = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            self.requestTimer = nil
            guard let connection = self.connection, let now = self.context?.eventLoop.now else { return }
            connection.endLateRequests(at: now)
            if let next = connection.state.withLock({ $0.pending.earliestDeadline }) { self.watchRequests(until: next) }
        }
        requestTimer = (deadline, scheduled)
    }

    /// Writes what is left, says goodbye, and ends.
    func closeInOrder() {
        guard !isOver, let connection else { return end(.closed) }
        guard !isClosing else { return }
        isClosing = true
        connection.sayGoodbye()
        flushOutbox()
    }
}
