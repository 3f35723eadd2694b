internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import NIOWebSocket

/// Asks one that has come where it wants to go, and takes it where it is awaited.
///
///     connection ──► TLS ──► HTTP ──► GateHandler ──► WebSocket ──► ConnectionState
///                                         └─► 404, 426, 400
///
/// It is taken out when the answer is yes.
/// Thread: the event loop.
/// Source: RFC 6455, section 4.2.
final class GateHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let admission: Admission
    /// Of who is awaited where this one goes.
    private var promise: EventLoopPromise<ConnectionState>?
    private var deadline: Scheduled<Void>?
    private var (isDecided, isAnswered) = (false, false)

    private init(_ admission: Admission) { self.admission = admission }

    /// Begins with a connection; one too many is closed.
    static func receive(
        _ channel: any Channel,
        _ security: NIOSSLContext?,
        _ admission: Admission,
        _ pace: ConnectionPace
    ) throws {
        guard admission.enter() else { return channel.close(promise: nil) }
        let gate = GateHandler(admission)
        let own = NIOLoopBound(gate, eventLoop: channel.eventLoop)
        gate.deadline = channel.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in own.value.decide(isTaken: false) }
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: ConnectionState.messageLimit,
            automaticErrorHandling: false,
            shouldUpgrade: { channel, head in channel.eventLoop.makeSucceededFuture(own.value.admit(head, on: channel))
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture { try own.value.upgrade(channel, pace) }
            }
        )
        let pipeline = channel.pipeline.syncOperations
        if let security { try pipeline.addHandler(NIOSSLServerHandler(context: security)) }
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false,
            withServerUpgrade: (
                upgraders: [upgrader],
                completionHandler: { context in
                    // What comes behind the request is for WebSocket.
                    context.pipeline.syncOperations.removeHandler(own.value, promise: nil)
                }
            )
        )
        try pipeline.addHandler(gate)
    }

    // MARK: Yes

    /// Further header fields of the answer to one that is awaited; nil for others.
    private func admit(_ head: HTTPRequestHead, on channel: any Channel) -> HTTPHeaders? {
        let offered = head.headers[canonicalForm: "Sec-WebSocket-Protocol"]
        guard offered.isEmpty || offered.contains(admission.subprotocol[...]),
            let promise = admission.take(at: Self.path(head))
        else { return nil }
        self.promise = promise
        promise.futureResult.whenFailure { _ in channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in promise.fail(Absence.gone) }
        return offered.isEmpty ? [:] : ["Sec-WebSocket-Protocol": admission.subprotocol]
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
        admission.decide(isTaken: isTaken)
    }

    // MARK: No

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data), !isAnswered else { return }
        isAnswered = true
        let status: HTTPResponseStatus =
            if !admission.isAwaited(at: Self.path(head)) { .notFound } else {
                head.headers.contains(name: "Upgrade") ? .badRequest : .upgradeRequired
            }
        var headers: HTTPHeaders = ["Content-Length": "0", "Connection": "close"]
        if status == .upgradeRequired { headers.add(name: "Upgrade", value: "websocket") }
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

    private static func path(_ head: HTTPRequestHead) -> String { String(head.uri.prefix { $0 != "?" }) }

    /// From the connection to the end of the request.
    private static let patience = TimeAmount.seconds(5)
}
