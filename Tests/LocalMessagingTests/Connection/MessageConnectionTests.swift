import LocalMessaging
import LocalMessagingTesting
import Testing

/// Requests, messages and their ends, between two sides in one process and in virtual time.
struct MessageConnectionTests {
    let group = InProcessGroup()

    // MARK: Requests

    @Test func `a request that is not answered in time fails, and its handler is cancelled`() async throws {
        let (begun, cancelled) = (Gate(), Gate())
        let server = try await group.startServer(name: "core", handlers: .hanging(begun: begun, cancelled: cancelled))
        let client = try await group.connect(to: "core")
        let request = Task { try await client.request(Sum(terms: []), timeout: .seconds(7)) }
        await begun.passed()
        await group.advanceTime(by: .seconds(7))
        await #expect(throws: MessagingError.timedOut(.seconds(7))) { try await request.value }
        await cancelled.passed()
        await client.close()
        await server.stop()
    }

    @Test func `a request is waited for up to its limit`() async throws {
        let (begun, gate) = (Gate(), Gate())
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { _, _ in
            begun.open()
            await gate.passed()
            return 5
        }
        let server = try await group.startServer(name: "core", handlers: handlers)
        let client = try await group.connect(to: "core")
        async let answer = client.request(Sum(terms: []), timeout: .seconds(7))
        await begun.passed()
        await group.advanceTime(by: .milliseconds(6999))
        gate.open()
        #expect(try await answer == 5)
        await client.close()
        await server.stop()
    }

    @Test func `a cancelled request ends at once, and its handler is cancelled`() async throws {
        let (begun, cancelled) = (Gate(), Gate())
        let server = try await group.startServer(name: "core", handlers: .hanging(begun: begun, cancelled: cancelled))
        let client = try await group.connect(to: "core")
        let request = Task { try await client.request(Sum(terms: []), timeout: .seconds(7)) }
        await begun.passed()
        request.cancel()
        await #expect(throws: CancellationError.self) { try await request.value }
        await cancelled.passed()
        await client.close()
        await server.stop()
    }

    @Test func `a request that is cancelled before its turn is not served`() async throws {
        let gate = Gate()
        let served = Record<Int>()
        var handlers = MessageHandlers()
        handlers.on(Note.self) { _, _ in await gate.passed() }
        handlers.reply(to: Sum.self) { request, _ in
            served.add(request.terms[0])
            return 0
        }
        let server = try await group.startServer(name: "core", handlers: handlers)
        let client = try await group.connect(to: "core")
        try await client.send(Note(text: "holds up what follows it"))
        let late = Task { try await client.request(Sum(terms: [1]), timeout: .seconds(1)) }
        await group.advanceTime(until: [late])
        await #expect(throws: MessagingError.timedOut(.seconds(1))) { try await late.value }
        // The server has heard of it.
        await group.advanceTime(by: .zero)
        gate.open()
        _ = try await client.request(Sum(terms: [2]))
        #expect(served.values == [2])
        await client.close()
        await server.stop()
    }

