import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Requests of a phone that rings, before it has answered: to the caller they are within a call.
@Suite struct EarlyRequestTests {
    private var test: AgentCallTests
    private let alice: CallHandle
    private let bob: CallHandle
    /// The dialog as Bob has it, who rings.
    private var dialog: Dialog

    init() throws {
        test = try AgentCallTests()
        alice = try test.call()
        test.world.run(for: .milliseconds(50))
        let ringing = try test.world.call(1)
        bob = ringing
        try test.world.with(1) { agent, now in try agent.ring(ringing, at: now) }
        test.world.run(for: .seconds(1))
        dialog = try #require(test.world.nodes[1].agent.calls[ringing]?.dialog)
        _ = (test.world.words(0), test.world.words(1))
    }

    /// The status that Alice answers.
    private mutating func status(
        of method: SIPMethod,
        _ change: (inout SIPMessage) throws -> Void = { _ in }
    ) throws -> Int? {
        var request = try dialog.makeRequest(method)
        let branch = Bytes("z9hG4bK\(test.world.sent.count)")
        try request.prepend(.via, Via(transport: Bytes("UDP"), host: Bytes("192.0.2.2"), port: 5060, branch: branch))
        try change(&request)
        let (from, to, count) = (test.world.nodes[1].address, test.world.nodes[0].address, test.world.sent.count)
        test.world.handle(.datagram(request.bytes, local: to, remote: from), at: .agent(0))
        return try test.world.sent.dropFirst(count).first.flatMap { try SIPMessage(datagram: $0.bytes).statusCode }
    }

    private mutating func answerAndEnd() throws {
        let bob = bob
        try test.world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed sendsreceives", "established"])
        let alice = alice
        test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        test.world.run(for: .seconds(120))
        test.expectEmpty()
    }

    @Test mutating func `an UPDATE that changes nothing is answered, and one whose offer meets ours waits`() throws {
        #expect(try status(of: .update) == 200)
        let offered = try status(of: .update) {
            try $0.set(.contentType, to: Bytes("application/sdp")); $0.setBody([0x76])
        }
        #expect(offered == 491)
        try answerAndEnd()
    }

    @Test mutating func `an UPDATE may tell another address`() throws {
        let contact = try NameAddress(parsing: Bytes("<sip:bob@192.0.2.2:5070>"))
        #expect(try status(of: .update) { try $0.set(.contact, to: contact) } == 200)
        let errand = try #require(test.world.nodes[0].agent.calls[alice]?.errand)
        var latest = test.world.nodes[0].agent.errands[errand]?.forks?.latest
        #expect(latest?.remoteTarget.port == 5070)
        // One that is refused tells none.
        let elsewhere = try NameAddress(parsing: Bytes("<sip:bob@192.0.2.2:5080>"))
        let refused = try status(of: .update) { request in
            try request.set(.contact, to: elsewhere)
            request.setBody([0x76])
        }
        latest = test.world.nodes[0].agent.errands[errand]?.forks?.latest
        #expect(refused == 491 && latest?.remoteTarget.port == 5070)
        try answerAndEnd()
    }

    @Test mutating func `keys and questions are answered`() throws {
        let key = DTMFRelay("5")
        let pressed = try status(of: .info) { request in
            try request.set(.contentType, to: Bytes("application/dtmf-relay"))
            request.setBody(key.body)
        }
        #expect(pressed == 200)
        #expect(test.world.words(0) == ["key 5"])
        #expect(try status(of: .options) == 200)
        try answerAndEnd()
    }

    @Test mutating func `what is older than the last one is out of order, and who rings cannot hang up`() throws {
        let former = dialog
        #expect(try status(of: .options) == 200)
        dialog = former
        #expect(try status(of: .options) == 500)
        _ = dialog.takeNumber()
        #expect(try status(of: .bye) == 481)
        try answerAndEnd()
    }

    @Test mutating func `a call that is taken back leaves no name of a phone that rang`() throws {
        #expect(try status(of: .update) == 200)
        let alice = alice
        test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        test.world.run(for: .seconds(120))
        #expect(try status(of: .update) == 481)
        test.world.run(for: .seconds(120))
        test.expectEmpty()
    }
}
