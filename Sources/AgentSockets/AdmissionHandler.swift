internal import FoundationEssentials
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import NIOWebSocket

/// Asks one that has come where it wants to go, and takes it where it is awaited.
///
///     connection ──► TLS ──► 16 KiB ──► HTTP ──► AdmissionHandler ──► WebSocket ──► ConnectionState
///                                                    └─► 404, 426, 400
///
/// It is taken out when the answer is yes.
/// Thread: the event loop.
/// Source: RFC 6455, section 4.2.
final class AdmissionHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let admission: Admission
    private let number: Int
    /// Of who is awaited where this one goes.
    private var promise: EventLoopPromise<ConnectionState>?
    private var deadline: Scheduled<Void>?
    private var (isDecided, isAnswered) = (false, false)

    private init(_ admission: Admission, _ number: Int) { (self.admission, self.number) = (admission, number) }

    /// Begins with a connection.
    static func receive(
        _ channel: any Channel,
        _ security: NIOSSLContext?,
        _ admission: Admission,
        _ pace: ConnectionPace
    ) throws {
        guard let number = admission.enter(channel) else { return channel.close(promise: nil) }
        let handler = AdmissionHandler(admission, number)
        let own = NIOLoopBound(handler, eventLoop: channel.eventLoop)
        handler.deadline = channel.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in own.value.decide(isTaken: false) }
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: ConnectionState.messageLimit,
            automaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                channel.eventLoop.makeSucceededFuture(own.value.admit(head, on: channel))
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture { try own.value.upgrade(channel, pace) }
            }
        )
        let pipeline = channel.pipeline.syncOperations
        if let security { try pipeline.addHandler(NIOSSLServerHandler(context: security)) }
        let limit = RequestLimit()
        try pipeline.addHandler(limit)
        let limited = NIOLoopBound(limit, eventLoop: channel.eventLoop)
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false,
            withServerUpgrade: (
                upgraders: [upgrader],
                completionHandler: { context in
                    // What comes behind the request is for WebSocket.
                    context.pipeline.syncOperations.removeHandler(limited.value, promise: nil)
                    context.pipeline.syncOperations.removeHandler(own.value, promise: nil)
                }
            )
        )
        try pipeline.addHandler(handler)
    }

    // MARK: Yes

    /// Further header fields of the answer to one that is awaited; nil for others.
    private func admit(_ head: HTTPRequestHead, on channel: any Channel) -> HTTPHeaders? {
        let offered = head.headers[canonicalForm: "Sec-WebSocket-Protocol"]
        guard Self.isHandshake(head), offered.isEmpty || offered.contains(admission.subprotocol[...]),
            let promise = admission.take(at: Self.path(head))
        else { return nil }
        self.promise = promise
        promise.futureResult.whenFailure { _ in channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in promise.fail(Absence.gone) }
        return offered.isEmpty ? [:] : ["Sec-WebSocket-Protocol": admission.subprotocol]
    }

    /// Whether a request has what the library does not look at.
    ///
    /// Source: RFC 6455, section 4.2.1.
    private static func isHandshake(_ head: HTTPRequestHead) -> Bool {
        guard head.method == .GET, head.version == .http1_1, head.headers["Host"].count == 1,
            head.headers[canonicalForm: "Connection"].contains(where: { $0.lowercased() == "upgrade" })
        else { return false }
        let hasContent = head.headers.contains(name: "Transfer-Encoding") || head.headers["Content-Length"] != []
        return !hasContent && head.headers["Sec-WebSocket-Key"].first.flatMap { Data(base64Encoded: $0) }?.count == 16
    }

    /// It has been answered that it is taken.
    private func upgrade(_ channel: any Channel, _ pace: ConnectionPace) throws {
        decide(isTaken: true)
        promise?.succeed(try ConnectionState.webSocket(on: channel, pace, isServer: true))
    }

    private func decide(isTaken: Bool) {
        guard !isDecided else { return }
        isDecided = true
        deadline?.cancel()
        admission.leave(number, isTaken: isTaken)
    }

    // MARK: No

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data), !isAnswered else { return }
        isAnswered = true
        var headers: HTTPHeaders = ["Content-Length": "0", "Connection": "close"]
        let wantsWebSocket = head.headers[canonicalForm: "Upgrade"].contains { $0.lowercased() == "websocket" }
        let status: HTTPResponseStatus
        if !admission.isAwaited(at: Self.path(head)) {
            status = .notFound
        } else if wantsWebSocket, head.headers["Sec-WebSocket-Version"] == ["13"] {
            status = .badRequest
        } else {
            status = .upgradeRequired
            headers.add(contentsOf: [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")])
        }
        let answer = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        let channel = context.channel
        context.write(wrapOutboundOut(.head(answer)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }

    /// What is no WebSocket the handlers before have told the other side.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !(error is NIOWebSocketUpgradeError), !(error is HTTPServerUpgradeErrors) else { return }
        context.close(promise: nil)
    }

    /// The path of a request, which may name the whole address.
    ///
    /// Source: RFC 9112, section 3.2.2.
    private static func path(_ head: HTTPRequestHead) -> String {
        var target = head.uri.prefix { $0 != "?" }
        if !target.hasPrefix("/"), let mark = target.firstRange(of: "://") {
            target = target[mark.upperBound...].drop { $0 != "/" }
        }
        return String(target)
    }

    /// From the connection to the end of the request.
    private static let patience = TimeAmount.seconds(5)
}

/// Ends a connection that sends more than a request for WebSocket has.
private final class RequestLimit: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var byteCount = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        byteCount += unwrapInboundIn(data).readableBytes
        guard byteCount <= Self.limit else { return context.close(promise: nil) }
        context.fireChannelRead(data)
    }

    private static let limit = 16 << 10
}
