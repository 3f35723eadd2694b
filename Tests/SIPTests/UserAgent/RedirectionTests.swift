import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Alice calls Bob, who leads her on.
@Suite struct RedirectionTests {
    private var world = VirtualNetwork()

    private mutating func begin(_ change: (inout AgentConfiguration) -> Void = { _ in }) throws -> CallHandle {
        _ = try world.add("alice", change)
        for name in ["bob", "carol"] { _ = try world.add(name) }
        let uri = try SIPURI("sip:bob@192.0.2.2")
        let handle = try world.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .milliseconds(50))
        return handle
    }

    private mutating func redirect(_ node: Int, _ uri: String) throws {
        let (call, target) = (try world.call(node), try SIPURI(uri))
        world.with(node) { agent, now in agent.redirect(call, to: target, at: now) }
        world.run(for: .milliseconds(50))
    }

    private func expectEmpty(_ sourceLocation: SourceLocation = #_sourceLocation) {
        for node in world.nodes {
            var counts = node.agent.counts
            (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
            #expect(counts == AgentCounts(), sourceLocation: sourceLocation)
        }
    }

    @Test mutating func `the call goes on to whom Bob names, as the same call`() throws {
        let alice = try begin()
        try redirect(1, "sip:carol@192.0.2.3")
        let carol = try world.call(2)
        try world.with(2) { agent, now in try agent.answer(carol, .plain("192.0.2.3"), at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["progress 302", "agreed sendsreceives", "established"])
        #expect(world.nodes[0].agent.callID(of: alice) == world.nodes[2].agent.callID(of: carol))
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended us hungUp"])
        #expect(
            world.lines.filter { $0.contains("INVITE") } == [
                "0 INVITE sip:bob@192.0.2.2 SIP/2.0", "0 INVITE sip:carol@192.0.2.3 SIP/2.0",
            ]
        )
        expectEmpty()
    }

    @Test(arguments: [486, 503])
    mutating func `of two whom Bob names the second is asked when the first refuses`(status: Int) throws {
        _ = try begin()
        _ = try world.add("dave")
        let call = try world.call(1)
        world.with(1) { agent, now in
            let contacts = "<sip:dave@192.0.2.4>;q=0.2, <sip:carol@192.0.2.3>"
            agent.reject(call, status: 302, [.init(name: .contact, value: contacts)], at: now)
        }
        world.run(for: .milliseconds(50))
        let carol = try world.call(2)
        world.with(2) { agent, now in agent.reject(carol, status: status, at: now) }
        world.run(for: .milliseconds(50))
        let dave = try world.call(3)
        try world.with(3) { agent, now in try agent.answer(dave, .plain("192.0.2.4"), at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0) == ["progress 302", "agreed sendsreceives", "established"])
    }

    @Test(arguments: [305, 380])
    mutating func `a status that names no other address is a refusal`(status: Int) throws {
        _ = try begin()
        let call = try world.call(1)
        world.with(1) { agent, now in
            agent.reject(call, status: status, [.init(name: .contact, value: "<sip:carol@192.0.2.3>")], at: now)
        }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them refused(\(status))"])
    }

    @Test mutating func `two who lead to each other lead nowhere`() throws {
        _ = try begin()
        try redirect(1, "sip:carol@192.0.2.3")
        try redirect(2, "sip:bob@192.0.2.2")
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["progress 302", "ended them refused(302)"])
        expectEmpty()
    }

    @Test mutating func `where redirections are not followed it is a refusal`() throws {
        _ = try begin { $0.followsRedirections = false }
        try redirect(1, "sip:carol@192.0.2.3")
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them refused(302)"])
        expectEmpty()
    }

    @Test mutating func `a call that is taken back meanwhile goes nowhere`() throws {
        let alice = try begin()
        let call = try world.call(1)
        let target = try SIPURI("sip:carol@192.0.2.3")
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.with(1) { agent, now in agent.redirect(call, to: target, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended us cancelled"])
        #expect(world.words(2) == [])
        expectEmpty()
    }

    @Test mutating func `nobody there: the refusal, or the silence, of the last one is told`() throws {
        _ = try begin()
        try redirect(1, "sip:nobody@192.0.2.9")
        world.run(for: .seconds(120))
        let words = world.words(0)
        #expect(words.first == "progress 302")
        #expect(words.last?.hasPrefix("ended network") == true, "\(words)")
        expectEmpty()
    }

    @Test func `Contacts are asked by preference, each once, five at most, never in the clear after TLS`() throws {
        func response(_ contacts: String...) throws -> SIPMessage {
            try SIPMessage(
                datagram: Messages.lines(
                    "SIP/2.0 302 Moved",
                    contacts.map { "Contact: \($0)" }.joined(separator: "\r\n"),
                    ""
                )
            )
        }
        func order(_ contacts: SIPMessage, asked: String) throws -> [String] {
            var redirection = Redirection()
            redirection.take(contacts, asked: try SIPURI(asked))
            var found: [String] = []
            while let next = redirection.next() { found.append("\(next)") }
            return found
        }
        let some = try response(
            "<sip:a@x>;q=0.1",
            "<tel:+1>;q=1",
            "<sip:b@x?Subject=hi>;q=0.5",
            "<sip:c@x>",
            "<sips:d@x>;q=0.5",
            "<sip:A@X>, <sip:a@x>"
        )
        #expect(try order(some, asked: "sip:bob@x") == ["sip:c@x", "sip:A@X", "sip:a@x", "sip:b@x", "sips:d@x"])
        #expect(try order(some, asked: "sips:bob@x") == ["sips:d@x"])
        #expect(try order(some, asked: "sip:c@x").contains("sip:c@x") == false)
        let many = try response((0..<20).map { "<sip:\($0)@x>" }.joined(separator: ", "))
        #expect(try order(many, asked: "sip:bob@x").count == 5)
        var redirection = Redirection()
        for index in 0..<20 { redirection.take(try response("<sip:\(index)@x>"), asked: try SIPURI("sip:bob@x")) }
        var count = 0
        while redirection.next() != nil { count += 1 }
        #expect(count == 5)
    }
}
