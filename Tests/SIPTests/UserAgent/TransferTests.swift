import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Alice (0) is in a call with Bob (1), who is to talk to Carol (2).
@Suite("Calls that are transferred")
struct TransferTests {
    var test: AgentCallTests
    let alice: CallHandle
    let bob: CallHandle

    init() throws {
        test = try AgentCallTests { $0.takesTransfers = true }
        _ = try test.world.add("carol")
        (alice, bob) = try test.established()
    }

    private let carol = "sip:carol@192.0.2.3"

    /// Alice sends Bob to Carol.
    private mutating func transfer() throws {
        let (alice, uri) = (alice, try SIPURI(carol))
        try test.world.with(0) { agent, now in try agent.transfer(alice, to: uri, at: now) }
        test.world.run(for: .milliseconds(100))
    }

    /// Bob does what he is asked for.
    private mutating func accept() throws -> CallHandle {
        let bob = bob
        let made = try test.world.with(1) { agent, now in try agent.acceptTransfer(bob, .plain("192.0.2.2"), at: now) }
        test.world.run(for: .milliseconds(100))
        return made
    }

    private mutating func answer(_ index: Int) throws {
        let handle = try test.world.call(index)
        try test.world.with(index) { agent, now in
            try agent.answer(handle, .plain("192.0.2.\(index + 1)"), at: now)
        }
        test.world.run(for: .milliseconds(500))
    }

    private mutating func hangUp(_ index: Int, _ handle: CallHandle) {
        test.world.with(index) { agent, now in agent.hangUp(handle, at: now) }
        test.world.run(for: .seconds(60))
    }

