import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Sessions that are changed and refreshed by UPDATE (RFC 3311).
@Suite struct UpdateTests {
    private var test: AgentCallTests
    private let alice: CallHandle
    private let bob: CallHandle

    init() throws { try self.init { _ in } }

    private init(_ change: (inout AgentConfiguration) -> Void) throws {
        test = try AgentCallTests(change)
        (alice, bob) = try test.established()
    }

    /// Who sent which requests since `count` messages had been sent.
    private func requests(after count: Int) -> [String] {
        test.world.lines.dropFirst(count).map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
            .filter { !$0.hasSuffix("SIP/2.0") }
    }

    private mutating func end() {
        let alice = alice
        test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        test.world.run(for: .seconds(120))
        test.expectEmpty()
    }

    @Test mutating func `an UPDATE holds a call on both sides, without an ACK`() throws {
        let count = test.world.sent.count
        try test.world.hold(0, alice, by: .update)
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed  held by us"])
        #expect(test.world.words(1) == ["agreed  held by them"])
        #expect(requests(after: count) == ["0 UPDATE"])
        end()
    }

    @Test mutating func `who does not say that it takes UPDATE is asked by INVITE`() throws {
        self = try Self { $0.capabilities.methods.removeAll { $0 == .update } }
        let count = test.world.sent.count
        try test.world.hold(0, alice, by: .update)
        test.world.run(for: .seconds(1))
        #expect(test.world.words(1) == ["agreed  held by them"])
        #expect(requests(after: count) == ["0 INVITE", "0 ACK"])
        end()
    }

    @Test mutating func `who says that it takes UPDATE, and does not, is asked by INVITE then`() throws {
        self = try Self { $0.capabilities.methods.removeAll { $0 == .update } }
        test.world.nodes[0].agent.calls[alice]?.takesUpdate = true
        let count = test.world.sent.count
        try test.world.hold(0, alice, by: .update)
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed  held by us"])
        #expect(requests(after: count) == ["0 UPDATE", "0 INVITE", "0 ACK"])
        end()
    }

    @Test mutating func `two that meet are both done in the end`() throws {
        let count = test.world.sent.count
        try test.world.hold(0, alice, by: .update)
        try test.world.hold(1, bob, by: .update)
        test.world.run(for: .seconds(10))
        #expect(test.world.lines.dropFirst(count).count { $0.contains(" 491 ") } == 2)
        let (alice, bob) = (alice, bob)
        let agreed = try [(0, alice), (1, bob)].map { index, handle in
            try #require(test.world.nodes[index].agent.calls[handle]?.session?.agreed?.audio)
        }
        #expect(agreed.allSatisfy { $0.isHeldLocally && $0.isHeldRemotely })
        end()
    }

