internal import CallBasics
internal import Glibc
internal import MediaTransport
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import NIOTLS
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
        case open
        case ended
    }

    private let server: NIOCore.SocketAddress
    private let secured: (context: NIOSSLContext, name: String)?
    private let leg: NIOCore.SocketAddress
    private let state: ConnectionState
    private var connection = Connection.none
    private var channel: (any Channel)?
    private var stream = TURNStream()
    private var port: (any Channel)?

    init(
        _ server: CallBasics.SocketAddress,
        _ secured: (context: NIOSSLContext, name: String)?,
        for leg: CallBasics.SocketAddress,
        _ state: ConnectionState
    ) throws {
        (self.server, self.leg) = (try server.forNIO, try leg.forNIO)
        (self.secured, self.state) = (secured, state)
    }

    // MARK: The port

    func channelActive(context: ChannelHandlerContext) { port = context.channel }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        guard envelope.remoteAddress == leg,
            let message = TURNStream.framed(Array(envelope.data.readableBytesView))
        else { return }
        switch connection {
        case .none:
            connection = .opening([message])
            connect(on: context.eventLoop)
        case .opening(let waiting):
            if waiting.count < Self.waitingLimit { connection = .opening(waiting + [message]) }
        case .open:
            if channel?.isWritable ?? false { channel?.writeAndFlush(ByteBuffer(bytes: message), promise: nil) }
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
        var own = leg
        own.port = 0
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
        self.channel = channel
        let pipeline = channel.pipeline.syncOperations
        if let (context, name) = secured {
            // An address is no name that a server could be asked for (RFC 6066, section 3).
            let host = CallBasics.SocketAddress(host: name, port: 0) == nil ? name : nil
            try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: host))
        }
        try pipeline.addHandler(StreamHandler(of: self))
    }

    private func handleOpening(_ result: Result<any Channel, any Error>) {
        switch (result, connection) {
        case (.success(let channel), .opening):
            state.connect()
            if secured == nil { open(channel) }
        // Nobody wants it any more.
        case (.success(let channel), _): channel.close(promise: nil)
        case (.failure(let error), _): end(error)
        }
    }

    /// The handshake of TLS is over: nothing is sent to whoever is somebody else.
    func handleSecured(_ channel: any Channel, by certificate: NIOSSLCertificate?) {
        guard let secured, let names = certificate.map(CertificateNames.init), names.includeHost(secured.name) else {
            return end("its certificate is for \(certificate.map { CertificateNames($0).text } ?? "nobody")")
        }
        open(channel)
    }

    private func open(_ channel: any Channel) {
        guard case .opening(let waiting) = connection else { return }
        connection = .open
        for message in waiting { channel.write(ByteBuffer(bytes: message), promise: nil) }
        channel.flush()
    }

    /// Takes what the server has sent.
    func receive(_ bytes: ByteBufferView) {
        // What somebody else says with its handshake is nothing.
        guard case .open = connection else { return }
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
        let channel = channel
        (connection, self.channel) = (.ended, nil)
        channel?.close(promise: nil)
    }

    private func deliver(_ message: [UInt8]) {
        guard let port, port.isWritable else { return }
        port.writeAndFlush(AddressedEnvelope(remoteAddress: leg, data: ByteBuffer(bytes: message)), promise: nil)
    }

    /// Ends it by what has gone wrong.
    func end(_ error: any Error) {
        guard case .open = connection else { return end(Self.reason(error)) }
        // A server that goes without the farewell of TLS is one that goes.
        let isUnclean = if case .uncleanShutdown? = error as? NIOSSLError { true } else { false }
        end(isUnclean ? Self.goodbye : "the connection broke off (\(Self.text(of: error)))")
    }

    /// The server has ended it.
    func handleEnd() { end(Self.goodbye) }

    private static let goodbye = "it has ended the connection"

    private static func text(of error: any Error) -> String {
        (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
    }

    /// Why there is no connection, as the end of a sentence.
    private static func reason(_ error: any Error) -> String {
        if let reason = (error as? NIOSSLError)?.handshakeReason { return "TLS with it failed: \(reason)" }
        if case .connectTimeout? = error as? ChannelError {
            return "it takes no connection within \(patience.nanoseconds / 1_000_000_000) s"
        }
        return "no connection: \(text(of: error))"
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

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate()
            port.handleSecured(context.channel, by: certificate ?? nil)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        port.end(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        port.handleEnd()
        context.fireChannelInactive()
    }
}
