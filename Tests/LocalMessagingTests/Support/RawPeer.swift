import LocalMessagingTesting
import NIOCore

@testable import LocalMessaging

/// An end of a stream that says what a test wants, and nothing of its own.
final class RawPeer: Sendable {
    /// The frames that came.
    let frames = Record<Frame>()
    /// One value, when the stream has ended.
    let end = Record<Void>()
    private let channel: any Channel

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
        try await transport.listen(as: name) { channel in make(channel, accept) }
    }

    private static func make(
        _ channel: any Channel,
        _ take: @escaping @Sendable (RawPeer) -> Void
    ) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            let peer = RawPeer(channel)
            try channel.pipeline.syncOperations.addHandler(Listener(frames: peer.frames, end: peer.end))
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

    func send(_ frame: Frame) async throws {
        var bytes = frame.serialized(with: ByteBufferAllocator())
        bytes.writeImmutableBuffer(frame.blob)
        try await send(bytes)
    }

    func send(_ bytes: ByteBuffer) async throws {
        try await channel.writeAndFlush(bytes).get()
    }

    func close() async {
        try? await channel.close().get()
    }

    private final class Listener: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let frames: Record<Frame>
        private let end: Record<Void>
        private var parser = FrameParser(maximumByteCount: 1 << 24)

        init(frames: Record<Frame>, end: Record<Void>) {
            self.frames = frames
            self.end = end
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
