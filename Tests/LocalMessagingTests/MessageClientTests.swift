import LocalMessagingTesting
import Testing

@testable import LocalMessaging

/// Clients that lose their servers, in virtual time.
struct MessageClientTests {
    let group = InProcessGroup()
    let changes = Record<String>()

    func note(_ change: MessageClient.Change) {
        switch change {
        case .interrupted(let reason): changes.add("interrupted: \(reason)")
        case .reconnected: changes.add("reconnected")
        case .invalidated(let reason): changes.add("invalidated: \(reason)")
        }
    }

    @Test func `without a server the error says so at once`() async throws {
        await #expect(throws: Invalidation.noServer("core")) { try await group.connect(to: "core") }
    }

    @Test func `a server that comes later is waited for`() async throws {
        let connecting = Task { try await group.connect(to: "core", waitingForServer: .seconds(10)) }
        await group.advanceTime(by: .seconds(3))
        let server = try await group.startServer(name: "core", handlers: .sums)
        await group.advanceTime(until: [connecting])
        let client = try await connecting.value
        #expect(try await client.request(Sum(terms: [1, 2])) == 3)
        await client.close()
        await server.stop()
    }

    @Test func `a server that does not come is waited for up to the limit`() async throws {
        let connecting = Task { try await group.connect(to: "core", waitingForServer: .seconds(1)) }
        await group.advanceTime(until: [connecting])
        await #expect(throws: Invalidation.noServer("core")) { try await connecting.value }
    }

    @Test func `waiting for a server ends when its task is cancelled`() async throws {
        let connecting = Task { try await group.connect(to: "core", waitingForServer: .seconds(3600)) }
        connecting.cancel()
        await #expect(throws: CancellationError.self) { try await connecting.value }
    }

    @Test(arguments: [true, false])
    func `a client finds its server's successor, and is subscribed as before`(isKilled: Bool) async throws {
        let heard = Record<String>()
        let first = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(
            to: "core",
            handlers: .notes(into: heard),
            reconnection: .backingOff,
            changed: note
        )
        try client.subscribe(to: "calls")
        try client.subscribe(to: "rooms")
        client.unsubscribe(from: "rooms")
        if isKilled { await group.kill(first) } else { await first.stop() }
        let reason = isKilled ? Invalidation.peerDied : .closedByPeer
        #expect(await changes.values(1) == ["interrupted: \(reason)"])
        await #expect(throws: MessagingError.invalidated(.noServer("core"))) {
            try await client.request(Sum(terms: []))
        }
        await group.advanceTime(by: .seconds(5))

        let second = try await group.startServer(name: "core", handlers: .sums)
        await group.advanceTime(inStepsOf: .milliseconds(100)) { changes.values.count == 2 }
        #expect(changes.values.last == "reconnected")
        #expect(try await client.request(Sum(terms: [1])) == 1)
        #expect(try await second.broadcast(Note(text: "rooms"), topic: "rooms") == 0)
        #expect(try await second.broadcast(Note(text: "calls"), topic: "calls") == 1)
        #expect(await heard.values(1) == ["calls"])
        await client.close()
        #expect(await changes.values(3).last == "invalidated: \(Invalidation.closed)")
        await second.stop()
        #expect(changes.values.count == 3)
    }

    @Test func `a client without reconnection is over with its server, and hears it once`() async throws {
        let server = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(to: "core", changed: note)
        await group.kill(server)
        #expect(await client.invalidated() == .peerDied)
        #expect(await client.invalidated() == .peerDied)
        #expect(await changes.values(1) == ["invalidated: \(Invalidation.peerDied)"])
        #expect(client.server == nil)
        #expect(throws: MessagingError.invalidated(.peerDied)) { try client.subscribe(to: "calls") }
        await client.close()
        #expect(changes.values.count == 1)
    }

    @Test func `a client that is closed while it looks for a server ends, and does not come back`() async throws {
        let first = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(to: "core", reconnection: .backingOff, changed: note)
        await group.kill(first)
        _ = await changes.values(1)
        await client.close()
        #expect(await client.invalidated() == .closed)
        let second = try await group.startServer(name: "core", handlers: .sums)
        for _ in 0..<20 { await group.advanceTime(by: .seconds(1)) }
        #expect(second.clients.isEmpty)
        await second.stop()
    }

    @Test func `a successor that refuses is the end`() async throws {
        let first = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(to: "core", reconnection: .backingOff, changed: note)
        await group.kill(first)
        _ = await changes.values(1)
        let second = try await group.startServer(name: "core", handlers: .sums, shouldAccept: { _ in "not you" })
        await group.advanceTime(inStepsOf: .milliseconds(100)) { changes.values.count == 2 }
        #expect(await client.invalidated() == .refused("not you"))
        await second.stop()
    }

    @Test func `a topic that was not subscribed to, of any length, may be taken back`() async throws {
        let server = try await group.startServer(name: "core", handlers: .sums)
        let client = try await group.connect(to: "core", handlers: .notes(into: Record()))
        let topic = String(repeating: "x", count: 256)
        #expect(throws: MessagingError.topicTooLong(byteCount: 256)) { try client.subscribe(to: topic) }
        client.unsubscribe(from: topic)
        client.unsubscribe(from: "calls")
        #expect(try await client.request(Sum(terms: [1])) == 1)
        await #expect(throws: MessagingError.topicTooLong(byteCount: 256)) {
            try await server.clients[0].send(Note(text: ""), topic: topic)
        }
        await client.close()
        await server.stop()
    }
}
