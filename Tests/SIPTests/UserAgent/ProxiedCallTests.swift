import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Requests within calls that came through a server.
@Suite struct ProxiedCallTests {
    @Test func `who was called through the server of an account answers a challenge to the BYE`() throws {
        var world = try ServerWorld()
        try world.register(0, 1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(1))
        let bob = try world.network.call(1)
        try world.answer(1)
        world.network.run(for: .seconds(1))
        #expect(world.network.nodes[1].agent.calls[bob]?.account == world.accounts[1])
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
        world.network.handle(.datagram(bytes, local: own, remote: server), at: .agent(1))
        let again = try #require(world.network.sent.last { $0.startLine.hasPrefix("BYE ") })
        let proved = try SIPMessage(datagram: again.bytes)
        #expect(proved.first(.proxyAuthorization)?.text.contains(#"username="bob""#) ?? false)
        let numbers = try [bye, proved].map { try $0.cSeq()?.number ?? 0 }
        #expect(numbers[1] == numbers[0] + 1)
    }

    @Test func `a call that came past the server is of no account`() throws {
        var world = try ServerWorld()
        try world.register(1)
        let uri = try SIPURI("sip:bob@192.0.2.2")
        try world.network.with(0) { agent, now in
            _ = try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.network.run(for: .seconds(1))
        let bob = try world.network.call(1)
        let call = try #require(world.network.nodes[1].agent.calls[bob])
        #expect(call.account == nil)
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
