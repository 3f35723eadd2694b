import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// A phone that wants to know of its mailbox, and somebody who tells it by hand.
@Suite struct SubscriptionTests {
    private var world = VirtualNetwork()
    private let server = SocketAddress(ipv4: 0xC000_0263, port: 5060)
    private var notified = 0

    init() throws { _ = try world.add("alice") }

    private mutating func subscribe(
        expires: UInt32 = 3600,
        account: AccountHandle? = nil
    ) throws -> SubscriptionHandle {
        var wishes = SubscriptionWishes(
            try SIPURI("sip:alice@192.0.2.99"),
            event: "message-summary",
            accept: [MessageSummary.contentType]
        )
        (wishes.expires, wishes.account) = (expires, account)
        let made = wishes
        let handle = try world.with(0) { agent, now in try agent.subscribe(made, at: now) }
        world.run(for: .milliseconds(50))
        return handle
    }

    /// The SUBSCRIBEs, repeats not among them.
    private var requests: [SIPMessage] {
        get throws {
            var branches: Set<Bytes> = []
            return try world.sent.filter { $0.startLine.hasPrefix("SUBSCRIBE") }
                .map { try SIPMessage(datagram: $0.bytes) }.filter { branches.insert($0.first(.via) ?? []).inserted }
        }
    }

    private var last: SIPMessage {
        get throws {
            let sent = try #require(world.sent.last { $0.startLine.hasPrefix("SUBSCRIBE") })
            return try SIPMessage(datagram: sent.bytes)
        }
    }

    private mutating func give(_ message: SIPMessage) {
        world.handle(.datagram(message.bytes, local: world.nodes[0].address, remote: server), at: .agent(0))
        world.run(for: .milliseconds(50))
    }

    /// Answers the last SUBSCRIBE.
    private mutating func answer(_ status: Int = 200, _ headers: (String, String)...) throws {
        let request = try last
        var response = try request.response(status: status, reason: "x", tag: Bytes("server"))
        try response.append(.contact, Bytes("<sip:192.0.2.99>"))
        for header in headers { try response.append(named: header.0, header.1) }
        give(response)
    }

