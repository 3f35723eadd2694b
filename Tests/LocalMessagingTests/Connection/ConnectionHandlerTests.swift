import LocalMessagingTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

/// Peers that do not speak as they should, byte by byte.
struct ConnectionHandlerTests {
    private let network = InProcessNetwork()
    private let heard = Record<String>()
    private let clients = ClientRecord()

    private var transport: InProcessTransport {
        InProcessTransport(network: network, side: InProcessSide(on: network.eventLoop))
    }

    private func startServer(
        _ configuration: MessagingConfiguration = MessagingConfiguration(),
        handlers: MessageHandlers? = nil
    ) async throws -> MessageServer {
        try await MessageServer.start(
            name: "core",
            over: transport,
            handlers: handlers ?? .notes(into: heard),
            configuration: configuration,
            shouldAccept: nil,
            clientChanged: clients.note
        )
    }

    private func peer() async throws -> RawPeer { try await RawPeer.connect(to: "core", over: transport) }

    private static func note(_ text: String) throws -> Frame { message(try MessageCoding.encode(Note(text: text))) }

    private static func message(_ payload: ByteBuffer, type: MessageType? = Note.messageType) -> Frame {
        Frame(.message, correlation: 9, type: type, payload: payload)
    }

    private static func failure(_ frame: Frame) throws -> RemoteFailure {
        try #require(frame.kind == .failure)
        return try MessageCoding.decode(
            RemoteFailure.self,
            from: frame.payload,
            within: MessageBounds(MessagingConfiguration())
        )
    }

    // MARK: The introduction

