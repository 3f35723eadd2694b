import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Requests within calls that came through a server.
@Suite struct ProxiedCallTests {
    /// His password could be guessed by what he proves to whoever calls him, and hangs up by a challenge.
    @Test func `who was called proves nothing to who challenges his BYE`() throws {
        var world = try ServerWorld()
        try world.register(0, 1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(1))
        let bob = try world.network.call(1)
        try world.answer(1)
        world.network.run(for: .seconds(1))
        world.network.arrives = { !$0.hasPrefix("BYE ") }
        world.network.with(1) { agent, now in agent.hangUp(bob, at: now) }
        let sent = try #require(world.network.sent.last { $0.startLine.hasPrefix("BYE ") })
        let bye = try SIPMessage(datagram: sent.bytes)
        var refusal = try bye.response(status: 407, reason: "Proxy Authentication Required", tag: Bytes("x"))
        try refusal.append(
            .proxyAuthenticate,
            Bytes(#"Digest realm="example.test", nonce="n", algorithm=SHA-256, qop="auth""#)
        )
        let (bytes, own, server) = (refusal.bytes, world.network.nodes[1].address, world.server)
        let count = world.network.sent.count
        world.network.handle(.datagram(bytes, local: own, remote: server), at: .agent(1))
        #expect(world.network.sent.count == count)
        world.network.run(for: .seconds(60))
        let his = world.network.sent.filter { $0.place == .agent(1) }
        #expect(his.allSatisfy { !String(decoding: $0.bytes, as: UTF8.self).contains(#"nonce="n""#) })
    }

    @Test func `the ACK past a server goes by the transport that the Contact names`() throws {
        var world = try ServerWorld(transport: ";transport=tcp") { $0.staysOnWay = false }
        try world.register(1)
        let uri = try SIPURI("sip:bob@example.test;transport=udp")
        let alice = try world.network.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.network.run(for: .seconds(1))
        try world.answer(1)
        world.network.run(for: .seconds(1))
        let vias = try ["INVITE ", "ACK "].map { method in
            let sent = world.network.sent.first { $0.place == .agent(0) && $0.startLine.hasPrefix(method) }
            return try SIPMessage(datagram: #require(sent).bytes).topVia()?.transport.text
        }
        #expect(vias == ["UDP", "TCP"])
        world.network.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1).last == "ended them hungUp")
    }
}