    @Test("Blind: Bob calls Carol, Alice is told each step, and leaves")
    mutating func blind() throws {
        try transfer()
        #expect(test.world.words(1) == ["asked for \(carol)"])
        let made = try accept()
        let handle = try test.world.call(2)
        try test.world.with(2) { agent, now in try agent.ring(handle, at: now) }
        test.world.run(for: .seconds(1))
        try answer(2)
        #expect(
            test.world.words(0) == [
                "transfer accepted(status: 202)", "transfer progress(status: 100)", "transfer progress(status: 180)",
                "transfer done(status: 200)",
            ]
        )
        hangUp(0, alice)
        #expect(
            test.world.words(1) == ["progress 180", "agreed sendsreceives", "established", "ended them hungUp"]
        )
        hangUp(1, made)
        #expect(test.world.words(2).last == "ended them hungUp")
        test.expectEmpty()
    }

    @Test("Alice does not leave behind the transfer: Bob does")
    mutating func lingers() throws {
        try transfer()
        let made = try accept()
        try answer(2)
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0).last == "transfer done(status: 200)")
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0) == ["ended them hungUp"])
        #expect(test.world.words(1).suffix(2) == ["established", "ended us hungUp"])
        hangUp(1, made)
        test.expectEmpty()
    }

    @Test("Alice does not leave behind the transfer, and asks for another one: Bob stays to decide")
    mutating func asksAgain() throws {
        try transfer()
        let made = try accept()
        try answer(2)
        test.world.run(for: .seconds(2))
        try transfer()
        test.world.run(for: .seconds(5))
        #expect(test.world.words(0).last == "transfer progress(status: 100)")
        hangUp(0, alice)
        hangUp(1, made)
        test.expectEmpty()
    }

    @Test("Alice hangs up right after the REFER was taken: Bob's new call goes on")
    mutating func leavesEarly() throws {
        try transfer()
        let made = try accept()
        let alice = alice
        test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        test.world.run(for: .seconds(1))
        try answer(2)
        #expect(test.world.words(1).suffix(2) == ["agreed sendsreceives", "established"])
        hangUp(1, made)
        test.expectEmpty()
    }

    @Test("Carol refuses, cannot be found, or never answers: Alice hears how", arguments: [486, 404, 408])
    mutating func failed(_ status: Int) throws {
        let (alice, uri) = (alice, try SIPURI(status == 404 ? "sip:carol@nowhere.test" : carol))
        if status == 408 { test.world.arrives = { !$0.hasPrefix("INVITE") } }
        try test.world.with(0) { agent, now in try agent.transfer(alice, to: uri, at: now) }
        test.world.run(for: .milliseconds(100))
        _ = try accept()
        if status == 486 {
            let handle = try test.world.call(2)
            test.world.with(2) { agent, now in agent.reject(handle, status: 486, at: now) }
        }
        test.world.run(for: .seconds(90))
        #expect(test.world.words(0).last == "transfer failed(status: \(status))")
        // Both are still in their call.
        test.world.arrives = { _ in true }
        hangUp(0, alice)
        #expect(test.world.words(1).last == "ended them hungUp")
        test.expectEmpty()
    }

    @Test("Bob refuses, or Alice hangs up before he decides")
    mutating func refused() throws {
        try transfer()
        let bob = bob
        test.world.with(1) { agent, now in agent.refuseTransfer(bob, at: now) }
        test.world.run(for: .seconds(1))
        #expect(
            test.world.words(0) == [
                "transfer accepted(status: 202)", "transfer progress(status: 100)", "transfer failed(status: 603)",
            ]
        )
        try transfer()
        hangUp(0, alice)
        #expect(throws: SIPError.self) { try accept() }
        test.expectEmpty()
    }

    @Test("Bob does not decide within a minute: that is a refusal, and the call goes on")
    mutating func undecided() throws {
        try transfer()
        test.world.run(for: .seconds(59))
        #expect(test.world.words(0).last == "transfer progress(status: 100)")
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0) == ["transfer failed(status: 408)"])
        #expect(test.world.words(1) == ["asked for \(carol)", "asked no more"])
        #expect(throws: SIPError.self) { try accept() }
        try transfer()
        // What was asked for first cannot be accepted any more.
        let bob = bob
        #expect(throws: SIPError.self) {
            try test.world.with(1) { agent, now in
                try agent.acceptTransfer(bob, number: 1, .plain("192.0.2.2"), at: now)
            }
        }
        test.world.with(1) { agent, now in agent.refuseTransfer(bob, number: 1, at: now) }
        _ = try accept()
        hangUp(0, alice)
    }

    @Test("Where transfers are not taken: 603, and nobody is asked")
    mutating func notTaken() throws {
        test = try AgentCallTests()
        let calls = try test.established()
        let uri = try SIPURI(carol)
        try test.world.with(0) { agent, now in try agent.transfer(calls.alice, to: uri, at: now) }
        test.world.run(for: .milliseconds(100))
        #expect(test.world.words(0) == ["transfer failed(status: 603)"])
        #expect(test.world.words(1) == [])
    }

    @Test("A REFER waits until the hold before it was answered")
    mutating func afterHold() throws {
        let (alice, uri) = (alice, try SIPURI(carol))
        try test.world.with(0) { agent, now in
            var session = try #require(agent.session(of: alice))
            session.hold = .silent
            agent.change(alice, to: session, at: now)
            try agent.transfer(alice, to: uri, at: now)
        }
        test.world.run(for: .milliseconds(100))
        let sent = test.world.lines.filter { $0.hasPrefix("0 ") }.map { $0.split(separator: " ")[1] }
            .filter { $0 != "SIP/2.0" }
        #expect(sent.suffix(3) == ["INVITE", "ACK", "REFER"])
        #expect(throws: SIPError.self) {
            try test.world.with(0) { agent, now in try agent.transfer(alice, to: uri, at: now) }
        }
    }

    @Test("Attended: the call with Carol moves to Bob, who does not ring her again")
    mutating func attended() throws {
        let uri = try SIPURI(carol)
        let second = try test.world.with(0) { agent, now in
            try agent.call(uri, UserAgent.CallWishes(session: .plain("192.0.2.1", port: 4002)), at: now)
        }
        test.world.run(for: .milliseconds(100))
        let former = try test.world.call(2)
        try answer(2)
        for index in 0..<3 { _ = test.world.takeEvents(index) }
        let alice = alice
        try test.world.with(0) { agent, now in try agent.transfer(alice, to: second, at: now) }
        test.world.run(for: .milliseconds(100))
        let made = try accept()
        let handle = try test.world.call(2)
        #expect(test.world.nodes[2].agent.replacedCall(of: handle) == former)
        try answer(2)
        #expect(test.world.words(2).suffix(2) == ["established", "ended us replaced"])
        #expect(
            test.world.words(0) == [
                "transfer accepted(status: 202)", "transfer progress(status: 100)", "ended them hungUp",
                "transfer done(status: 200)",
            ]
        )
        hangUp(0, alice)
        hangUp(1, made)
        test.expectEmpty()
    }

    @Test(
        "An INVITE that replaces what is not there, is early, or two at once",
        arguments: [("none;to-tag=a;from-tag=b", 481), ("none", 400), ("a;to-tag=b;from-tag=c\r\nReplaces: d", 400)]
    )
    mutating func noReplacement(_ value: String, _ status: Int) throws {
        let lines = value.split(separator: "\r\n", omittingEmptySubsequences: false)
        let uri = try SIPURI("sip:bob@192.0.2.2")
        var wishes = UserAgent.CallWishes(session: .plain("192.0.2.3"))
        wishes.headers = lines.map { line in
            ("Replaces", String(line.hasPrefix("Replaces: ") ? line.dropFirst(10) : line[...]))
        }
        let made = wishes
        _ = try test.world.with(2) { agent, now in try agent.call(uri, made, at: now) }
        test.world.run(for: .seconds(1))
        #expect(test.world.words(2) == ["ended them refused(\(status))"])
        #expect(test.world.words(1).isEmpty)
    }

    @Test mutating func `who wants to replace a call that is over hears so`() throws {
        let id = try #require(test.world.nodes[1].agent.calls[bob]?.dialog?.id)
        hangUp(0, alice)
        let uri = try SIPURI("sip:bob@192.0.2.2")
        var wishes = UserAgent.CallWishes(session: .plain("192.0.2.3"))
        let value = "\(id.callID.text);to-tag=\(id.localTag.text);from-tag=\(id.remoteTag.text)"
        wishes.headers = [("Replaces", value)]
        let made = wishes
        for status in [603, 481] {
            _ = test.world.takeEvents(2)
            _ = try test.world.with(2) { agent, now in try agent.call(uri, made, at: now) }
            test.world.run(for: .seconds(1))
            #expect(test.world.words(2) == ["ended them refused(\(status))"])
            // Long after, others have ended since.
            test.world.run(for: .seconds(100))
            let other = try test.established()
            hangUp(0, other.alice)
        }
    }

    @Test("A transfer of which nothing is heard any more has failed, and another may follow", arguments: [true, false])
    mutating func silence(_ isHeardOf: Bool) throws {
        // Bob, whose user does not decide, would tell so after a minute.
        if !isHeardOf { test.world.arrives = { !$0.hasPrefix("NOTIFY ") } }
        try transfer()
        test.world.arrives = { !$0.hasPrefix("NOTIFY ") }
        test.world.run(for: .seconds(isHeardOf ? 91 : 31))
        #expect(!test.world.words(0).contains("transfer failed(status: 408)"))
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0) == ["transfer failed(status: 408)"])
        test.world.arrives = { _ in true }
        test.world.run(for: .seconds(60))
        try transfer()
        #expect(test.world.words(0) == ["transfer accepted(status: 202)", "transfer progress(status: 100)"])
        // What is still told of the first one is not about the second.
        var dialog = try #require(test.world.nodes[1].agent.calls[bob]?.dialog)
        var notify = try dialog.makeRequest(.notify)
        let via = Via(transport: Bytes("UDP"), host: Bytes("192.0.2.2"), port: 5060, branch: Bytes("z9hG4bKlate"))
        try notify.prepend(.via, via)
        try notify.append(.event, Bytes("refer"))
        try notify.append(.subscriptionState, Bytes("terminated;reason=noresource"))
        try notify.append(.contentType, Bytes("message/sipfrag"))
        notify.setBody(SIPFragment(status: 200).body)
        let (bytes, from, to) = (notify.bytes, test.world.nodes[1].address, test.world.nodes[0].address)
        test.world.handle(.datagram(bytes, local: to, remote: from), at: .agent(0))
        #expect(test.world.lines.last?.hasPrefix("0 SIP/2.0 481 ") ?? false)
        #expect(test.world.words(0).isEmpty)
    }

    @Test(
        "Of a Refer-To nothing but the address and Replaces is taken; other schemes and methods are declined",
        arguments: [
            ("<sip:carol@192.0.2.3?Subject=x&Route=%3Csip:192.0.2.9%3E>", 202), ("<mailto:carol@example.test>", 603),
            ("<sip:carol@192.0.2.3;method=BYE>", 603), ("<sip:carol@192.0.2.3?Replaces=%3B>", 400), ("", 400),
        ]
    )
    mutating func referTo(_ value: String, _ status: Int) throws {
        var dialog = try #require(test.world.nodes[0].agent.calls[alice]?.dialog)
        var refer = try dialog.makeRequest(.refer)
        if !value.isEmpty { try refer.append(.referTo, Bytes(value)) }
        try refer.prepend(
            .via,
            Via(transport: Bytes("UDP"), host: Bytes("192.0.2.1"), port: 5060, branch: Bytes("z9hG4bKx"))
        )
        let (bytes, from, to) = (refer.bytes, test.world.nodes[0].address, test.world.nodes[1].address)
        test.world.handle(.datagram(bytes, local: to, remote: from), at: .agent(1))
        if status == 202 {
            _ = try accept()
            let invite = try SIPMessage(
                datagram: #require(test.world.sent.last { $0.startLine.hasPrefix("INVITE") }).bytes
            )
            #expect(invite.first(.subject) == nil && invite.first(.route) == nil)
        }
        #expect(test.world.lines.contains { $0.hasPrefix("1 SIP/2.0 \(status)") })
    }
}
