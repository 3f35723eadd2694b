import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Alice offers Bob one session after the other, until he takes one.
@Suite struct SpareSessionTests {
    private var world = VirtualNetwork()

    private static func session(_ host: String, by transport: MediaProtocol) -> SessionConfiguration {
        var session = SessionConfiguration.plain(host)
        session.media[0].protocols = [transport]
        return session
    }

    private mutating func begin(_ transports: [MediaProtocol]) throws -> CallHandle {
        for name in ["alice", "bob"] { _ = try world.add(name) }
        let uri = try SIPURI("sip:bob@192.0.2.2")
        let sessions = transports.map { Self.session("192.0.2.1", by: $0) }
        let handle = try world.with(0) { agent, now in
            var wishes = UserAgent.CallWishes(session: sessions[0])
            wishes.spareSessions = Array(sessions.dropFirst())
            return try agent.call(uri, wishes, at: now)
        }
        world.run(for: .milliseconds(50))
        return handle
    }

    /// Bob answers with what he has; nothing that both have is refused with 488.
    private mutating func answer(by transport: MediaProtocol) throws {
        let call = try world.call(1)
        world.with(1) { agent, now in
            try? agent.answer(call, Self.session("192.0.2.2", by: transport), at: now)
        }
        world.run(for: .milliseconds(50))
    }

    private var invites: Int { world.lines.count { $0.hasPrefix("0 INVITE") } }

    private func lastOffer() throws -> SessionDescription? {
        try world.sent.last { $0.startLine.hasPrefix("INVITE") }
            .flatMap { try SIPMessage(datagram: $0.bytes).sessionDescription() }
    }

    private func offeredTransports() throws -> [String] {
        try world.sent.compactMap { sent in
            guard let message = try? SIPMessage(datagram: sent.bytes), message.method == .invite else { return nil }
            return try message.sessionDescription()?.media.first?.transport.name
        }
    }

    @Test mutating func `what is not acceptable is offered otherwise, in the same call`() throws {
        let alice = try begin([.dtlsSAVP, .rtpSAVP, .rtpAVP])
        let callID = world.nodes[0].agent.callID(of: alice)
        for _ in 0..<3 { try answer(by: .rtpAVP) }
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["agreed sendsreceives", "established"] && invites == 3)
        #expect(try offeredTransports() == ["UDP/TLS/RTP/SAVP", "RTP/SAVP", "RTP/AVP"])
        #expect(callID == world.nodes[0].agent.callID(of: alice))
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended us hungUp"])
    }

    @Test mutating func `the first that is taken is it`() throws {
        _ = try begin([.dtlsSAVP, .rtpSAVP, .rtpAVP])
        for _ in 0..<2 { try answer(by: .rtpSAVP) }
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["agreed sendsreceives", "established"] && invites == 2)
    }

    @Test mutating func `a call that nothing is left to offer for is refused`() throws {
        _ = try begin([.dtlsSAVP, .rtpSAVP])
        for _ in 0..<2 { try answer(by: .rtpAVP) }
        world.run(for: .seconds(40))
        #expect(world.words(0) == ["ended them refused(488)"] && invites == 2)
    }

    @Test(arguments: [(488, 2), (606, 2), (486, 1), (480, 1), (603, 1)])
    mutating func `only what is not acceptable is offered otherwise`(status: Int, count: Int) throws {
        _ = try begin([.dtlsSAVP, .rtpAVP])
        let call = try world.call(1)
        world.with(1) { agent, now in agent.reject(call, status: status, at: now) }
        world.run(for: .milliseconds(50))
        #expect(invites == count)
    }

    @Test mutating func `whom the call is led on to is offered all, from the first on`() throws {
        _ = try begin([.dtlsSAVP, .rtpAVP])
        _ = try world.add("carol")
        let first = try world.call(1)
        world.with(1) { agent, now in agent.reject(first, status: 488, at: now) }
        world.run(for: .milliseconds(50))
        let (second, carol) = (try world.call(1), try SIPURI("sip:carol@192.0.2.3"))
        world.with(1) { agent, now in agent.redirect(second, to: carol, at: now) }
        world.run(for: .milliseconds(50))
        #expect(try offeredTransports() == ["UDP/TLS/RTP/SAVP", "RTP/AVP", "UDP/TLS/RTP/SAVP"])
        let third = try world.call(2)
        try world.with(2) { agent, now in try agent.answer(third, Self.session("192.0.2.3", by: .dtlsSAVP), at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0).last == "established")
    }

    @Test mutating func `what was agreed on before the answer is not offered otherwise`() throws {
        _ = try begin([.dtlsSAVP, .rtpAVP])
        let call = try world.call(1)
        try world.with(1) { agent, now in
            try agent.ring(call, with: Self.session("192.0.2.2", by: .dtlsSAVP), at: now)
        }
        world.run(for: .milliseconds(50))
        world.with(1) { agent, now in agent.reject(call, status: 488, at: now) }
        world.run(for: .seconds(40))
        #expect(invites == 1 && world.words(0).last == "ended them refused(488)")
    }

    @Test mutating func `a move and a hold of while it rang are in the next offer`() throws {
        let alice = try begin([.dtlsSAVP, .rtpAVP])
        world.with(0) { agent, now in
            guard var session = agent.session(of: alice) else { return }
            (session.address, session.hold) = ("192.0.2.77", .silent)
            agent.change(alice, to: session, at: now)
        }
        let call = try world.call(1)
        world.with(1) { agent, now in agent.reject(call, status: 488, at: now) }
        world.run(for: .milliseconds(50))
        let offer = try #require(lastOffer()?.media.first)
        #expect(offer.transport == .rtpAVP && offer.host == "192.0.2.77" && offer.direction == .inactive)
    }

    @Test mutating func `a call that was taken back is not offered otherwise`() throws {
        let alice = try begin([.dtlsSAVP, .rtpAVP])
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        try answer(by: .rtpAVP)
        world.run(for: .seconds(40))
        #expect(invites == 1 && world.words(0) == ["ended us cancelled"])
    }
}
