import Glibc
import NIOCore
import TestSupport
import Testing

@testable import LocalMessaging

/// A peer whose socket takes what is sent a little at a time.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct ConnectionHandlerSendingRealTimeTests {
    @Test func `a peer that reads slowly is not dropped before its socket takes more`() async throws {
        let scratch = try Scratch()
        let group = try GroupContainer(directory: scratch.path)
        let clients = ClientRecord()
        var configuration = MessagingConfiguration()
        configuration.stallLimit = .seconds(1)
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
            pass(.milliseconds(300))
            readCount += read(peer, &buffer, buffer.count)
        }
        #expect(clients.left.values.isEmpty)
        while readCount < 900_000, case let count = read(peer, &buffer, buffer.count), count > 0 { readCount += count }
        #expect(readCount >= 900_000)
        close(peer)
        await server.stop()
    }
}
