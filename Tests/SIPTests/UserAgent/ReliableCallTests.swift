import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Calls whose provisional responses are acknowledged (RFC 3262).
@Suite struct ReliableCallTests {
    private var world = VirtualNetwork()

    private mutating func begin(
        alice: (inout AgentConfiguration) -> Void = { _ in },
        bob: (inout AgentConfiguration) -> Void = { _ in }
    ) throws -> CallHandle {
        _ = try world.add("alice", alice)
        _ = try world.add("bob", bob)
        let target = try SIPURI("sip:bob@192.0.2.2")
        let handle = try world.with(0) { agent, now in
            try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .milliseconds(50))
        return handle
    }

    private mutating func ring(early: Bool = false) throws {
        let call = try world.call(1)
        try world.with(1) { agent, now in
            try agent.ring(call, with: early ? .plain("192.0.2.2") : nil, at: now)
        }
    }

    private mutating func answer() throws {
        let call = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(call, .plain("192.0.2.2"), at: now) }
    }

    /// The methods of requests and the statuses of responses but 100, in the order in which they were sent.
    private var course: [String] {
        let all = world.lines.map { line in
            let words = line.split(separator: " ")
            return words[1].hasPrefix("SIP/") ? "\(words[0]) \(words[2])" : "\(words[0]) \(words[1])"
        }
        return all.filter { !$0.hasSuffix(" 100") }
    }

    private func expectEmpty(_ sourceLocation: SourceLocation = #_sourceLocation) {
        for node in world.nodes {
            var counts = node.agent.counts
            (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
            #expect(counts == AgentCounts(), sourceLocation: sourceLocation)
        }
    }

    @Test mutating func `who makes no offer, and takes no unreliable ringing, hears the answer alone`() throws {
        _ = try world.add("alice") { $0.wantsReliableProvisionals = true }
        _ = try world.add("bob")
        var wishes = UserAgent.CallWishes(session: .plain("192.0.2.1"))
        wishes.isOfferDelayed = true
        let (target, call) = (try SIPURI("sip:bob@192.0.2.2"), wishes)
        try world.with(0) { agent, now in _ = try agent.call(target, call, at: now) }
        world.run(for: .milliseconds(50))
        try ring()
        world.run(for: .seconds(1))
        try answer()
        world.run(for: .seconds(1))
        #expect(course == ["0 INVITE", "1 200", "0 ACK"], "\(course)")
        #expect(world.words(0) == ["agreed sendsreceives", "established"])
    }

    @Test mutating func `where the caller requires it, ringing is acknowledged, once`() throws {
        let alice = try begin(alice: { $0.wantsReliableProvisionals = true })
        try ring()
        world.run(for: .seconds(2))
        try answer()
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["progress 180", "agreed sendsreceives", "established"])
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.run(for: .seconds(60))
        #expect(
            course == ["0 INVITE", "1 180", "0 PRACK", "1 200", "1 200", "0 ACK", "0 BYE", "1 200"],
            "\(course)"
        )
        let numbers = try world.sent.filter { $0.place == .agent(0) }.compactMap {
            try SIPMessage(datagram: $0.bytes).cSeq()?.number
        }
        // Each request of the dialog has the next number, but the ACK, which has that of its INVITE.
        #expect(numbers == [numbers[0], numbers[0] + 1, numbers[0], numbers[0] + 2])
        expectEmpty()
    }

    @Test mutating func `where nobody wants it, nothing is acknowledged`() throws {
        _ = try begin()
        try ring()
        world.run(for: .seconds(2))
        #expect(course == ["0 INVITE", "1 180"])
    }

    @Test mutating func `who is called may want it, of callers who know it`() throws {
        _ = try begin(bob: { $0.wantsReliableProvisionals = true })
        try ring()
        world.run(for: .seconds(2))
        #expect(course == ["0 INVITE", "1 180", "0 PRACK", "1 200"])
        var plain = ReliableCallTests()
        _ = try plain.begin(
            alice: { $0.capabilities.extensions = [] },
            bob: { $0.wantsReliableProvisionals = true }
        )
        try plain.ring()
        plain.world.run(for: .seconds(2))
        #expect(plain.course == ["0 INVITE", "1 180"])
    }

    @Test mutating func `who does not know it refuses a call that requires it`() throws {
        _ = try begin(alice: { $0.wantsReliableProvisionals = true }, bob: { $0.capabilities.extensions = [] })
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them refused(420)"])
        expectEmpty()
    }

    @Test mutating func `the answer waits until the caller knows of the session`() throws {
        _ = try begin(alice: { $0.wantsReliableProvisionals = true })
        var dropped = 0
        world.arrives = { line in
            guard line.hasPrefix("PRACK"), dropped < 2 else { return true }
            dropped += 1
            return false
        }
        try ring(early: true)
        try answer()
        world.run(for: .milliseconds(400))
        #expect(world.words(0) == ["progress 183", "agreed sendsreceives"])
        world.run(for: .seconds(5))
        #expect(world.words(0) == ["established"])
        #expect(course.count { $0 == "0 ACK" } == 1)
        #expect(course.lastIndex(of: "0 PRACK")! < course.firstIndex(of: "0 ACK")!)
    }

    @Test mutating func `a caller who acknowledges nothing is refused`() throws {
        _ = try begin(alice: { $0.wantsReliableProvisionals = true })
        world.arrives = { !$0.hasPrefix("PRACK") }
        try ring()
        world.run(for: .seconds(120))
        #expect(world.words(1).last == "ended us refused(504)")
        #expect(world.words(0).last == "ended them refused(504)")
        // At 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s.
        #expect(course.count { $0 == "1 180" } == 7)
        expectEmpty()
    }

    @Test(arguments: 1...20)
    mutating func `over a network that loses a third both hear of the call, and nothing is left`(
        seed: UInt64
    ) throws {
        var conditions = VirtualNetwork.Conditions()
        (conditions.loss, conditions.jitter) = (0.33, .milliseconds(40))
        world = VirtualNetwork(seed: seed, conditions)
        let alice = try begin(alice: { $0.wantsReliableProvisionals = true })
        world.run(for: .seconds(10))
        guard world.nodes[1].events.contains(where: { $0.word == "incoming" }) else { return }
        try ring(early: seed % 2 == 0)
        world.run(for: .seconds(5))
        if world.nodes[1].agent.counts.calls > 0 { try? answer() }
        world.run(for: .seconds(20))
        let (hers, his) = (world.words(0), world.words(1))
        #expect(hers.contains("established") == his.contains("established"), "\(hers) \(his)")
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.run(for: .seconds(120))
        expectEmpty()
    }

    /// A peer that is written by hand, at the address of nobody.
    private mutating func send(_ head: [String], of invite: SIPMessage, tag: String, description: String = "") throws {
        var lines = head
        for name in ["Via", "From", "Call-ID"] { lines += invite.values(named: name).map { "\(name): \($0)" } }
        lines.append("To: \(invite.values(named: "To")[0]);tag=\(tag)")
        lines += ["Contact: <sip:carol@192.0.2.9:5060>", "Content-Type: application/sdp"]
        lines += ["Content-Length: \(description.utf8.count)", "", description]
        let local = world.nodes[0].address
        let remote = try #require(SocketAddress(host: "192.0.2.9", port: 5060))
        let bytes = Array(lines.joined(separator: "\r\n").utf8)
        world.handle(.datagram(bytes, local: local, remote: remote), at: .agent(0))
    }

    private static let offer = description("192.0.2.9")

    private static func description(_ host: String) -> String {
        "v=0\r\no=- 1 1 IN IP4 \(host)\r\ns=-\r\nc=IN IP4 \(host)\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
    }

    /// Where sound goes by what was told since the last time.
    private mutating func remoteHost() -> String? {
        world.takeEvents(0).compactMap { event in
            if case .agreed(_, let session) = event { session.audio?.remote?.host } else { nil }
        }.last
    }

    @Test(arguments: [true, false])
    mutating func `of two phones that describe sound before the answer, the one that answers has it`(
        isDescribedAgain: Bool
    ) throws {
        _ = try world.add("alice")
        let target = try SIPURI("sip:carol@192.0.2.9")
        _ = try world.with(0) { agent, now in
            try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        let invite = try SIPMessage(datagram: try #require(world.sent.last).bytes)
        let number = try #require(try invite.cSeq()).number
        for (tag, host) in [("a", "192.0.2.10"), ("b", "192.0.2.11")] {
            let head = ["SIP/2.0 183 Session Progress", "CSeq: \(number) INVITE"]
            try send(head, of: invite, tag: tag, description: Self.description(host))
            #expect(remoteHost() == host)
        }
        let again = isDescribedAgain ? Self.description("192.0.2.10") : ""
        try send(["SIP/2.0 200 OK", "CSeq: \(number) INVITE"], of: invite, tag: "a", description: again)
        #expect(remoteHost() == "192.0.2.10")
    }

    @Test(arguments: [true, false])
    mutating func `the answer to a hold may come in a reliable response before the final one`(isTaken: Bool) throws {
        _ = try world.add("alice")
        let target = try SIPURI("sip:carol@192.0.2.9")
        let alice = try world.with(0) { agent, now in
            try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        func last() throws -> (SIPMessage, UInt32) {
            let sent = try #require(world.sent.last { $0.startLine.hasPrefix("INVITE") })
            let invite = try SIPMessage(datagram: sent.bytes)
            return (invite, try #require(try invite.cSeq()).number)
        }
        let (invite, number) = try last()
        try send(["SIP/2.0 200 OK", "CSeq: \(number) INVITE"], of: invite, tag: "c", description: Self.offer)
        try world.hold(0, alice)
        _ = world.words(0)
        let (change, next) = try last()
        let answer = Self.offer.replacing(" 1 1 IN", with: " 1 2 IN") + "a=recvonly\r\n"
        let head = ["SIP/2.0 183 Session Progress", "Require: 100rel", "RSeq: 5", "CSeq: \(next) INVITE"]
        try sendWithin(head, of: change, description: answer)
        #expect(world.words(0) == ["agreed  held by us"])
        try sendWithin(["SIP/2.0 \(isTaken ? "200 OK" : "488 No")", "CSeq: \(next) INVITE"], of: change)
        world.run(for: .seconds(1))
        // What was taken and is refused after all is taken back.
        #expect(world.words(0) == (isTaken ? [] : ["agreed sendsreceives", "refused 488"]))
        #expect(world.nodes[0].agent.session(of: alice)?.hold == (isTaken ? .silent : nil))
        #expect(world.nodes[0].agent.counts.calls == 1)
    }

    /// The same within the dialog.
    private mutating func sendWithin(_ head: [String], of request: SIPMessage, description: String = "") throws {
        var outside = request
        let to = try #require(try request.to())
        try outside.set(.to, to: Bytes("<\(to.uri)>"))
        try send(head, of: outside, tag: try #require(to.tag).text, description: description)
    }

    @Test mutating func `an offer in a provisional response is answered in its PRACK, which leaves once`() throws {
        _ = try world.add("alice")
        let target = try SIPURI("sip:carol@192.0.2.9")
        _ = try world.with(0) { agent, now in
            var wishes = UserAgent.CallWishes(session: .plain("192.0.2.1"))
            wishes.isOfferDelayed = true
            return try agent.call(target, wishes, at: now)
        }
        let invite = try SIPMessage(datagram: try #require(world.sent.last).bytes)
        let number = try #require(try invite.cSeq()).number
        for _ in 0..<2 {
            let head = ["SIP/2.0 183 Session Progress", "Require: 100rel", "RSeq: 5", "CSeq: \(number) INVITE"]
            try send(head, of: invite, tag: "c", description: Self.offer)
        }
        // Its number jumps: one is missing.
        try send(
            ["SIP/2.0 180 Ringing", "Require: 100rel", "RSeq: 7", "CSeq: \(number) INVITE"],
            of: invite,
            tag: "c"
        )
        #expect(world.words(0) == ["progress 183", "agreed sendsreceives"])
        let pracks = try world.sent.filter { $0.startLine.hasPrefix("PRACK sip:carol@192.0.2.9") }
            .map { try SIPMessage(datagram: $0.bytes) }
        #expect(pracks.map { $0.values(named: "RAck") } == [["5 \(number) INVITE"]])
        let answer = try #require(try pracks.first?.sessionDescription())
        #expect(answer.media.map(\.port) == [4000])
        try send(["SIP/2.0 200 OK", "CSeq: \(number) INVITE"], of: invite, tag: "c")
        #expect(world.words(0) == ["established"])
    }

    @Test mutating func `a PRACK of nothing is 481`() throws {
        _ = try begin(alice: { $0.wantsReliableProvisionals = true })
        try ring()
        world.run(for: .seconds(1))
        let prack = try #require(world.sent.first { $0.startLine.hasPrefix("PRACK") })
        let number = try #require(try SIPMessage(datagram: prack.bytes).cSeq()).number
        let text = String(decoding: prack.bytes, as: UTF8.self)
            .replacing("branch=z9hG4bK", with: "branch=z9hG4bKother")
            .replacing("CSeq: \(number) PRACK", with: "CSeq: \(number + 1) PRACK")
        let (alice, bob) = (world.nodes[0].address, world.nodes[1].address)
        world.handle(.datagram(Array(text.utf8), local: bob, remote: alice), at: .agent(1))
        #expect(course.last == "1 481")
    }
}
