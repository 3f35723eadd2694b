import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

@Suite("Calls of two user agents in virtual time")
struct AgentCallTests {
    var world = VirtualNetwork()

    init() throws { try self.init { _ in } }

    /// With a Bob who is set up in his own way.
    init(_ change: (inout AgentConfiguration) -> Void) throws {
        _ = try world.add("alice")
        _ = try world.add("bob", change)
    }

    /// Alice calls Bob.
    mutating func call(_ parameters: String = "", isOfferDelayed: Bool = false) throws -> CallHandle {
        try world.with(0) { agent, now in
            var wishes = UserAgent.CallWishes(session: .plain("192.0.2.1"))
            wishes.isOfferDelayed = isOfferDelayed
            return try agent.call(SIPURI(parsing: Bytes("sip:bob@192.0.2.2\(parameters)")), wishes, at: now)
        }
    }

    /// Bob answers what rings.
    mutating func answer() throws {
        let handle = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(handle, .plain("192.0.2.2"), at: now) }
    }

    /// A call that is answered, with nothing told any more.
    mutating func established(_ parameters: String = "") throws -> (alice: CallHandle, bob: CallHandle) {
        let alice = try call(parameters)
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        try answer()
        world.run(for: .seconds(1))
        (world.nodes[0].events, world.nodes[1].events) = ([], [])
        return (alice, bob)
    }

    func expectEmpty(_ sourceLocation: SourceLocation = #_sourceLocation) {
        for node in world.nodes {
            var counts = node.agent.counts
            // A connection that is open stays for the next request.
            (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
            #expect(counts == AgentCounts(), sourceLocation: sourceLocation)
        }
    }

    @Test func `a session that is too short for the other side is asked for once more, as long as that wants`() throws {
        var world = VirtualNetwork()
        _ = try world.add("alice") { $0.sessionTimer = SessionTimer.Wishes(seconds: 90) }
        _ = try world.add("bob") { $0.sessionTimer = SessionTimer.Wishes(minimum: 1800) }
        let uri = try SIPURI("sip:bob@192.0.2.2")
        let alice = try world.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(1))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["agreed sendsreceives", "established"])
        let sent = world.sent.filter { $0.startLine.hasPrefix("INVITE") }
        let invites = try sent.map { try SIPMessage(datagram: $0.bytes) }
        #expect(invites.map { $0.first(.sessionExpires)?.text } == ["90", "1800"])
        #expect(invites.map { $0.first(.minSE)?.text } == [nil, "1800"])
        #expect(world.nodes[0].agent.calls[alice]?.timer?.seconds == 1800)
    }

    @Test(
        "A call rings, is answered, and ends by the caller's BYE; then every table is empty",
        arguments: ["", ";transport=tcp"]
    )
    mutating func whole(_ parameters: String) throws {
        let handle = try call(parameters)
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.ring(bob, at: now) }
        world.run(for: .seconds(2))
        #expect(world.words(0) == ["progress 180"])
        try answer()
        world.run(for: .seconds(2))
        #expect(world.words(0) == ["agreed sendsreceives", "established"])
        #expect(world.words(1) == ["incoming", "agreed sendsreceives", "established"])
        world.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended us hungUp"])
        #expect(world.words(1) == ["ended them hungUp"])
        expectEmpty()
        #expect(
            world.lines == [
                "0 INVITE sip:bob@192.0.2.2\(parameters) SIP/2.0", "1 SIP/2.0 100 Trying", "1 SIP/2.0 180 Ringing",
                "1 SIP/2.0 200 OK", "0 ACK sip:bob@192.0.2.2:5060\(parameters) SIP/2.0",
                "0 BYE sip:bob@192.0.2.2:5060\(parameters) SIP/2.0", "1 SIP/2.0 200 OK",
            ]
        )
    }

    @Test("The called side hangs up")
    mutating func calledSideEnds() throws {
        let calls = try established()
        world.with(1) { agent, now in agent.hangUp(calls.bob, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them hungUp"])
        #expect(world.words(1) == ["ended us hungUp"])
        expectEmpty()
    }

    @Test("An offer that comes in the 200 is answered in the ACK")
    mutating func delayedOffer() throws {
        _ = try call(isOfferDelayed: true)
        world.run(for: .milliseconds(50))
        try answer()
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["agreed sendsreceives", "established"])
        #expect(world.words(1) == ["incoming", "established", "agreed sendsreceives"])
    }

    @Test("A call is refused, with the code that the called side chose", arguments: [486, 603, 404])
    mutating func refused(_ status: Int) throws {
        _ = try call()
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        world.with(1) { agent, now in agent.reject(bob, status: status, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them refused(\(status))"])
        #expect(world.words(1) == ["incoming", "ended us refused(\(status))"])
        expectEmpty()
    }

    @Test("A call that is taken back while it rings ends on both sides")
    mutating func cancelled() throws {
        let handle = try call()
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.ring(bob, at: now) }
        world.run(for: .milliseconds(50))
        world.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["progress 180", "ended us cancelled"])
        #expect(world.words(1) == ["incoming", "ended them cancelled"])
        expectEmpty()
    }

    @Test("A CANCEL that crosses the 200: the call is acknowledged and ended by BYE")
    mutating func crossedCancel() throws {
        let handle = try call()
        world.run(for: .milliseconds(50))
        try answer()
        world.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended us cancelled"])
        #expect(world.words(1).last == "ended them hungUp")
        #expect(world.lines.contains { $0.hasPrefix("0 BYE") })
        expectEmpty()
    }

    @Test("Nobody is there: the caller hears of it after 32 s")
    mutating func nobody() throws {
        world.arrives = { _ in false }
        _ = try call()
        world.run(for: .milliseconds(31_900))
        #expect(world.words(0).isEmpty)
        world.run(for: .seconds(40))
        #expect(world.words(0) == ["ended network timeout"])
        expectEmpty()
    }

    @Test("Nobody answers: the called side says 486 after its patience")
    mutating func unanswered() throws {
        _ = try call()
        world.run(for: .seconds(100))
        #expect(world.words(0) == ["ended them refused(486)"])
        #expect(world.words(1) == ["incoming", "ended us refused(486)"])
        expectEmpty()
    }

    @Test("A lost ACK: the 200 comes again, and gets the same ACK")
    mutating func lostAck() throws {
        _ = try call()
        world.run(for: .milliseconds(50))
        try answer()
        var lost = 2
        world.arrives = { line in
            guard line.hasPrefix("ACK"), lost > 0 else { return true }
            lost -= 1
            return false
        }
        world.run(for: .seconds(10))
        #expect(world.lines.count { $0.hasPrefix("1 SIP/2.0 200") } == 3)
        #expect(world.lines.count { $0.hasPrefix("0 ACK") } == 3)
        #expect(world.words(0) == ["agreed sendsreceives", "established"])
    }

    @Test("No ACK ever: the called side gives up after 32 s, and says BYE")
    mutating func noAck() throws {
        _ = try call()
        world.run(for: .milliseconds(50))
        try answer()
        world.arrives = { !$0.hasPrefix("ACK") }
        world.run(for: .seconds(80))
        #expect(world.words(1).last == "ended network unacknowledged")
        #expect(world.words(0).last == "ended them hungUp")
        expectEmpty()
    }

    @Test("Hold and resume by either side", arguments: [0, 1])
    mutating func hold(_ side: Int) throws {
        let calls = try established()
        let handle = side == 0 ? calls.alice : calls.bob
        let agent = world.nodes[side].agent
        var session = try #require(agent.session(of: handle))
        session.hold = .withMusic
        world.with(side) { agent, now in agent.change(handle, to: session, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(side) == ["agreed sends held by us"])
        #expect(world.words(1 - side) == ["agreed receives held by them"])
        session.hold = nil
        world.with(side) { agent, now in agent.change(handle, to: session, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(side) == ["agreed sendsreceives"])
        #expect(world.words(1 - side) == ["agreed sendsreceives"])
    }

    @Test("Both hold at once: 491, and after the wait both are as they wished")
    mutating func glare() throws {
        let calls = try established()
        for (side, handle) in [calls.alice, calls.bob].enumerated() {
            try world.hold(side, handle)
        }
        world.run(for: .seconds(20))
        #expect(world.lines.count { $0.contains("491") } >= 1)
        #expect(world.words(0).last?.contains("held by us") == true)
        #expect(world.words(1).last?.contains("held by us") == true)
    }

    @Test("Keys by INFO")
    mutating func keys() throws {
        let calls = try established()
        for key in "5#" {
            try world.with(0) { agent, now in try agent.send(DTMFRelay(key), in: calls.alice, at: now) }
        }
        world.run(for: .seconds(1))
        #expect(world.words(1) == ["key 5", "key #"])
    }

    @Test("A peer that has forgotten the call: 481 to a change ends it")
    mutating func forgotten() throws {
        let calls = try established()
        world.with(1) { agent, now in agent.finish(calls.bob, CallEnd(.us, .hungUp), at: now) }
        try world.hold(0, calls.alice)
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended network timeout"])
        expectEmpty()
    }

    @Test("No codec in common: 488, and nobody is left with a call")
    mutating func noCodec() throws {
        _ = try call()
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        let format = PayloadFormat(payloadType: 96, encodingName: "opus", clockRate: 48_000, channelCount: 2)
        let other = SessionConfiguration(
            address: "192.0.2.2",
            media: [MediaConfiguration(port: 4000, formats: [format])]
        )
        world.with(1) { agent, now in #expect(throws: SIPError.self) { try agent.answer(bob, other, at: now) } }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them refused(488)"])
        expectEmpty()
    }

    @Test("OPTIONS and MESSAGE get their answers; a method that is not taken 405")
    mutating func requests() throws {
        let bob = try SIPURI(parsing: Bytes("sip:bob@192.0.2.2"))
        for (method, body) in [(SIPMethod.options, ""), (.message, "hello"), (.subscribe, "")] {
            _ = try world.with(0) { agent, now in
                try agent.send(
                    method,
                    to: bob,
                    type: body.isEmpty ? nil : "text/plain",
                    body: Array(body.utf8),
                    at: now
                )
            }
            world.run(for: .seconds(1))
        }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["response 200", "response 200", "response 405"])
        #expect(world.words(1) == ["message hello"])
        expectEmpty()
    }

    @Test("Every third datagram lost: calls are made and ended all the same, and nothing is left")
    mutating func loss() throws {
        for seed in 0..<20 {
            var generator = SeededGenerator(seed: UInt64(seed))
            world.arrives = { _ in generator.nextUnit() > 0.33 }
            let handle = try call()
            world.run(for: .seconds(15))
            guard let bob = world.nodes[1].events.compactMap(\.call).last else { continue }
            _ = try? world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
            world.run(for: .seconds(15))
            world.with(0) { agent, now in agent.hangUp(handle, at: now) }
            world.run(for: .seconds(100))
            #expect(world.words(0).last?.hasPrefix("ended") == true)
            #expect(world.words(1).last?.hasPrefix("ended") == true)
            expectEmpty()
        }
    }

    @Test("Calls of one address beyond those that may ring are refused, and the others ring on")
    mutating func flood() throws {
        for _ in 0..<40 { _ = try call() }
        world.run(for: .seconds(1))
        #expect(world.words(1).count { $0 == "incoming" } == 32)
        #expect(world.words(0).count { $0 == "ended them refused(503)" } == 8)
        world.run(for: .seconds(200))
        expectEmpty()
    }

    @Test("By UDP, requests go past a proxy that left the way, and by one that stayed", arguments: [true, false])
    mutating func proxy(_ isOnWay: Bool) throws {
        // The INVITE of a caller at 192.0.2.50 comes by a proxy at 192.0.2.9, with two Vias.
        let proxy = try #require(SocketAddress(host: "192.0.2.9", port: 5060))
        let lines = [
            "INVITE sip:bob@192.0.2.2 SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKp1",
            "Via: SIP/2.0/UDP 192.0.2.50;branch=z9hG4bKc1", "Max-Forwards: 69", "From: <sip:carol@192.0.2.50>;tag=c",
            "To: <sip:bob@192.0.2.2>", "Call-ID: past", "CSeq: 1 INVITE", "Contact: <sip:carol@192.0.2.50:5080>",
        ]
        let route = isOnWay ? ["Record-Route: <sip:192.0.2.9;lr>"] : []
        func send(_ lines: [String], _ agent: inout UserAgent, _ now: MediaTime) {
            let bytes = Array((lines + ["Content-Length: 0", "", ""]).joined(separator: "\r\n").utf8)
            agent.handle(.datagram(bytes, local: world.nodes[1].address, remote: proxy), at: now)
        }
        var agent = world.nodes[1].agent
        send(lines + route, &agent, .zero)
        var targets: [String] = []
        func carry() {
            while let output = agent.poll() {
                guard case .send(let bytes, let flow) = output else { continue }
                targets.append("\(String(decoding: bytes.prefix { $0 != 0x20 }, as: UTF8.self)) \(flow.remote)")
            }
        }
        carry()
        let handle = try #require(agent.calls.names.first)
        try agent.answer(handle, .plain("192.0.2.2"), at: .zero)
        carry()
        let tag = try #require(agent.calls[handle]?.dialog?.id.localTag.text)
        let ack = [
            "ACK sip:bob@192.0.2.2 SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.50;branch=z9hG4bKc2", "Max-Forwards: 69",
            "From: <sip:carol@192.0.2.50>;tag=c", "To: <sip:bob@192.0.2.2>;tag=\(tag)", "Call-ID: past", "CSeq: 1 ACK",
        ]
        send(ack, &agent, .zero)
        carry()
        // An offer without an answer in the ACK ends the call: BYE.
        let address = isOnWay ? "192.0.2.9:5060" : "192.0.2.50:5080"
        #expect(targets.last == "BYE \(address)")
    }

    @Test("The same seed and the same calls give the same bytes")
    func sameBytes() throws {
        var runs: [[String]] = []
        for _ in 0..<2 {
            var test = try AgentCallTests()
            _ = try test.established()
            test.world.run(for: .seconds(5))
            runs.append(test.world.lines)
        }
        #expect(runs[0] == runs[1])
    }
}
