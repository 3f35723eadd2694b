import LocalMessagingTesting
import NIOCore
import Synchronization

@testable import LocalMessaging

/// An end of a stream that says what a test wants, and nothing of its own.
final class RawPeer: Sendable {
    /// The frames that came.
    let frames = Record<Frame>()
    /// One value, when the stream has ended.
    let end = Record<Void>()
    private let channel: any Channel
    /// Reads that it still makes; nil for all.
    private let reads = Mutex<Int?>(nil)

    private init(_ channel: any Channel) {
        self.channel = channel
    }

    /// Connects, and does not introduce itself.
    static func connect(to name: String, over transport: any MessageTransport) async throws -> RawPeer {
        let made = Record<RawPeer>()
        _ = try await transport.connect(to: name) { channel in make(channel) { made.add($0) } }
        return await made.values(1)[0]
    }

    /// Serves `name`; each client's end goes to `accept`.
    static func serve(
        _ name: String,
        over transport: any MessageTransport,
        accept: @escaping @Sendable (RawPeer) -> Void
    ) async throws -> any MessageListener {
        let listener = try await transport.listen(as: name) { channel in make(channel, accept) }
        try await listener.open()
        return listener
    }

    private static func make(
        _ channel: any Channel,
        _ take: @escaping @Sendable (RawPeer) -> Void
    ) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            let peer = RawPeer(channel)
            try channel.pipeline.syncOperations.addHandler(Listener(peer))
            take(peer)
        }
    }

    /// Says who it is, as a client does, and waits for the welcome.
    func introduce(accepting types: [MessageType] = [], maximumFrameByteCount: Int = 1 << 20) async throws {
        try await send(
            Frame(
                .hello,
                payload: MessageCoding.encode(
                    Handshake.Introduction(accepts: types, maximumFrameByteCount: maximumFrameByteCount)
                )
            )
        )
        _ = await frames.values(1)
    }

    /// Accepts a client, as a server does, once it has said who it is.
    func welcome(accepting types: [MessageType] = [], token: String? = nil) async throws {
        _ = await frames.values(1)
        let introduction = Handshake.Introduction(accepts: types, maximumFrameByteCount: 1 << 20, token: token)
        try await send(Frame(.welcome, payload: MessageCoding.encode(introduction)))
    }

    func send(_ frame: Frame) async throws {
        var bytes = frame.serialized(with: ByteBufferAllocator())
        bytes.writeImmutableBuffer(frame.blob)
        try await send(bytes)
    }

    func send(_ bytes: ByteBuffer) async throws {
        try await channel.writeAndFlush(bytes).get()
    }

    /// Has it read from now on when it is told to.
    func holdReading() {
        reads.withLock { $0 = 0 }
    }

    /// Has it make one read.
    func readOnce() async throws {
        reads.withLock { $0 = 1 }
        channel.read()
        try await channel.eventLoop.submit {}.get()
    }

    private func mayRead() -> Bool {
        reads.withLock { reads in
            guard let count = reads else { return true }
            reads = max(0, count - 1)
            return count > 0
        }
    }

    func close() async {
        try? await channel.close().get()
    }

    private final class Listener: ChannelDuplexHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundIn = ByteBuffer

        private weak var peer: RawPeer?
        private let frames: Record<Frame>
        private let end: Record<Void>
        private var parser = FrameParser(maximumByteCount: 1 << 24)

        init(_ peer: RawPeer) {
            self.peer = peer
            (frames, end) = (peer.frames, peer.end)
        }

        func read(context: ChannelHandlerContext) {
            if peer?.mayRead() ?? true { context.read() }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            parser.append(unwrapInboundIn(data))
            while let frame = try? parser.next() { frames.add(frame) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            end.add(())
        }
    }
}
