import TestSupport
import Testing

@testable import LocalMessaging
@testable import LocalMessagingTesting

/// A client that connects again while another thread, which waits for nothing, uses it.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct ReconnectionRealTimeTests {
    private let tests = ReconnectionTests()

    @Test func `a subscription that ends while the client connects again has ended at the server, too`() async throws {
        let topics = (0..<250).map { "topic \($0)" }
        let clients = ClientRecord()
        for round in 0..<10 {
            let first = try await tests.startServer()
            let client = try await tests.connect(over: tests.transport)
            for topic in topics { try client.subscribe(to: topic) }
            await first.stop()
            while client.server != nil { await Task.yield() }
            let second = try await tests.startServer(clients)
            let unsubscribing = Task.detached {
                while client.server == nil {}
                for topic in topics.reversed() { client.unsubscribe(from: topic) }
            }
            await tests.network.eventLoop.advanceTime(until: { clients.joined.values.count > round })
            await unsubscribing.value
            await client.close()
            let connection = clients.joined.values[round]
            _ = await connection.invalidated()
            #expect(topics.filter { connection.isSubscribed(to: $0) } == [])
            await second.stop()
        }
    }
}