    @Test func `what a handler throws is told to who asked`() async throws {
        struct Odd: Error {}
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { request, _ in
            guard request.terms.isEmpty else { throw RemoteFailure(.handlerFailed, "no terms are wanted") }
            throw Odd()
        }
        let server = try await group.startServer(name: "core", handlers: handlers)
        let client = try await group.connect(to: "core")
        await #expect(throws: MessagingError.failed(RemoteFailure(.handlerFailed, "no terms are wanted"))) {
            try await client.request(Sum(terms: [1]))
        }
        await #expect(throws: MessagingError.failed(RemoteFailure(.handlerFailed, "Odd()"))) {
            try await client.request(Sum(terms: []))
        }
        await client.close()
        await server.stop()
    }

    @Test(arguments: ["why? ", "👩‍👩‍👧‍👦", "e" + String(repeating: "\u{301}", count: 1000)])
    func `an endless reason is told as far as it fits`(part: String) async throws {
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { _, _ in
            throw RemoteFailure(.handlerFailed, String(repeating: part, count: 1 << 16))
        }
        let server = try await group.startServer(name: "core", handlers: handlers)
        let client = try await group.connect(to: "core")
        let error = await #expect(throws: MessagingError.self) { try await client.request(Sum(terms: [])) }
        let bytes = try #require(error).description.utf8
        #expect((509...512).contains(bytes.count))
        #expect(bytes.elementsEqual(String(repeating: part, count: 512).utf8.prefix(bytes.count)))
        await client.close()
        await server.stop()
    }

    @Test func `no more requests wait than allowed`() async throws {
        let (begun, cancelled) = (Gate(), Gate())
        let server = try await group.startServer(name: "core", handlers: .hanging(begun: begun, cancelled: cancelled))
        var configuration = MessagingConfiguration()
        configuration.maximumPendingRequests = 1
        let client = try await group.connect(to: "core", configuration: configuration)
        let first = Task { try await client.request(Sum(terms: [])) }
        await begun.passed()
        await #expect(throws: MessagingError.tooManyRequests(limit: 1)) { try await client.request(Sum(terms: [])) }
        first.cancel()
        await cancelled.passed()
        await client.close()
        await server.stop()
    }

    @Test func `no more requests are served at once than allowed, and any that ends lets the next begin`() async throws
    {
        let gates = [Gate(), Gate(), Gate()]
        let begun = Record<Int>()
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { request, _ in
            begun.add(request.terms[0])
            await gates[request.terms[0]].passed()
            return request.terms[0]
        }
        var configuration = MessagingConfiguration()
        configuration.maximumConcurrentRequests = 2
        let server = try await group.startServer(name: "core", handlers: handlers, configuration: configuration)
        let client = try await group.connect(to: "core")
        try await withThrowingTaskGroup(of: Int.self) { tasks in
            for number in 0..<3 {
                tasks.addTask { try await client.request(Sum(terms: [number])) }
                _ = await begun.values(min(number + 1, 2))
            }
            // The first to begin ends first, the second hangs on.
            gates[0].open()
            #expect(await begun.values(3) == [0, 1, 2])
            gates[2].open()
            gates[1].open()
            let answers = try await tasks.reduce(into: Set()) { $0.insert($1) }
            #expect(answers == [0, 1, 2])
        }
        await client.close()
        await server.stop()
    }

    // MARK: Types

    @Test func `a type or version that the peer does not accept is refused before it is sent`() async throws {
        struct Newer: LocalMessage {
            static let messageType = MessageType(name: "test.note", version: 2)
        }
        struct Other: LocalMessage {
            static let messageType = MessageType(name: "test.other")
        }
        let server = try await group.startServer(name: "core", handlers: .notes(into: Record()))
        let client = try await group.connect(to: "core")
        await #expect(throws: MessagingError.notAccepted(Newer.messageType, accepted: [1])) {
            try await client.send(Newer())
        }
        await #expect(throws: MessagingError.notAccepted(Other.messageType, accepted: [])) {
            try await client.send(Other())
        }
        await client.close()
        await server.stop()
    }

    @Test func `a message larger than the peer takes is refused before it is sent`() async throws {
        var configuration = MessagingConfiguration()
        configuration.maximumFrameByteCount = 1000
        let record = Record<String>()
        let server = try await group.startServer(
            name: "core",
            handlers: .notes(into: record),
            configuration: configuration
        )
        let client = try await group.connect(to: "core")
        let error = await #expect(throws: MessagingError.self) {
            try await client.send(Note(text: String(repeating: "x", count: 1000)))
        }
        #expect(error?.description.contains("larger than the 1000 that the peer accepts") ?? false)
        try await client.send(Note(text: "fits"))
        #expect(await record.values(1) == ["fits"])
        await client.close()
        await server.stop()
    }

    // MARK: Order

    @Test func `messages of one sender are handled one after the other, in order`() async throws {
        let record = Record<String>()
        var handlers = MessageHandlers()
        handlers.on(Note.self) { note, _ in
            await Task.yield()
            record.add(note.text)
        }
        let server = try await group.startServer(name: "core", handlers: handlers)
        let client = try await group.connect(to: "core")
        for number in 0..<1000 { try await client.send(Note(text: "\(number)")) }
        #expect(await record.values(1000) == (0..<1000).map(String.init))
        await client.close()
        await server.stop()
    }

    @Test func `two clients talk to each other through their server`() async throws {
        let heard = [Record<String>(), Record<String>()]
        var handlers = MessageHandlers()
        let clients = ClientRecord()
        handlers.on(Note.self) { note, context in
            for client in clients.joined.values where client !== context.connection { try? await client.send(note) }
        }
        let server = try await group.startServer(name: "core", handlers: handlers, clientChanged: clients.note)
        let one = try await group.connect(to: "core", handlers: .notes(into: heard[0]))
        let other = try await group.connect(to: "core", handlers: .notes(into: heard[1]))
        _ = await clients.joined.values(2)
        for number in 0..<100 {
            try await one.send(Note(text: "one \(number)"))
            try await other.send(Note(text: "other \(number)"))
        }
        #expect(await heard[0].values(100) == (0..<100).map { "other \($0)" })
        #expect(await heard[1].values(100) == (0..<100).map { "one \($0)" })
        await one.close()
        await other.close()
        await server.stop()
    }

    // MARK: The end

    @Test func `the death of a peer is told once, and fails what waits on it`() async throws {
        let (begun, cancelled) = (Gate(), Gate())
        let clients = ClientRecord()
        let server = try await group.startServer(
            name: "core",
            handlers: .hanging(begun: begun, cancelled: cancelled),
            clientChanged: clients.note
        )
        let client = try await group.connect(to: "core")
        let request = Task { try await client.request(Sum(terms: [])) }
        await begun.passed()
        let ends = Record<Invalidation>()
        clients.joined.values[0].onInvalidation { ends.add($0) }
        await group.kill(client)
        await #expect(throws: MessagingError.invalidated(.peerDied)) { try await request.value }
        await cancelled.passed()
        #expect(await clients.left.values(1) == [.peerDied])
        #expect(await ends.values(1) == [.peerDied])
        await server.stop()
        #expect(clients.left.values.count == 1)
        #expect(ends.values.count == 1)
    }

    @Test func `a handler for the end that comes too late is called at once`() async throws {
        let clients = ClientRecord()
        let server = try await group.startServer(name: "core", handlers: .sums, clientChanged: clients.note)
        let client = try await group.connect(to: "core")
        let connection = await clients.joined.values(1)[0]
        await client.close()
        #expect(await connection.invalidated() == .closedByPeer)
        let ends = Record<Invalidation>()
        connection.onInvalidation { ends.add($0) }
        #expect(ends.values == [.closedByPeer])
        #expect(connection.invalidation == .closedByPeer)
        await #expect(throws: MessagingError.self) { try await connection.send(Note(text: "")) }
        await server.stop()
    }

    @Test func `what was sent before an orderly end arrives before it`() async throws {
        let record = Record<String>()
        let clients = ClientRecord()
        let server = try await group.startServer(
            name: "core",
            handlers: .notes(into: record),
            clientChanged: clients.note
        )
        let client = try await group.connect(to: "core")
        for number in 0..<500 { try await client.send(Note(text: "\(number)")) }
        await client.close()
        #expect(await record.values(500) == (0..<500).map(String.init))
        #expect(await clients.left.values(1) == [.closedByPeer])
        #expect(await client.invalidated() == .closed)
        await #expect(throws: MessagingError.invalidated(.closed)) { try await client.send(Note(text: "")) }
        await server.stop()
    }

    @Test func `an orderly end does not wait for ever for a peer that reads nothing`() async throws {
        let server = try await group.startServer(name: "core", handlers: .notes(into: Record()))
        let client = try await group.connect(to: "core")
        await group.holdReading(of: server)
        for _ in 0..<300 { try await client.send(Note(text: String(repeating: "x", count: 1000))) }
        let closing = Task { await client.close() }
        await group.advanceTime(until: [closing])
        #expect(await client.invalidated() == .stalled(.seconds(2)), "not all that was sent was taken")
        await group.kill(server)
    }
}

extension InProcessGroup {
    /// Moves the time on until all tasks have ended.
    func advanceTime<Success: Sendable, Failure: Error>(until tasks: [Task<Success, Failure>]) async {
        let ended = Record<Void>()
        for task in tasks {
            Task {
                _ = await task.result
                ended.add(())
            }
        }
        await advanceTime(inStepsOf: .milliseconds(100)) { ended.values.count == tasks.count }
    }
}

extension MessageHandlers {
    /// Answers `Sum` never, and hears of its cancellation.
    static func hanging(begun: Gate, cancelled: Gate) -> MessageHandlers {
        var handlers = MessageHandlers()
        handlers.reply(to: Sum.self) { _, _ in
            begun.open()
            // Until it is cancelled.
            for await _ in AsyncStream<Never>.makeStream().stream {}
            cancelled.open()
            throw CancellationError()
        }
        return handlers
    }
}
