import LocalMessaging
import LocalMessagingTesting
import Testing

/// Senders that outrun their peer, between two sides in one process and in virtual time.
struct BackPressureTests {
    let group = InProcessGroup()

    /// A server that reads nothing, and a client of it.
    private func connectToHeldServer(
        _ handlers: MessageHandlers,
        sendBufferByteCount: Int
    ) async throws -> (MessageServer, MessageClient) {
        let server = try await group.startServer(name: "core", handlers: handlers)
        var configuration = MessagingConfiguration()
        configuration.sendBufferByteCount = sendBufferByteCount
        configuration.stallLimit = .seconds(100_000)
        let client = try await group.connect(to: "core", configuration: configuration)
        await group.holdReading(of: server)
        return (server, client)
    }

    /// Sends notes, each its number and `byteCount` bytes; notes the numbers of those that are sent.
    private func send(
        _ count: Int,
        of byteCount: Int,
        by client: MessageClient,
        noting sent: Record<Int>
    ) -> Task<Void, any Error> {
        Task {
            for number in 0..<count {
                try await client.send(Note(text: "\(number) " + String(repeating: "x", count: byteCount)))
                sent.add(number)
            }
        }
    }

    /// Time for a sender to get further than it may.
    private func passTime() async {
        for _ in 0..<50 {
            await group.advanceTime(by: .milliseconds(100))
            await Task.yield()
        }
    }

    @Test func `senders are suspended while the peer reads nothing, and go on in their order when it does`()
        async throws
    {
        let (record, sent) = (Record<String>(), Record<Int>())
        let (server, client) = try await connectToHeldServer(.notes(into: record), sendBufferByteCount: 10_000)
        let sending = send(3000, of: 200, by: client, noting: sent)
        // What the stream and the outbox hold; the sender gets no further however long it takes.
        let room = (212_992 + 10_000) / 230
        _ = await sent.values(room - 100)
        await passTime()
        #expect(sent.values.count < room + 100)
        #expect(record.values.isEmpty)
        await group.holdReading(of: server, false)
        try await sending.value
        #expect(await record.values(3000).map { Int($0.prefix { $0 != " " }) } == Array(0..<3000))
        await client.close()
        await server.stop()
    }

    @Test func `a request's time runs also while it waits for room`() async throws {
        let (server, client) = try await connectToHeldServer(.sums, sendBufferByteCount: 1)
        // The first ones fill the stream; those after them wait for room.
        let requests = (0..<20).map { _ in
            Task { try await client.request(Sum(terms: Array(repeating: 1, count: 20_000)), timeout: .seconds(1)) }
        }
        await group.advanceTime(until: requests)
        for request in requests {
            await #expect(throws: MessagingError.timedOut(.seconds(1))) { try await request.value }
        }
        await group.kill(client)
        await server.stop()
    }

    @Test func `a send that is cancelled while it waits for room sends nothing`() async throws {
        let (record, sent) = (Record<String>(), Record<Int>())
        let (server, client) = try await connectToHeldServer(.notes(into: record), sendBufferByteCount: 1)
        let sending = send(10_000, of: 10_000, by: client, noting: sent)
        _ = await sent.values(20)
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        let count = sent.values.count
        await group.holdReading(of: server, false)
        try await client.send(Note(text: "last"))
        let heard = await record.values(count + 1)
        #expect(heard.count == count + 1)
        #expect(heard.last == "last")
        await client.close()
        await server.stop()
    }

    @Test func `while handlers are slow no more is read than the limit, and nothing is lost`() async throws {
        let gate = Gate()
        let record = Record<String>()
        var handlers = MessageHandlers()
        handlers.on(Note.self) { note, _ in
            await gate.passed()
            record.add(note.text)
        }
        var configuration = MessagingConfiguration()
        configuration.receiveBufferByteCount = 10_000
        configuration.sendBufferByteCount = 10_000
        configuration.stallLimit = .seconds(60)
        let server = try await group.startServer(name: "core", handlers: handlers, configuration: configuration)
        let client = try await group.connect(to: "core", configuration: configuration)
        let sent = Record<Int>()
        let sending = send(5000, of: 200, by: client, noting: sent)
        // A read of the stream's whole buffer, another that waits in it, the outbox; not more.
        let room = (2 * 212_992 + 10_000) / 230
        // At least what the stream alone holds, of frames that have fewer than 300 bytes.
        _ = await sent.values(212_992 / 300)
        await passTime()
        #expect(sent.values.count < room + 200)
        gate.open()
        try await sending.value
        #expect(await record.values(5000).map { Int($0.prefix { $0 != " " }) } == Array(0..<5000))
        await client.close()
        await server.stop()
    }
}
