import CallBasics
import Testing

@testable import SIP

/// Provisional responses that are acknowledged, of both sides.
@Suite struct ReliableProvisionalsTests {
    private func reliable(_ number: Int, status: Int = 183, cSeq: String = "1 INVITE") throws -> SIPMessage {
        try Calls.lines(
            [
                "SIP/2.0 \(status) X", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1", "From: <sip:a@b>;tag=1",
                "To: <sip:b@c>;tag=2", "Call-ID: c1", "CSeq: \(cSeq)", "Require: 100Rel", "RSeq: \(number)",
            ]
        )
    }

    @Test func `each new one is acknowledged, what comes again or too early is not`() throws {
        var receiver = ReliableReceiver()
        let invite = CSeq(1, .invite)
        let story: [(Int, ReliableReceiver.Verdict)] = [
            (776_656, .new(RAck(responseNumber: 776_656, cSeq: invite))), (776_656, .passedOver),
            (776_658, .passedOver),
            (776_657, .new(RAck(responseNumber: 776_657, cSeq: invite))), (776_655, .passedOver),
        ]
        for (number, verdict) in story { #expect(try receiver.receive(reliable(number)) == verdict, "\(number)") }
    }

    @Test func `ordinary and final responses are none`() throws {
        var receiver = ReliableReceiver()
        #expect(try receiver.receive(Calls.response(180)) == .unreliable)
        #expect(try receiver.receive(reliable(1, status: 200)) == .unreliable)
        #expect(try receiver.receive(reliable(1, status: 100)) == .unreliable)
        #expect(try receiver.receive(reliable(0)) == .unreliable)
    }

    // RFC 3262, section 3: T1, doubled each time, for 64 T1.
    @Test func `it is repeated without a cap, and then given up`() throws {
        var responder = ReliableResponder(TransactionTimers(), number: 7)
        var response = try Calls.response(183)
        try responder.begin(&response, at: .zero)
        #expect(response.values(named: "RSeq") == ["7"] && response.values(named: "Require") == ["100rel"])
        var times: [Int] = []
        while let deadline = responder.deadline {
            let action = responder.handleTimeout(at: deadline)
            times.append(Int((deadline - .zero).milliseconds) * (action == .send ? 1 : -1))
        }
        #expect(times == [500, 1500, 3500, 7500, 15_500, 31_500, -32_000] && responder.isFree)
    }

    @Test func `only the PRACK of the one that waits counts, and the next has the next number`() throws {
        var responder = ReliableResponder(TransactionTimers(), number: 0x7FFF_FFFF)
        var response = try Calls.response(183)
        try responder.begin(&response, at: .zero)
        #expect(!responder.isFree && !responder.holdsAnswer)
        let tries: [(UInt32, UInt32, Bool)] = [
            (1, 10, false), (0x7FFF_FFFF, 11, false), (0x7FFF_FFFF, 10, true), (0x7FFF_FFFF, 10, false),
        ]
        for (number, cSeq, isTaken) in tries {
            let taken = responder.receive(RAck(responseNumber: number, cSeq: CSeq(cSeq, .invite)))
            #expect(taken == isTaken, "\(number) \(cSeq)")
        }
        #expect(responder.isFree)
        var next = try Calls.response(180)
        next.setBody(Array("v=0\r\n".utf8))
        try responder.begin(&next, at: .zero)
        #expect(next.values(named: "RSeq") == ["2147483648"] && responder.holdsAnswer)
        responder.end()
        #expect(responder.isFree && responder.deadline == nil && !responder.holdsAnswer)
    }
}
