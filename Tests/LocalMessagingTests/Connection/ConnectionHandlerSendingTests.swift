import Glibc
import LocalMessagingTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

@Suite(.timeLimit(.minutes(1)))
struct ConnectionHandlerSendingTests {
    private let network = InProcessNetwork()

    @Test func `a peer that takes a large frame slowly does take it, and is not dropped`() async throws {
        let clients = ClientRecord()
        let transport = InProcessTransport(network: network, side: InProcessSide(on: network.eventLoop))
        let server = try await MessageServer.start(
            name: "core",
            over: transport,
            handlers: MessageHandlers(),
            configuration: MessagingConfiguration(),
            shouldAccept: nil,
            clientChanged: clients.note
        )
        let peer = try await RawPeer.connect(to: "core", over: transport)
        try await peer.introduce(accepting: [Note.messageType])
        peer.holdReading()
        try await clients.joined.values(1)[0].send(Note(text: String(repeating: "x", count: 900_000)))
        var rounds = 0
        while peer.frames.values.count < 2, clients.left.values.isEmpty {
            // Less than the limit of 2 s, and several times that for the whole frame.
            await network.eventLoop.advanceTime(by: .milliseconds(1500))
            try await peer.readOnce()
            rounds += 1
        }
        #expect(clients.left.values.isEmpty)
        #expect(peer.frames.values.last?.length ?? 0 > 900_000)
        #expect(rounds > 3)
        await peer.close()
        await server.stop()
    }

    @Test(.tags(.realtime)) func `a peer that reads slowly is not dropped before its socket takes more`() async throws {
        let scratch = try Scratch()
        let group = try GroupContainer(directory: scratch.path)
        let clients = ClientRecord()
        var configuration = MessagingConfiguration()
        configuration.stallLimit = .seconds(2)
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: MessageHandlers(),
            configuration: configuration,
            clientChanged: clients.note
        )
        let peer = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        try #require(withSocketAddress(group.address(of: "core")) { connect(peer, $0, $1) } == 0)
        let introduction = Handshake.Introduction(accepts: [Note.messageType], maximumFrameByteCount: 1 << 20)
        let hello = try Frame(.hello, payload: MessageCoding.encode(introduction))
        let bytes = [UInt8](hello.serialized(with: ByteBufferAllocator()).readableBytesView)
        try #require(write(peer, bytes, bytes.count) == bytes.count)
        try await clients.joined.values(1)[0].send(Note(text: String(repeating: "x", count: 900_000)))
        var buffer = [UInt8](repeating: 0, count: 50_000)
        var readCount = 0
        // A socket takes more once three quarters of some 200 kB are read, which takes longer than the limit.
        for _ in 0..<4 {
            try await Task.sleep(for: .seconds(1))
            readCount += read(peer, &buffer, buffer.count)
        }
        #expect(clients.left.values.isEmpty)
        while readCount < 900_000, case let count = read(peer, &buffer, buffer.count), count > 0 { readCount += count }
        #expect(readCount >= 900_000)
        close(peer)
        await server.stop()
    }
}
