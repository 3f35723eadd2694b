import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import TestSupport

/// An agent as far as its socket goes: keeps what comes, and sends what a test gives it, byte by byte as it is.
final class TestAgentServer: Sendable {
    enum Way: Sendable {
        /// Takes WebSocket, and says `greeting` in the same segment as its answer.
        case webSocket(greeting: [UInt8] = [])
        /// Answers a request of HTTP by a status.
        case refusal(HTTPResponseStatus)
        /// Bytes without a protocol, by TCP or at a path.
        case stream(path: String? = nil)
    }

    /// A frame of WebSocket that has come.
    struct Frame: Equatable, Sendable {
        var opcode: UInt8
        var bytes: [UInt8]
        var isMasked = true

        /// A close frame with a code.
        static func close(_ code: UInt16) -> Frame { Frame(opcode: 8, bytes: [UInt8(code >> 8), UInt8(code & 0xFF)]) }
        static func text(_ text: String) -> Frame { Frame(opcode: 1, bytes: Array(text.utf8)) }
    }

    struct Seen: Sendable {
        var request: HTTPRequestHead?
        var frames: [Frame] = []
        var bytes: [UInt8] = []
        var channels: [any Channel] = []
        var endedCount = 0
        /// Pieces that the network has taken.
        var sentCount = 0
    }

    let seen = Watched(Seen())
    private let listener: any Channel

    /// Listens at a port of loopback, or at a path.
    ///
    /// - Parameters:
    ///   - way: What it speaks.
    ///   - reads: Whether it takes what comes once the connection stands.
    ///   - answers: Whether it answers pings and close frames.
    ///   - certificate: The test certificate that it shows, by TLS.
    /// - Throws: What keeps it from listening
    init(
        _ way: Way = .webSocket(),
        reads: Bool = true,
        answers: Bool = true,
        certificate: String? = nil
    ) async throws {
        let context = try certificate.map { name in
            let files = TestCertificates.of(name)
            return try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: NIOSSLCertificate.fromPEMFile(files.path).map { .certificate($0) },
                    privateKey: .privateKey(NIOSSLPrivateKey(file: files.keyPath, format: .pem))
                )
            )
        }
        let seen = seen
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(Counter(seen))
                    if let context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
                    let taker = FrameTaker(seen, answers: answers)
                    switch way {
                    case .stream:
                        try pipeline.addHandler(ByteTaker(seen))
                        if !reads { try channel.syncOptions?.setOption(.autoRead, value: false) }
                    case .refusal(let status):
                        try pipeline.configureHTTPServerPipeline()
                        try pipeline.addHandler(Refuser(seen, status))
                    case .webSocket(let greeting):
                        let glue = Glue()
                        try pipeline.addHandler(glue)
                        let (own, glued) = (
                            NIOLoopBound(taker, eventLoop: channel.eventLoop),
                            NIOLoopBound(glue, eventLoop: channel.eventLoop)
                        )
                        let upgrader = NIOWebSocketServerUpgrader(
                            maxFrameSize: 1 << 24,
                            shouldUpgrade: { channel, head in
                                let subprotocol = head.headers.first(name: "Sec-WebSocket-Protocol")
                                let headers = subprotocol.map { HTTPHeaders([("Sec-WebSocket-Protocol", $0)]) }
                                seen.update { $0.request = head }
                                return channel.eventLoop.makeSucceededFuture(headers ?? HTTPHeaders())
                            },
                            upgradePipelineHandler: { channel, _ in
                                channel.eventLoop.makeCompletedFuture {
                                    try channel.pipeline.syncOperations.addHandler(own.value)
                                    try glued.value.release(greeting, channel)
                                    if !reads { try channel.syncOptions?.setOption(.autoRead, value: false) }
                                }
                            }
                        )
                        try pipeline.configureHTTPServerPipeline(
                            withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in })
                        )
                    }
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        if case .stream(let path?) = way {
            listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandlers([Counter(seen), ByteTaker(seen)])
                    }
                }
                .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        } else {
            listener = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
        }
    }

    /// Its port is another's then: programs that look for one by TCP find nobody.
    deinit { listener.close(promise: nil) }

    var port: Int { listener.localAddress?.port ?? 0 }

    /// Sends bytes as they are, past what would make a frame of them.
    func send(_ bytes: [UInt8]) {
        let seen = seen
        for channel in seen.value.channels {
            channel.eventLoop.execute {
                let promise = channel.eventLoop.makePromise(of: Void.self)
                promise.futureResult.whenSuccess { seen.update { $0.sentCount += 1 } }
                TestAgentServer.write(bytes, channel, promise)
            }
        }
    }

    fileprivate static func write(_ bytes: [UInt8], _ channel: any Channel, _ promise: EventLoopPromise<Void>?) {
        let pipeline = channel.pipeline.syncOperations
        if let context = try? pipeline.context(handlerType: WebSocketFrameEncoder.self) {
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: bytes)), promise: promise)
        } else {
            pipeline.writeAndFlush(NIOAny(ByteBuffer(bytes: bytes)), promise: promise)
        }
    }

    func read() { for channel in seen.value.channels { try? channel.setOption(.autoRead, value: true).wait() } }
    func disconnect() { for channel in seen.value.channels { channel.close(promise: nil) } }
    /// Takes no connection any more.
    func close() async throws { try await listener.close() }

    /// A frame as it is on the wire, without a mask.
    static func frame(_ opcode: UInt8, _ payload: [UInt8], isLast: Bool = true) -> [UInt8] {
        let first = (isLast ? 0x80 : 0) | opcode
        switch payload.count {
        case ..<126: return [first, UInt8(payload.count)] + payload
        case ..<65_536: return [first, 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload
        default:
            let length = (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
            return [first, 127] + length + payload
        }
    }

    static func text(_ text: String) -> [UInt8] { frame(1, Array(text.utf8)) }
}

/// Holds back what is written until all of it can go in one segment.
private final class Glue: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    private var held: ByteBuffer? = ByteBuffer()

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard held != nil else { return context.write(data, promise: promise) }
        held?.writeImmutableBuffer(unwrapOutboundIn(data))
        promise?.succeed()
    }

    func release(_ more: [UInt8], _ channel: any Channel) throws {
        guard var bytes = held else { return }
        held = nil
        bytes.writeBytes(more)
        try channel.pipeline.syncOperations.context(handler: self).writeAndFlush(NIOAny(bytes), promise: nil)
    }
}

