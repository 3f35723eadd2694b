import Foundation
import Glibc
import TestSupport
import Testing

@testable import LocalMessaging

/// What LLBSDMessaging got wrong with sockets and processes, and what holds here: a test each.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct AncestorDefectRealTimeTests {
    @Test func `no descriptor stays open after clients left and servers could not start`() async throws {
        let scratch = try Scratch()
        let files = try GroupContainer(directory: scratch.path)
        let server = try await MessageServer.start(name: "core", in: files, handlers: .sums)
        let before = try openDescriptorCount()
        for _ in 0..<100 {
            let client = try await MessageClient.connect(to: "core", in: files)
            await client.close()
            await #expect(throws: ServerError.self) {
                try await MessageServer.start(name: "core", in: files, handlers: .sums)
            }
        }
        #expect(try openDescriptorCount() - before < 50)
        await server.stop()
    }

    @Test func `what a message claims of its sender changes nothing of the peer's identity`() async throws {
        struct Claim: LocalMessage {
            static let messageType = MessageType(name: "test.claim")
            let process: Int32
            let executable: String
        }
        let senders = Record<PeerIdentity>()
        var handlers = MessageHandlers()
        handlers.on(Claim.self) { _, context in senders.add(context.connection.peer) }
        let scratch = try Scratch()
        let files = try GroupContainer(directory: scratch.path)
        let server = try await MessageServer.start(name: "core", in: files, handlers: handlers)
        let client = try await MessageClient.connect(to: "core", in: files)
        try await client.send(Claim(process: 1, executable: "/sbin/init"))
        #expect(await senders.values(1)[0].process == getpid())
        #expect(await senders.values(1)[0].executable == PeerIdentity.current.executable)
        await client.close()
        await server.stop()
    }

    @Test func `a second server is refused, and the first still answers`() async throws {
        let scratch = try Scratch()
        let files = try GroupContainer(directory: scratch.path)
        let first = try await MessageServer.start(name: "core", in: files, handlers: .sums)
        let error = await #expect(throws: ServerError.self) {
            try await MessageServer.start(name: "core", in: files, handlers: MessageHandlers())
        }
        #expect(error?.code == .taken)
        let client = try await MessageClient.connect(to: "core", in: files)
        #expect(try await client.request(Sum(terms: [1])) == 1, "the first still answers")
        await client.close()
        await first.stop()
    }

    @Test func `a server that was stopped can be started again`() async throws {
        let scratch = try Scratch()
        let files = try GroupContainer(directory: scratch.path)
        for _ in 0..<20 {
            let server = try await MessageServer.start(name: "core", in: files, handlers: .sums)
            let client = try await MessageClient.connect(to: "core", in: files)
            #expect(try await client.request(Sum(terms: [1])) == 1)
            await server.stop()
            #expect(await client.invalidated() == .closedByPeer)
        }
    }

    @Test func `writing to a peer that has died ends the connection, not the process`() async throws {
        let scratch = try Scratch()
        let files = try GroupContainer(directory: scratch.path)
        let clients = ClientRecord()
        let server = try await MessageServer.start(
            name: "core",
            in: files,
            handlers: helloOnly,
            clientChanged: clients.note
        )
        for number in 1...5 {
            let peer = try PeerProcess("connect", scratch.path, "core")
            #expect(await peer.line() == "ready")
            let connection = await clients.joined.values(number)[number - 1]
            let sending = Task {
                while connection.invalidation == nil {
                    _ = try? await connection.request(NeverAnswered(), timeout: .milliseconds(1))
                }
            }
            await peer.kill()
            #expect(await connection.invalidated() == .peerDied)
            await sending.value
        }
        await server.stop()
    }

    private var helloOnly: MessageHandlers {
        var handlers = MessageHandlers()
        handlers.on(Hello.self) { _, _ in }
        return handlers
    }
}
