import CallBasics
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import TestSupport

/// A server that takes connections of TCP or TLS, and keeps what comes by them.
final class ConnectionServer: Sendable {
    private final class Taker: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let bytes = Mutex<[UInt8]>([])

        func channelRead(context _: ChannelHandlerContext, data: NIOAny) {
            let read = Array(unwrapInboundIn(data).readableBytesView)
            bytes.withLock { $0 += read }
        }
    }

    private let taker = Taker()
    private let connections = Mutex<[any Channel]>([])
    private let listener = Mutex<(any Channel)?>(nil)

    /// A server on a port of loopback; one that does not read takes no byte of a connection.
    ///
    /// By TLS it shows the test certificate of that name.
    init(reads: Bool = true, certificate name: String? = nil) async throws {
        let context = try name.map { name in
            let files = TestCertificates.of(name)
            return try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: NIOSSLCertificate.fromPEMFile(files.path).map { .certificate($0) },
                    privateKey: .privateKey(NIOSSLPrivateKey(file: files.keyPath, format: .pem))
                )
            )
        }
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: reads)
            .childChannelInitializer { [self] channel in
                connections.withLock { $0.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    if let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    try channel.pipeline.syncOperations.addHandler(taker)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        listener.withLock { $0 = channel }
    }

    var address: CallBasics.SocketAddress {
        .loopback(port: UInt16(listener.withLock { $0?.localAddress?.port ?? 0 }))
    }

    /// What has come by all connections.
    var bytes: [UInt8] { taker.bytes.withLock { $0 } }
    private var current: [any Channel] { connections.withLock { $0 } }
    var connectionCount: Int { current.count }
    var openCount: Int { current.count(where: \.isActive) }

    func send(_ bytes: [UInt8]) {
        for channel in current { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }
    }

    func read() throws { for channel in current { try channel.setOption(.autoRead, value: true).wait() } }
    func disconnect() { for channel in current { channel.close(promise: nil) } }

    /// Takes no connection any more.
    func close() async throws { try await listener.withLock { $0 }?.close() }
}