    /// Tells the state of the subscription that was asked for last.
    private mutating func notify(
        _ state: String,
        tag: String = "server",
        event: String = "message-summary",
        type: String = MessageSummary.contentType,
        _ body: String = ""
    ) throws {
        let request = try last
        notified += 1
        var notify = SIPMessage(.notify, to: try #require(try request.contacts().first).uri)
        let branch = Bytes("z9hG4bKn\(notified)")
        try notify.append(.via, Via(transport: Bytes("UDP"), host: Bytes("192.0.2.99"), port: 5060, branch: branch))
        try notify.append(.from, Bytes("<sip:alice@192.0.2.99>;tag=\(tag)"))
        try notify.append(.to, try #require(try request.from()))
        try notify.append(.callID, try #require(request.callID))
        try notify.append(.cSeq, CSeq(UInt32(notified), .notify))
        try notify.append(.contact, Bytes("<sip:192.0.2.99>"))
        try notify.append(.event, Bytes(event))
        try notify.append(.subscriptionState, Bytes(state))
        if !body.isEmpty { try notify.set(.contentType, to: Bytes(type)) }
        notify.setBody(Array(body.utf8))
        give(notify)
    }

    /// What was answered to the last NOTIFY.
    private var answered: String? {
        world.lines.last { $0.hasPrefix("0 SIP/2.0") }.map { String($0.dropFirst(10).prefix(3)) }
    }

    private mutating func expectEmpty(_ sourceLocation: SourceLocation = #_sourceLocation) {
        world.run(for: .seconds(100))
        var counts = world.nodes[0].agent.counts
        (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
        #expect(counts == AgentCounts(), sourceLocation: sourceLocation)
    }

    @Test mutating func `asked, allowed, told, refreshed in time, and ended`() throws {
        let handle = try subscribe()
        try answer(202, ("Expires", "600"))
        try notify("pending;expires=600")
        try notify("active;expires=600", "Messages-Waiting: yes\r\nVoice-Message: 2/8 (0/2)\r\n")
        #expect(
            world.words(0) == [
                "pending", "state Messages-Waiting: yes\r\nVoice-Message: 2/8 (0/2)\r\n", "active 600",
            ]
        )
        world.run(for: .seconds(520))
        #expect(try requests.count == 2)
        let refresh = try #require(try requests.last)
        #expect(try refresh.to()?.tag == Bytes("server") && refresh.first(.expires) == Bytes("3600"))
        try answer(200, ("Expires", "600"))
        world.with(0) { agent, now in agent.unsubscribe(handle, at: now) }
        world.run(for: .milliseconds(50))
        #expect(try requests.last?.first(.expires) == Bytes("0"))
        try answer(200, ("Expires", "0"))
        #expect(world.words(0).isEmpty)
        try notify("terminated;reason=timeout")
        #expect(world.words(0) == ["ended unsubscribed"])
        #expect(answered == "200")
        expectEmpty()
    }

    @Test mutating func `a state that comes before the answer makes the dialog`() throws {
        _ = try subscribe()
        try notify("active;expires=3600", "Messages-Waiting: no\r\n")
        try answer()
        #expect(world.words(0) == ["state Messages-Waiting: no\r\n", "active 3600"])
        world.run(for: .seconds(3100))
        #expect(try requests.last?.to()?.tag == Bytes("server"))
    }

    @Test mutating func `behind a challenge, a state before the answer makes a dialog that counts on`() throws {
        var account = AccountConfiguration(identity: NameAddress(try SIPURI("sip:alice@192.0.2.99")))
        account.credentials = [Credentials(userName: "alice", password: "wonderland")]
        let made = account
        let handle = world.with(0) { agent, _ in agent.addAccount(made) }
        _ = try subscribe(account: handle)
        try answer(401, ("WWW-Authenticate", #"Digest realm="x", nonce="1", qop="auth", algorithm=SHA-256"#))
        try notify("active;expires=3600", "Messages-Waiting: no\r\n")
        try answer(200, ("Expires", "3600"))
        world.run(for: .seconds(3100))
        let numbers = try requests.map { try #require(try $0.cSeq()).number }
        #expect(numbers.count == 3 && zip(numbers, numbers.dropFirst()).allSatisfy(<), "\(numbers)")
    }

    @Test mutating func `one who answers and tells nothing is asked again, ever later`() throws {
        _ = try subscribe()
        for _ in 0..<4 {
            try answer()
            world.run(for: .seconds(50))
        }
        #expect(
            world.words(0).prefix(3) == [
                "interrupted - 1.0 seconds", "interrupted - 2.0 seconds", "interrupted - 4.0 seconds",
            ]
        )
        #expect(Set(try requests.compactMap(\.callID)).count == (try requests.count))
    }

    @Test(arguments: [
        ("rejected", "ended terminated(reason: \"rejected\")"),
        ("noresource", "ended terminated(reason: \"noresource\")"),
        ("invariant", "ended terminated(reason: \"invariant\")"),
        ("deactivated", "interrupted deactivated 1.0 seconds"),
        ("timeout", "interrupted timeout 1.0 seconds"), ("giveup", "interrupted giveup 1.0 seconds"),
        ("probation;retry-after=300", "interrupted probation 300.0 seconds"),
    ])
    mutating func `the reason says whether it is asked for again, and when`(reason: String, word: String) throws {
        _ = try subscribe()
        try answer()
        try notify("active;expires=3600")
        _ = world.takeEvents(0)
        try notify("terminated;reason=\(reason)")
        #expect(world.words(0) == [word])
        world.run(for: .seconds(250))
        let isAskedSoon = word.hasPrefix("interrupted") && !word.contains("300")
        #expect((try requests.count > 1) == isAskedSoon)
        if word.hasPrefix("ended") { expectEmpty() }
    }

    @Test mutating func `a refusal ends it, a longer time is asked for once more`() throws {
        _ = try subscribe(expires: 60)
        try answer(423, ("Min-Expires", "1800"))
        #expect(try requests.last?.first(.expires) == Bytes("1800"))
        try answer(489)
        #expect(world.words(0) == ["ended refused(489)"])
        expectEmpty()
    }

    @Test mutating func `who wants it ever longer is not asked for ever`() throws {
        _ = try subscribe(expires: 60)
        for seconds in 61...80 { try answer(423, ("Min-Expires", "\(seconds)")) }
        #expect(world.words(0) == ["ended refused(423)"])
        #expect(try requests.count == 4)
        expectEmpty()
    }

    @Test mutating func `a refresh that is not known any more makes it anew, another refusal leaves it its time`()
        throws
    {
        _ = try subscribe(expires: 100)
        try answer(200, ("Expires", "100"))
        try notify("active;expires=100")
        world.run(for: .seconds(86))
        try answer(500)
        _ = world.takeEvents(0)
        world.run(for: .seconds(10))
        #expect(world.words(0).isEmpty)
        world.run(for: .seconds(10))
        #expect(world.words(0) == ["interrupted - 1.0 seconds"])
        try answer(200, ("Expires", "100"))
        try notify("active;expires=100")
        world.run(for: .seconds(86))
        try answer(481)
        #expect(world.words(0).last == "interrupted - 1.0 seconds")
    }

    @Test mutating func `what is of another fork, package or type, late or without a state is refused`() throws {
        _ = try subscribe()
        try answer()
        try notify("active;expires=3600")
        try notify("active", tag: "fork")
        #expect(answered == "481")
        try notify("active", event: "presence")
        #expect(answered == "481")
        try notify("active", type: "text/html", "x")
        #expect(answered == "415")
        notified = 0
        try notify("active")
        #expect(answered == "200", "a repeat of the first is absorbed, and answered as that was")
        #expect(world.words(0) == ["active 3600"])
    }

    @Test mutating func `once is once`() throws {
        _ = try subscribe(expires: 0)
        try answer(200, ("Expires", "0"))
        try notify("terminated;reason=timeout", "Messages-Waiting: no\r\n")
        #expect(world.words(0) == ["state Messages-Waiting: no\r\n", "ended unsubscribed"])
        expectEmpty()
    }

    @Test mutating func `nobody there is tried again, and given up by who does not want it any more`() throws {
        let handle = try subscribe()
        world.run(for: .seconds(40))
        #expect(world.words(0).first?.hasPrefix("interrupted") == true)
        world.with(0) { agent, now in agent.unsubscribe(handle, at: now) }
        world.run(for: .seconds(40))
        #expect(world.words(0).last == "ended unsubscribed")
        expectEmpty()
    }

    @Test mutating func `a late answer to a refresh is not that of what is made anew`() throws {
        _ = try subscribe(expires: 100)
        try answer(200, ("Expires", "100"))
        try notify("active;expires=100")
        world.run(for: .seconds(86))
        #expect(try requests.count == 2)
        try notify("terminated;reason=timeout")
        try answer(481)
        #expect(world.words(0) == ["active 100", "interrupted timeout 1.0 seconds"])
        world.run(for: .seconds(2))
        #expect(try requests.count == 3 && requests.last?.to()?.tag == nil)
    }

    @Test mutating func `what was made in vain before does not count as asked for longer`() throws {
        _ = try subscribe(expires: 60)
        for _ in 0..<600 where try requests.count < 4 { world.run(for: .seconds(1)) }
        try answer(423, ("Min-Expires", "1800"))
        #expect(try requests.count == 5 && requests.last?.first(.expires) == Bytes("1800"))
    }

    @Test mutating func `one that a state has made, and that nobody answers, is refreshed all the same`() throws {
        _ = try subscribe(expires: 600)
        try notify("active")
        world.run(for: .seconds(600))
        #expect(try requests.count >= 2)
    }

    @Test mutating func `a week of refreshes leaves nothing behind`() throws {
        let handle = try subscribe()
        try answer(200, ("Expires", "3600"))
        try notify("active;expires=3600")
        // Each is refreshed after 3060 s.
        for _ in 2...200 {
            world.run(for: .milliseconds(3_060_000))
            try answer(200, ("Expires", "3600"))
            try notify("active;expires=3600")
        }
        #expect(try requests.count == 200)
        _ = world.takeEvents(0)
        world.with(0) { agent, now in agent.unsubscribe(handle, at: now) }
        world.run(for: .milliseconds(50))
        try answer(200, ("Expires", "0"))
        try notify("terminated")
        expectEmpty()
    }
}
