import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Requests that are too long for UDP, to somebody who takes nothing else.
@Suite struct LongRequestTests {
    /// Alice has so long a name that no request of hers fits into a datagram.
    private static func rename(_ agent: inout AgentConfiguration) {
        agent.identity = NameAddress(agent.identity.uri, displayName: String(repeating: "a", count: 1300))
    }

    @Test func `where the connection is refused, one leaves by UDP all the same`() throws {
        var world = VirtualNetwork()
        _ = try world.add("alice", Self.rename)
        _ = try world.add("bob")
        world.takesConnections = { _ in false }
        let uri = try SIPURI("sip:bob@192.0.2.2")
        try world.with(0) { agent, now in
            _ = try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(1))
        #expect(world.words(1) == ["incoming"])
        #expect(world.lines.count { $0.hasPrefix("0 INVITE") } == 1)
    }

    @Test func `a server passes one on by UDP, too`() throws {
        var world = VirtualNetwork()
        _ = world.add(ServerConfiguration(domain: "example.test"))
        _ = try world.add("alice", Self.rename)
        let bob = try world.add("bob")
        let identity = NameAddress(try SIPURI("sip:bob@example.test"))
        let account = world.with(bob) { agent, _ in agent.addAccount(AccountConfiguration(identity: identity)) }
        try world.with(bob) { agent, now in try agent.register(account, at: now) }
        world.run(for: .seconds(1))
        _ = world.words(bob)
        world.takesConnections = { $0.host != "192.0.2.2" }
        let uri = identity.uri
        try world.with(0) { agent, now in
            _ = try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(1))
        #expect(world.words(bob) == ["incoming"] && world.words(0).allSatisfy { !$0.hasPrefix("ended") })
    }
}