    @Test mutating func `one that is refused leaves all as it was`() throws {
        let alice = alice
        test.world.with(0) { agent, now in
            var session = SessionConfiguration.plain("192.0.2.1")
            session.media[0].formats = [PayloadFormat(payloadType: 18, encodingName: "G729", clockRate: 8000)]
            agent.change(alice, to: session, by: .update, at: now)
        }
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["refused 488"])
        #expect(test.world.words(1).isEmpty)
        #expect(test.world.nodes[0].agent.session(of: alice) == .plain("192.0.2.1"))
        end()
    }

    @Test(arguments: [true, false])
    func `a session is refreshed by UPDATE without a body, where it is taken`(isTaken: Bool) throws {
        var world = VirtualNetwork()
        _ = try world.add("alice") { $0.sessionTimer = SessionTimer.Wishes(seconds: 90) }
        _ = try world.add("bob") { if !isTaken { $0.capabilities.methods.removeAll { $0 == .update } } }
        let uri = try SIPURI("sip:bob@192.0.2.2")
        let alice = try world.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(1))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        world.run(for: .seconds(3600))
        #expect(world.words(0) == ["agreed sendsreceives", "established"])
        let refreshes = try world.sent.filter { $0.startLine.hasPrefix(isTaken ? "UPDATE" : "INVITE") }
            .map { try SIPMessage(datagram: $0.bytes) }
        #expect(refreshes.count == (isTaken ? 79 : 80))
        #expect(!isTaken || refreshes.allSatisfy { $0.body.isEmpty && $0.first(.sessionExpires) != nil })
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
    }

    @Test(arguments: [nil, 30])
    func `a refresh that is refused for the moment is asked for again while the session lasts`(pause: Int?) throws {
        var world = VirtualNetwork()
        _ = try world.add("alice") { $0.sessionTimer = SessionTimer.Wishes(seconds: 1800) }
        _ = try world.add("bob")
        let uri = try SIPURI("sip:bob@192.0.2.2")
        _ = try world.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(1))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        world.run(for: .seconds(1))
        _ = (world.words(0), world.words(1))
        world.arrives = { !$0.hasPrefix("UPDATE") }
        world.run(for: .seconds(900))
        let refresh = try SIPMessage(
            datagram: try #require(world.sent.last { $0.startLine.hasPrefix("UPDATE") }).bytes
        )
        var refusal = try refresh.response(status: 503, reason: "x", tag: Bytes("x"))
        if let pause { try refusal.set(.retryAfter, to: Bytes("\(pause)")) }
        let (local, remote) = (world.nodes[0].address, world.nodes[1].address)
        world.handle(.datagram(refusal.bytes, local: local, remote: remote), at: .agent(0))
        world.arrives = { _ in true }
        let count = world.sent.count
        // An eighth of what is left at least, else half of it.
        world.run(for: .seconds(pause == nil ? 300 : 90))
        #expect(!world.sent.dropFirst(count).contains { $0.startLine.hasPrefix("UPDATE") })
        world.run(for: .seconds(3600))
        #expect(world.sent.dropFirst(count).contains { $0.startLine.hasPrefix("UPDATE") })
        #expect(world.words(0).isEmpty && world.words(1).isEmpty)
    }

    /// The called side has told its answer by a reliable 183; before that the offer of the INVITE is open.
    @Test(arguments: [(true, 200), (false, 500)])
    func `before the answer an UPDATE is taken once both have agreed`(hasAgreed: Bool, status: Int) throws {
        var world = VirtualNetwork()
        _ = try world.add("alice") { $0.wantsReliableProvisionals = true }
        _ = try world.add("bob")
        let uri = try SIPURI("sip:bob@192.0.2.2")
        let alice = try world.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        try world.with(1) { agent, now in
            try agent.ring(bob, with: hasAgreed ? .plain("192.0.2.2") : nil, at: now)
        }
        world.run(for: .seconds(1))
        let errand = try #require(world.nodes[0].agent.calls[alice]?.errand)
        var dialog = try #require(world.nodes[0].agent.errands[errand]?.forks?.latest)
        _ = dialog.takeNumber()
        var update = try dialog.makeRequest(.update)
        try update.append(.contact, Bytes("<sip:alice@192.0.2.99>"))
        var session = OfferAnswer(configuration: .plain("192.0.2.1", port: 4100), sessionID: 7)
        try update.setDescription(session.makeOffer())
        let host = Bytes("192.0.2.1")
        try update.prepend(.via, Via(transport: Bytes("UDP"), host: host, port: 5060, branch: Bytes("z9hG4bKx")))
        let (from, to) = (world.nodes[0].address, world.nodes[1].address)
        world.handle(.datagram(update.bytes, local: to, remote: from), at: .agent(1))
        #expect(world.lines.last { $0.hasPrefix("1 ") }?.hasPrefix("1 SIP/2.0 \(status)") == true)
        let agreed = world.nodes[1].agent.calls[bob]?.session?.agreed?.audio
        #expect(agreed?.remote?.port == (hasAgreed ? 4100 : nil))
        guard hasAgreed else { return }
        // The answer says nothing else, and goes where the caller is by now.
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        let sent = try #require(world.sent.last { $0.place == .agent(1) && $0.startLine == "SIP/2.0 200 OK" })
        let answer = try SIPMessage(datagram: sent.bytes)
        #expect(try answer.cSeq()?.method == .invite && answer.bodyBytes.isEmpty)
        #expect(world.nodes[1].agent.calls[bob]?.dialog?.remoteTarget == (try SIPURI("sip:alice@192.0.2.99")))
    }

    /// What is offered in a reliable 183 is video alone.
    @Test func `an offer in a reliable response that cannot be answered ends the call without a PRACK`() throws {
        var world = VirtualNetwork()
        for name in ["alice", "bob"] { _ = try world.add(name) }
        let uri = try SIPURI("sip:bob@192.0.2.2")
        var wishes = UserAgent.CallWishes(session: .plain("192.0.2.1"))
        wishes.isOfferDelayed = true
        let made = wishes
        _ = try world.with(0) { agent, now in try agent.call(uri, made, at: now) }
        world.run(for: .milliseconds(50))
        let sent = try #require(world.sent.first { $0.startLine.hasPrefix("INVITE") })
        var response = try SIPMessage(datagram: sent.bytes)
            .response(status: 183, reason: "Session Progress", tag: Bytes("b"))
        try response.append(.require, Bytes("100rel"))
        try response.append(.rSeq, WholeNumber(1))
        try response.append(.contact, Bytes("<sip:bob@192.0.2.2>"))
        try response.set(.contentType, to: Bytes("application/sdp"))
        response.setBody(
            Array(
                "v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\nm=video 9 RTP/AVP 31\r\n".utf8
            )
        )
        let (to, from) = (world.nodes[0].address, world.nodes[1].address)
        world.handle(.datagram(response.bytes, local: to, remote: from), at: .agent(0))
        world.run(for: .seconds(1))
        #expect(world.words(0).last == "ended us unacceptable")
        #expect(world.lines.contains { $0.hasPrefix("0 CANCEL") } && !world.lines.contains { $0.hasPrefix("0 PRACK") })
    }
}
