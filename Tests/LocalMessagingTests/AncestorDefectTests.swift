import LocalMessagingTesting
import NIOCore
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

/// What LLBSDMessaging, whose idea this is, got wrong, and what holds here: a test each.
struct AncestorDefectTests {
    private let group = InProcessGroup()
    private let network = InProcessNetwork()

    private var transport: InProcessTransport {
        InProcessTransport(network: network, side: InProcessSide(on: network.eventLoop))
    }

    private func startRawServer(_ record: Record<String>, clients: ClientRecord = ClientRecord()) async throws
        -> MessageServer
    {
        try await MessageServer.start(
            name: "core",
            over: transport,
            handlers: .notes(into: record),
            configuration: MessagingConfiguration(),
            shouldAccept: nil,
            clientChanged: clients.note
        )
    }

    private func bytes(_ text: String) throws -> ByteBuffer {
        try Frame(.message, type: Note.messageType, payload: MessageCoding.encode(Note(text: text)))
            .serialized(with: ByteBufferAllocator())
    }

    @Test func `messages that arrive in one read are all handled, and those after them`() async throws {
        let record = Record<String>()
        let server = try await startRawServer(record)
        let peer = try await RawPeer.connect(to: "core", over: transport)
        try await peer.introduce()
        var two = try bytes("one")
        two.writeImmutableBuffer(try bytes("two"))
        try await peer.send(two)
        try await peer.send(bytes("three"))
        #expect(await record.values(3) == ["one", "two", "three"])
        await server.stop()
    }

    @Test func `each of ten clients of one process gets what is sent to it`() async throws {
        let server = try await group.startServer(name: "core", handlers: .sums)
        let heard = (0..<10).map { _ in Record<String>() }
        var clients: [MessageClient] = []
        for record in heard { clients.append(try await group.connect(to: "core", handlers: .notes(into: record))) }
        // All of one process, with one identity: a client is its connection, and no two are the same.
        let connections = server.clients
        #expect(Set(connections.map(\.id)).count == 10)
        for (index, connection) in connections.enumerated() { try await connection.send(Note(text: "\(index)")) }
        for (index, record) in heard.enumerated() { #expect(await record.values(1) == ["\(index)"]) }
        for client in clients { await client.close() }
        await server.stop()
    }

    @Test func `a frame beyond the limit is refused by its length alone`() async throws {
        let clients = ClientRecord()
        let server = try await startRawServer(Record(), clients: clients)
        let peer = try await RawPeer.connect(to: "core", over: transport)
        try await peer.introduce()
        try await peer.send(ByteBuffer(integer: UInt32.max))
        #expect(await clients.left.values(1) == [.violation("a frame of 4294967295 bytes; 1048576 are accepted.")])
        await server.stop()
    }

    @Test func `a large message in small pieces is moved a few times, not once for each of them`() {
        let payload = ByteBuffer(repeating: 0x20, count: 900_000)
        let whole = Frame(.message, type: Note.messageType, payload: payload).serialized(with: ByteBufferAllocator())
        var parser = FrameParser(maximumByteCount: 1 << 20)
        var rest = whole
        var frames: [Frame] = []
        var moves = 0
        var place: UnsafeRawPointer?
        while let piece = rest.readSlice(length: min(100, rest.readableBytes)), piece.readableBytes > 0 {
            parser.append(piece)
            while let frame = try? parser.next() { frames.append(frame) }
            let start = parser.bytes.withUnsafeReadableBytes(\.baseAddress)
            if start != place { moves += 1 }
            place = start
        }
        #expect(moves < 30, "of 9000 pieces")
        #expect(frames.map(\.payload.readableBytes) == [900_000])
    }

    @Test func `a request is answered`() async throws {
        let server = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(to: "core")
        #expect(try await client.request(Sum(terms: [20, 22])) == 42)
        await client.close()
        await server.stop()
    }

    @Test func `half a frame of a client that died is no part of the next one's stream`() async throws {
        let (record, clients) = (Record<String>(), ClientRecord())
        let server = try await startRawServer(record, clients: clients)
        for number in 1...20 {
            let peer = try await RawPeer.connect(to: "core", over: transport)
            try await peer.introduce()
            var half = try bytes("half")
            half.moveWriterIndex(to: number)
            try await peer.send(half)
            await peer.close()
            #expect(await clients.left.values(number).last == .peerDied)
        }
        let peer = try await RawPeer.connect(to: "core", over: transport)
        try await peer.introduce()
        try await peer.send(bytes("whole"))
        #expect(await record.values(1) == ["whole"])
        await server.stop()
    }

    @Test func `a message without a type is refused, and the next one is handled`() async throws {
        let record = Record<String>()
        let server = try await startRawServer(record)
        let peer = try await RawPeer.connect(to: "core", over: transport)
        try await peer.introduce()
        try await peer.send(Frame(.message, payload: ByteBuffer(cbor: "a0")))
        #expect(await peer.frames.values(2)[1].kind == .failure)
        try await peer.send(bytes("still here"))
        #expect(await record.values(1) == ["still here"])
        await server.stop()
    }

    @Test func `the death of a server ends its client, with that reason`() async throws {
        let server = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(to: "core")
        await group.kill(server)
        #expect(await client.invalidated() == .peerDied)
    }
}
