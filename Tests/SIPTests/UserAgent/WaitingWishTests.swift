import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// What is wished of a session while that cannot be asked for yet.
@Suite struct WaitingWishTests {
    private var test: AgentCallTests

    init() throws { test = try AgentCallTests() }

    @Test mutating func `an address that was wished while it rang is asked for after the answer`() throws {
        let alice = try test.call()
        test.world.run(for: .milliseconds(50))
        test.world.with(0) { agent, now in agent.change(alice, to: .plain("192.0.2.9"), at: now) }
        test.world.run(for: .seconds(1))
        #expect(test.world.lines.count { $0.hasPrefix("0 ") } == 1)
        try test.answer()
        test.world.run(for: .seconds(1))
        let bob = try #require(test.world.nodes[1].agent.calls.names.first)
        #expect(test.world.nodes[1].agent.calls[bob]?.session?.agreed?.audio?.remote?.host == "192.0.2.9")
        #expect(test.world.nodes[0].agent.calls[alice]?.wanted == nil)
    }

    @Test
    mutating func
        `a hold that waits for a refresh is asked for also when that is refused, and nobody hears of the refusal`()
        throws
    {
        let (alice, _) = try test.established()
        test.world.arrives = { !$0.hasPrefix("UPDATE") }
        test.world.with(0) { agent, now in
            agent.setNetworkReachable(false, at: now)
            agent.setNetworkReachable(true, at: now)
        }
        test.world.run(for: .milliseconds(50))
        let refresh = try #require(test.world.sent.last { $0.startLine.hasPrefix("UPDATE") })
        try test.world.hold(0, alice)
        let refusal = try SIPMessage(datagram: refresh.bytes).response(status: 500, reason: "No", tag: Bytes("x"))
        test.world.arrives = { _ in true }
        test.world.with(0) { agent, now in
            let (local, remote) = (
                SocketAddress(ipv4: 0xC000_0201, port: 5060), SocketAddress(ipv4: 0xC000_0202, port: 5060)
            )
            agent.handle(.datagram(refusal.bytes, local: local, remote: remote), at: now)
        }
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed  held by us"])
        #expect(test.world.words(1) == ["agreed  held by them"])
    }

    @Test mutating func `a session that cannot be described is refused at once, and the call is as it was`() throws {
        let (alice, _) = try test.established()
        _ = (test.world.words(0), test.world.words(1))
        let before = test.world.nodes[0].agent.session(of: alice)
        test.world.with(0) { agent, now in agent.change(alice, to: .plain("192.0.2.9 192.0.2.10"), at: now) }
        test.world.run(for: .seconds(1))
        #expect(test.world.takeEvents(0).contains { if case .changeRefused(alice, 488) = $0 { true } else { false } })
        #expect(test.world.nodes[0].agent.session(of: alice) == before)
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(1))
        #expect(test.world.words(1) == ["agreed  held by them"])
    }
}
