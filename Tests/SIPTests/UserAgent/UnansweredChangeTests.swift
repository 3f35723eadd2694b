import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Changes of a call that have a provisional response, and no final one.
@Suite struct UnansweredChangeTests {
    private var test: AgentCallTests
    private let alice: CallHandle
    private let bob: CallHandle

    init() throws {
        test = try AgentCallTests()
        (alice, bob) = try test.established()
    }

    @Test mutating func `one that the other side hangs up meanwhile is taken back, and leaves nothing`() throws {
        test.world.arrives = { !$0.hasSuffix(" 200 OK") }
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(1))
        // Bob, who waits for the ACK to his 200, hangs up in the end.
        test.world.run(for: .seconds(60))
        #expect(test.world.words(0) == ["ended them hungUp"])
        #expect(test.world.lines.contains { $0.hasPrefix("0 CANCEL ") })
        test.world.run(for: .seconds(60))
        test.expectEmpty()
    }

    @Test mutating func `one that nobody answers is taken back after as long as a call may ring`() throws {
        test.world.arrives = { !$0.hasSuffix(" 200 OK") && !$0.hasPrefix("BYE ") }
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(59))
        #expect(!test.world.lines.contains { $0.hasPrefix("0 CANCEL ") })
        #expect(test.world.words(0).isEmpty)
        test.world.run(for: .seconds(2))
        #expect(test.world.lines.contains { $0.hasPrefix("0 CANCEL ") })
        // Nothing is heard behind that, so the call is over (RFC 3261, section 14.1).
        test.world.run(for: .seconds(33))
        #expect(test.world.words(0) == ["ended network timeout"])
        test.world.run(for: .seconds(60))
        test.expectEmpty()
    }

    @Test(arguments: [true, false])
    func `an answer that makes no dialog leaves nothing in the end`(isChange: Bool) throws {
        var test = try AgentCallTests()
        if isChange {
            let calls = try test.established()
            test.world.arrives = { !$0.hasPrefix("INVITE ") }
            try test.world.hold(0, calls.alice)
        } else {
            test.world.arrives = { !$0.hasPrefix("INVITE ") }
            _ = try test.call()
        }
        let sent = try #require(test.world.sent.last { $0.startLine.hasPrefix("INVITE ") })
        var answer = try SIPMessage(datagram: sent.bytes).response(status: 200, reason: "OK", tag: Bytes("x"))
        var from = try #require(try answer.from())
        from.tag = nil
        try answer.set(.from, to: from)
        let (own, other) = (test.world.nodes[0].address, test.world.nodes[1].address)
        test.world.handle(.datagram(answer.bytes, local: own, remote: other), at: .agent(0))
        test.world.run(for: .seconds(100))
        #expect(test.world.words(0) == [isChange ? "ended network timeout" : "ended us timeout"])
        test.world.run(for: .seconds(120))
        test.expectEmpty()
    }
}
