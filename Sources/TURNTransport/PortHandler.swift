internal import CallBasics
internal import Glibc
internal import MediaTransport
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import SIPTransport

/// The port of a `TURNConnection`: has what a call sends go on by the connection, and what the server sends go to the call.
///
/// Thread: the event loop of the port.
final class PortHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    typealias OutboundOut = AddressedEnvelope<ByteBuffer>

    private enum Connection {
        case none
        /// What is to be sent when it is there.
        case opening([[UInt8]])
        case open(any Channel)
        case ended
    }

    private let server: NIOCore.SocketAddress
    private let secured: (context: NIOSSLContext, name: String?)?
    private let leg: CallBasics.SocketAddress
    private let state: ConnectionState
    private var connection = Connection.none
    private var stream = TURNStream()
    private var port: (any Channel)?

    init(
        _ server: CallBasics.SocketAddress,
        _ secured: (context: NIOSSLContext, name: String?)?,
        for leg: CallBasics.SocketAddress,
        _ state: ConnectionState
    ) throws {
        self.server = try server.forNIO
        (self.secured, self.leg, self.state) = (secured, leg, state)
    }

    // MARK: The port

    func channelActive(context: ChannelHandlerContext) { port = context.channel }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        guard envelope.remoteAddress.known == leg,
            let message = TURNStream.framed(Array(envelope.data.readableBytesView))
        else { return }
        switch connection {
        case .none:
            connection = .opening([message])
            connect(on: context.eventLoop)
        case .opening(let waiting):
            if waiting.count < Self.waitingLimit { connection = .opening(waiting + [message]) }
        case .open(let channel):
            if channel.isWritable { channel.writeAndFlush(ByteBuffer(bytes: message), promise: nil) }
        case .ended: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        port = nil
        leave()
        context.fireChannelInactive()
    }

    // MARK: The connection

    private func connect(on loop: any EventLoop) {
        let handler = NIOLoopBound(self, eventLoop: loop)
        guard let own = try? leg.with(port: 0).forNIO else { return end("there is no way to it") }
        ClientBootstrap(group: loop)
            .connectTimeout(Self.patience)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.writeBufferWaterMark, value: Self.waterMark)
            .channelOption(.socketOption(.so_sndbuf), value: Self.sendBufferSize)
            .bind(to: own)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try handler.value.begin(on: channel) }
            }
            .connect(to: server)
            .whenComplete { result in handler.value.handleOpening(result) }
    }

    private func begin(on channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        if let (context, name) = secured {
            try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
        }
        try pipeline.addHandler(StreamHandler(of: self))
    }

    private func handleOpening(_ result: Result<any Channel, any Error>) {
        switch (result, connection) {
        case (.success(let channel), .opening(let waiting)):
            connection = .open(channel)
            state.connect()
            for message in waiting { channel.write(ByteBuffer(bytes: message), promise: nil) }
            channel.flush()
        // Nobody wants it any more.
        case (.success(let channel), _): channel.close(promise: nil)
        case (.failure(let error), _): end(Self.reason(error))
        }
    }

    /// Takes what the server has sent.
    func receive(_ bytes: ByteBufferView) {
        stream.append(bytes)
        do throws(TURNError) {
            while let message = try stream.next() { deliver(message) }
        } catch {
            end("\(error)")
        }
    }

    /// It is at its end: the call is told.
    func end(_ reason: String) {
        if case .ended = connection { return }
        state.end(reason)
        deliver([])
        leave()
    }

    /// What a channel does when it is closed comes back here at once: it finds that all is over.
    private func leave() {
        let former = connection
        connection = .ended
        if case .open(let channel) = former { channel.close(promise: nil) }
    }

    private func deliver(_ message: [UInt8]) {
        guard let port, port.isWritable, let leg = try? leg.forNIO else { return }
        port.writeAndFlush(AddressedEnvelope(remoteAddress: leg, data: ByteBuffer(bytes: message)), promise: nil)
    }

    /// Why there is no connection, as the end of a sentence.
    static func reason(_ error: any Error) -> String {
        if let reason = (error as? NIOSSLError)?.handshakeReason { return "TLS with it failed: \(reason)" }
        if error as? NIOSSLExtraError == .failedToValidateHostname { return "its certificate is for somebody else" }
        if case .connectTimeout? = error as? ChannelError {
            return "it takes no connection within \(patience.nanoseconds / 1_000_000_000) s"
        }
        return "no connection: \((error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)")"
    }

    private static let patience = TimeAmount.seconds(5)
    /// Messages that wait for the connection: what asks for an address is one at a time.
    private static let waitingLimit = 8
    /// Bytes that wait in the kernel, and before it, after which sound is lost until fewer do: some 2 s of it.
    private static let sendBufferSize: ChannelOptions.Types.SocketOption.Value = 8192
    private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 1024, high: 4096)
}

/// What the server sends, on its way to the port.
private final class StreamHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let port: PortHandler

    init(of port: PortHandler) { self.port = port }

    func channelRead(context _: ChannelHandlerContext, data: NIOAny) {
        port.receive(unwrapInboundIn(data).readableBytesView)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        port.end(PortHandler.reason(error))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        port.end("it has ended the connection")
        context.fireChannelInactive()
    }
}
