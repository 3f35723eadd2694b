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

    let role: Role
    let transport: any MessageTransport
    private let handlers: MessageHandlers
    let configuration: MessagingConfiguration
    private var established: EventLoopPromise<MessageConnection>?
    /// Answers why one that waits could not be accepted.
    let acceptAttachments: @Sendable () -> String?
    /// Nil where time is the tests'.
    let polling: BusyPolling?

    var context: ChannelHandlerContext?
    private var parser: FrameParser
    var peer: PeerIdentity?
    var introduction: Handshake.Introduction?
    private var isAccepted: Bool
    var connection: MessageConnection?
    var isOver = false
    private var handshakeTimer: Scheduled<Void>?
    var requestTimer: (deadline: NIODeadline, scheduled: Scheduled<Void>)?

    /// What a client must say on its connection for descriptors.
    let token: [UInt8]
    var attachments: AttachmentSocket?
    var hasAskedForAttachments = false
    var mustOpenAttachments = false
    var passedCount: UInt64 = 0
    var receivedCount: UInt64 = 0

    /// Frames out of the outbox that wait for their descriptors to be passed.
    var backlog: [OutgoingFrame] = []
    var unwrittenByteCount = 0
    var lastProgress = NIODeadline.distantPast
    var stallTimer: Scheduled<Void>?
    var isClosing = false
    var isRetryScheduled = false

    private var isReadingPaused = false
    private var isAtEnd = false
    private var isReadPending = false

    init(
        role: Role,
        transport: any MessageTransport,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration,
        established: EventLoopPromise<MessageConnection>,
        acceptAttachments: @escaping @Sendable () -> String? = { nil }
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
        do throws(MessageCoding.Failure) {
            write(Frame(kind, payload: try MessageCoding.encode(value)))
        } catch {
            end(.system("a \(kind) could not be coded: \(error)"))
        }
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
}
