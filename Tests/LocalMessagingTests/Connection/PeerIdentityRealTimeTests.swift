import Foundation
import Glibc
import TestSupport
import Testing

@testable import LocalMessaging

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct PeerIdentityRealTimeTests {
    let scratch: Scratch
    let group: GroupContainer

    init() throws {
        scratch = try Scratch()
        group = try GroupContainer(directory: scratch.path)
    }

    @Test func `a server knows its client's process, user, group and executable from the kernel`() async throws {
        let asked = Record<PeerIdentity>()
        let senders = Record<PeerIdentity>()
        var handlers = MessageHandlers()
        handlers.on(Hello.self) { _, context in senders.add(context.connection.peer) }
        let server = try await MessageServer.start(
            name: "core",
            in: group,
            handlers: handlers,
            shouldAccept: { peer in
                asked.add(peer)
                return nil
            }
        )
        let child = try PeerProcess("connect", scratch.path, "core")
        for peer in [await asked.values(1)[0], await senders.values(1)[0]] {
            #expect(peer.process == child.processID)
            #expect(peer.user == geteuid())
            #expect(peer.group == getegid())
            #expect(peer.executable == URL(fileURLWithPath: PeerProcess.path).resolvingSymlinksInPath().path)
            #expect(!peer.hasEnded)
        }
        await child.kill()
        #expect(senders.values[0].hasEnded)
        await server.stop()
    }

    @Test func `a client knows its server's process, and a signal reaches that one and no other`() async throws {
        let child = try PeerProcess("serve", scratch.path, "core")
        #expect(await child.line() == "ready")
        let client = try await MessageClient.connect(to: "core", in: group)
        let peer = try #require(client.server)
        #expect(peer.process == child.processID)
        #expect(try await client.request(WhoAreYou()) == child.processID)
        try peer.signal(SIGKILL)
        #expect(await client.invalidated() == .peerDied)
        await child.kill()
        #expect(peer.hasEnded)
        #expect(throws: ProcessError.self) { try peer.signal(SIGTERM) }
    }

    @Test func `this process is known as itself`() {
        let current = PeerIdentity.current
        #expect(current.process == getpid())
        #expect(!current.hasEnded)
        #expect(current.executable == (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")))
        #expect(current.description.hasPrefix("process \(getpid()) ("))
    }

    @Test func `a process that is gone has no executable and cannot be signalled`() async throws {
        let child = try PeerProcess("serve", scratch.path, "core")
        _ = await child.line()
        await child.kill()
        let gone = PeerIdentity(process: child.processID, user: 0, group: 0, processDescriptor: nil)
        #expect(gone.executable == nil)
        #expect(gone.hasEnded)
        #expect(throws: ProcessError.self) { try gone.signal(0) }
    }
}