    @Test func `a client that never introduces itself is dropped after the limit`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        await network.eventLoop.advanceTime(by: .milliseconds(1999))
        #expect(peer.end.values.isEmpty)
        await network.eventLoop.advanceTime(by: .milliseconds(1))
        _ = await peer.end.values(1)
        #expect(server.clients.isEmpty)
        #expect(clients.joined.values.isEmpty, "it was never a client")
        await server.stop()
    }

    @Test func `half an introduction is none`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.send(ByteBuffer(bytes: [0, 0, 0, 100, Frame.version, 1, 0]))
        await network.eventLoop.advanceTime(by: .seconds(2))
        _ = await peer.end.values(1)
        await server.stop()
    }

    @Test func `a message before the introduction ends the stream`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.send(Self.note("x"))
        _ = await peer.end.values(1)
        #expect(heard.values.isEmpty)
        await server.stop()
    }

    @Test func `a second introduction ends the stream`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        let introduction = Handshake.Introduction(accepts: [], maximumFrameByteCount: 1)
        try await peer.send(Frame(.hello, payload: MessageCoding.encode(introduction)))
        #expect(await clients.left.values(1) == [.violation("a second introduction.")])
        await server.stop()
    }

    @Test(arguments: [
        ByteBuffer(), ByteBuffer(cbor: "f6"), ByteBuffer(cbor: "a0"),
        // {"accepts": 7, "maximumFrameByteCount": 1}
        ByteBuffer(cbor: "a2 67 61636365707473 07 75 6d6178696d756d4672616d6542797465436f756e74 01"),
    ])
    func `an introduction that cannot be read ends the stream`(payload: ByteBuffer) async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.send(Frame(.hello, payload: payload))
        _ = await peer.end.values(1)
        await server.stop()
    }

    @Test func `limits that make no sense are the peer's own loss`() async throws {
        let server = try await startServer()
        for limit in [Int.min, -1, 0, 10] {
            let peer = try await peer()
            try await peer.introduce(accepting: [Note.messageType], maximumFrameByteCount: limit)
            let connection = try #require(clients.joined.values.last)
            await #expect(throws: MessagingError.self) { try await connection.send(Note(text: "x")) }
            await peer.close()
        }
        await server.stop()
    }

    // MARK: Garbage

    @Test func `garbage ends its own stream and no other`() async throws {
        let server = try await startServer()
        let other = try await peer()
        try await other.introduce()
        var generator = SplitMix64(seed: 5)
        for isIntroduced in [false, true] {
            for _ in 0..<50 {
                let peer = try await peer()
                if isIntroduced { try await peer.introduce() }
                // Nothing that begins with 0xFF is a length that is accepted.
                let bytes = [0xFF] + (0..<100).map { _ in UInt8.random(in: 0...255, using: &generator) }
                try await peer.send(ByteBuffer(bytes: bytes))
                _ = await peer.end.values(1)
            }
        }
        try await other.send(Self.note("still here"))
        #expect(await heard.values(1) == ["still here"])
        await server.stop()
    }

    @Test func `a frame beyond the limit ends the stream with the size`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        try await peer.send(ByteBuffer(integer: UInt32(1 << 30)))
        #expect(await clients.left.values(1) == [.violation("a frame of 1073741824 bytes; 1048576 are accepted.")])
        await server.stop()
    }

    @Test func `a peer of another version of the protocol is told from one that breaks it`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        var bytes = ByteBuffer(integer: UInt32(20))
        bytes.writeInteger(UInt8(9))
        try await peer.send(bytes)
        #expect(await clients.left.values(1) == [.incompatible(version: 9)])
        await server.stop()
    }

    // MARK: Types

    @Test func `an unknown type or version is told to its sender, and nothing of it is decoded`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        let types = [MessageType(name: "test.other"), MessageType(name: "test.note", version: 2), nil]
        for (index, type) in types.enumerated() {
            // No CBOR: a decoder would say so.
            try await peer.send(Self.message(ByteBuffer(cbor: "ff ff"), type: type))
            let answer = await peer.frames.values(index + 2)[index + 1]
            #expect(answer.correlation == 9)
            #expect(answer.type == type)
            #expect(try Self.failure(answer).code == .unknownType)
        }
        try await peer.send(Self.note("known"))
        #expect(await heard.values(1) == ["known"])
        await server.stop()
    }

    @Test func `a known type that cannot be decoded, or goes beyond the bounds, is told to its sender`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        let payloads = [
            ByteBuffer(), ByteBuffer(cbor: "a0"), ByteBuffer(cbor: "a1 64 74657874 01"),
            ByteBuffer(repeating: 0x81, count: 5000), try MessageCoding.encode([Bool](repeating: true, count: 70_000)),
        ]
        for (index, payload) in payloads.enumerated() {
            try await peer.send(Self.message(payload))
            #expect(try Self.failure(await peer.frames.values(index + 2)[index + 1]).code == .undecodable)
        }
        #expect(heard.values.isEmpty)
        await server.stop()
    }

    @Test func `a request sent as a message, and a message as a request, are refused`() async throws {
        var handlers = MessageHandlers.sums
        handlers.on(Note.self) { _, _ in }
        let server = try await startServer(handlers: handlers)
        let peer = try await peer()
        try await peer.introduce()
        try await peer.send(Self.message(MessageCoding.encode(Sum(terms: [])), type: Sum.messageType))
        #expect(try Self.failure(await peer.frames.values(2)[1]).code == .unknownType)
        let request = Frame(.request, correlation: 1, type: Note.messageType, payload: ByteBuffer(cbor: "a0"))
        try await peer.send(request)
        #expect(try Self.failure(await peer.frames.values(3)[2]).code == .unknownType)
        await server.stop()
    }

    @Test func `a failure of a plain message is heard where one listens for it`() async throws {
        let failures = Record<RemoteFailure>()
        var handlers = MessageHandlers.notes(into: heard)
        handlers.onFailure { failure, _, _ in failures.add(failure) }
        let server = try await startServer(handlers: handlers)
        let peer = try await peer()
        try await peer.introduce()
        let payload = try MessageCoding.encode(RemoteFailure(.undecodable, "what is this?"))
        // Of a request that nobody waits for any more.
        try await peer.send(Frame(.failure, correlation: 1, type: Sum.messageType, payload: payload))
        try await peer.send(Frame(.failure, type: Note.messageType, payload: payload))
        try await peer.send(Self.note("and then"))
        #expect(await heard.values(1) == ["and then"])
        #expect(await failures.values(1) == [RemoteFailure(.undecodable, "what is this?")])
        await server.stop()
    }

    // MARK: Requests

    @Test func `two requests with one number end the stream`() async throws {
        let (begun, cancelled) = (Gate(), Gate())
        let server = try await startServer(handlers: .hanging(begun: begun, cancelled: cancelled))
        let peer = try await peer()
        try await peer.introduce()
        let payload = try MessageCoding.encode(Sum(terms: []))
        let request = Frame(.request, correlation: 1, type: Sum.messageType, payload: payload)
        try await peer.send(request)
        await begun.passed()
        try await peer.send(request)
        #expect(await clients.left.values(1) == [.violation("two requests with one number.")])
        await cancelled.passed()
        await server.stop()
    }

    @Test func `answers, failures and cancellations of nothing are of no consequence`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        for kind in [Frame.Kind.reply, .failure, .cancel, .unsubscribe] {
            try await peer.send(Frame(kind, correlation: .max))
        }
        try await peer.send(Self.note("still here"))
        #expect(await heard.values(1) == ["still here"])
        await server.stop()
    }

    @Test func `failures that nobody reads do not heap up`() async throws {
        var configuration = MessagingConfiguration()
        configuration.sendBufferByteCount = 1000
        configuration.receiveBufferByteCount = 1000
        let server = try await startServer(configuration)
        let side = InProcessSide(on: network.eventLoop)
        let peer = try await RawPeer.connect(to: "core", over: InProcessTransport(network: network, side: side))
        try await peer.introduce()
        await side.holdReading(true)
        let sent = Record<Int>()
        let unknown = Self.message(ByteBuffer(), type: MessageType(name: "test.other"))
        let sending = Task {
            for number in 0..<40_000 {
                try await peer.send(unknown)
                sent.add(number)
            }
        }
        // What two streams' buffers, one read and the outbox hold; then its own stream is not read on.
        _ = await sent.values(8000)
        for _ in 0..<200 { await Task.yield() }
        #expect(sent.values.count < 20_000)
        while clients.left.values.isEmpty {
            await network.eventLoop.advanceTime(by: .milliseconds(100))
            await Task.yield()
        }
        #expect(clients.left.values == [.stalled(.seconds(2))])
        sending.cancel()
        _ = try? await sending.value
        await server.stop()
    }

    // MARK: Topics and descriptors

    @Test func `more topics than allowed end the stream`() async throws {
        var configuration = MessagingConfiguration()
        configuration.maximumTopics = 3
        let server = try await startServer(configuration)
        let peer = try await peer()
        try await peer.introduce()
        for topic in ["a", "b", "c", "a"] { try await peer.send(Frame(.subscribe, topic: topic)) }
        try await peer.send(Frame(.unsubscribe, topic: "a"))
        try await peer.send(Frame(.subscribe, topic: "d"))
        #expect(clients.left.values.isEmpty)
        try await peer.send(Frame(.subscribe, topic: "e"))
        #expect(await clients.left.values(1) == [.violation("more than 3 topics.")])
        await server.stop()
    }

    @Test func `descriptors that are announced and do not come end the stream`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        var frame = try Self.note("x")
        frame.fileCount = 1
        try await peer.send(frame)
        #expect(await clients.left.values(1) == [.violation("descriptors before a socket for them.")])
        await server.stop()
    }

    @Test func `a connection for descriptors that was not made ends the stream`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        try await peer.send(Frame(.attachmentsOpen))
        #expect(await clients.left.values(1) == [.violation("no connection for descriptors was made.")])
        await server.stop()
    }

    @Test func `a connection for descriptors with a token that nobody gave is not taken`() async throws {
        let server = try await startServer()
        let peer = try await peer()
        try await peer.introduce()
        let stranger = transport.connectAttachments(to: "core", token: Array(repeating: 0, count: 16))
        try await peer.send(Frame(.attachmentsOpen))
        #expect(await clients.left.values(1) == [.violation("no connection for descriptors was made.")])
        withExtendedLifetime(stranger) {}
        await server.stop()
    }

    // MARK: Servers that do not speak as they should

    private func clientError(_ answer: Frame?) async throws -> Invalidation? {
        let accepted = Record<RawPeer>()
        let listener = try await RawPeer.serve("raw", over: transport) { accepted.add($0) }
        let connecting = Task {
            _ = try await MessageClient.connect(
                to: "raw",
                over: transport,
                handlers: MessageHandlers(),
                configuration: MessagingConfiguration(),
                waitingForServer: nil,
                reconnection: nil,
                changed: nil
            )
        }
        let server = await accepted.values(1)[0]
        #expect(await server.frames.values(1)[0].kind == .hello)
        if let answer { try await server.send(answer) } else { await network.eventLoop.advanceTime(by: .seconds(2)) }
        let result = await connecting.result
        await listener.close()
        await server.close()
        do {
            try result.get()
            return nil
        } catch {
            return try #require(error as? Invalidation)
        }
    }

    @Test func `a refusal is told with its reason`() async throws {
        let refusal = try Frame(.refusal, payload: MessageCoding.encode(Handshake.Refusal(reason: "not today")))
        #expect(try await clientError(refusal) == .refused("not today"))
    }

    @Test func `a server that says nothing is given up after the limit`() async throws {
        #expect(try await clientError(nil) == .handshakeTimedOut(.seconds(2)))
    }

    @Test func `a server that begins with something else breaks the protocol`() async throws {
        #expect(try await clientError(Frame(.reply)) == .violation("a reply before the introduction."))
    }
}
