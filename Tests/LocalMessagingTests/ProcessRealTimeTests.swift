import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

/// Faults of real processes.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct ProcessRealTimeTests {
    let scratch: Scratch
    let group: GroupContainer

    init() throws {
        scratch = try Scratch()
        group = try GroupContainer(directory: scratch.path)
    }

    private var handlers: MessageHandlers {
        var handlers = MessageHandlers.sums
        handlers.on(Hello.self) { _, _ in }
        return handlers
    }

    @Test func `a server that is killed fails what waits for it, once, and at once`() async throws {
        let server = try PeerProcess("serve", scratch.path, "core")
        #expect(await server.line() == "ready")
        let changes = Record<Invalidation>()
        let client = try await MessageClient.connect(
            to: "core",
            in: group,
            changed: {
                if case .invalidated(let reason) = $0 { changes.add(reason) }
            }
        )
        let requests = (0..<10).map { _ in Task { try await client.request(NeverAnswered(), timeout: .seconds(60)) } }
        _ = try await client.request(WhoAreYou())
        await server.kill()
        for request in requests {
            await #expect(throws: MessagingError.invalidated(.peerDied)) { try await request.value }
        }
        #expect(await client.invalidated() == .peerDied)
        #expect(changes.values == [.peerDied])
    }

    @Test func `a client that is killed is told of once, and the others go on`() async throws {
        let clients = ClientRecord()
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: handlers,
            clientChanged: clients.note
        )
        let other = try await MessageClient.connect(to: "core", in: group)
        let peer = try PeerProcess("connect", scratch.path, "core")
        let connection = await clients.joined.values(2)[1]
        let request = Task { try await connection.request(NeverAnswered(), timeout: .seconds(60)) }
        // An answer to the second says that the first is there.
        #expect(try await connection.request(WhoAreYou()) == peer.processID)
        await peer.kill()
        await #expect(throws: MessagingError.invalidated(.peerDied)) { try await request.value }
        #expect(await clients.left.values(1) == [.peerDied])
        #expect(try await other.request(Sum(terms: [1, 1])) == 2)
        await other.close()
        await server.stop()
        #expect(clients.left.values == [.peerDied, .closedByPeer])
    }

    @Test func `a client that is stopped is dropped after the limit, and the others get everything`() async throws {
        var configuration = MessagingConfiguration()
        configuration.stallLimit = .milliseconds(300)
        configuration.sendBufferByteCount = 100_000
        let clients = ClientRecord()
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: handlers,
            configuration: configuration,
            clientChanged: clients.note
        )
        let peer = try PeerProcess("listen", scratch.path, "core")
        #expect(await peer.line() == "ready")
        let heard = Record<Int>()
        var noting = MessageHandlers()
        noting.on(Note.self) { note, _ in heard.add(note.text.utf8.count) }
        let other = try await MessageClient.connect(to: "core", in: group, handlers: noting)
        kill(peer.processID, SIGSTOP)
        // Three times what the stream and the outbox hold.
        let text = String(repeating: "x", count: 10_000)
        for _ in 0..<100 { try await server.broadcast(Note(text: text)) }
        #expect(await clients.left.values(1) == [.stalled(.milliseconds(300))])
        #expect(await heard.values(100) == Array(repeating: 10_000, count: 100))
        #expect(server.clients.count == 1)
        await other.close()
        await server.stop()
    }

    @Test func `a server without a descriptor to spare serves those that it has, and the next once one is free`()
        async throws
    {
        // Enough for itself and some clients.
        let server = try PeerProcess("serve", scratch.path, "core", "40")
        #expect(await server.line() == "ready")
        var clients: [MessageClient] = []
        var refused: Invalidation?
        while refused == nil, clients.count < 60 {
            do {
                clients.append(try await MessageClient.connect(to: "core", in: group))
            } catch {
                refused = error as? Invalidation
            }
        }
        #expect(refused == .handshakeTimedOut(.seconds(2)))
        #expect(clients.count > 2)
        for client in clients { #expect(try await client.request(WhoAreYou()) == server.processID) }
        for _ in 0..<3 { await clients.removeLast().close() }
        let next = try await MessageClient.connect(to: "core", in: group, waitingForServer: .seconds(20))
        #expect(try await next.request(WhoAreYou()) == server.processID)
        await next.close()
        for client in clients { await client.close() }
    }

    @Test func `a client without a descriptor to spare hears so`() async throws {
        let server = try await MessageServer.start(name: "core", in: group, handlers: .sums)
        let peer = try PeerProcess("exhausted", scratch.path, "core")
        #expect(await peer.line() == "connecting to core failed: Too many open files.")
        await server.stop()
    }
}