/// Tells of connections that stand, and that are over.
private final class Counter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let seen: Watched<TestAgentServer.Seen>

    init(_ seen: Watched<TestAgentServer.Seen>) { self.seen = seen }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        seen.update { $0.channels.append(channel) }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        seen.update { $0.endedCount += 1 }
        context.fireChannelInactive()
    }
}

private final class ByteTaker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let seen: Watched<TestAgentServer.Seen>

    init(_ seen: Watched<TestAgentServer.Seen>) { self.seen = seen }

    func channelRead(context _: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data).readableBytesView
        seen.update { $0.bytes += bytes }
    }
}

private final class Refuser: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    private let seen: Watched<TestAgentServer.Seen>
    private let status: HTTPResponseStatus

    init(_ seen: Watched<TestAgentServer.Seen>, _ status: HTTPResponseStatus) {
        (self.seen, self.status) = (seen, status)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .end = unwrapInboundIn(data) else { return }
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: ["Content-Length": "2"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "no")))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

private final class FrameTaker: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    private let seen: Watched<TestAgentServer.Seen>
    private let answers: Bool

    init(_ seen: Watched<TestAgentServer.Seen>, answers: Bool) { (self.seen, self.answers) = (seen, answers) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let taken = TestAgentServer.Frame(
            opcode: UInt8(webSocketOpcode: frame.opcode),
            bytes: Array(frame.unmaskedData.readableBytesView),
            isMasked: frame.maskKey != nil
        )
        seen.update { $0.frames.append(taken) }
        guard answers else { return }
        switch frame.opcode {
        case .ping: TestAgentServer.write(TestAgentServer.frame(10, taken.bytes), context.channel, nil)
        case .connectionClose:
            TestAgentServer.write(TestAgentServer.frame(8, taken.bytes), context.channel, nil)
            context.close(promise: nil)
        default: break
        }
    }
}
