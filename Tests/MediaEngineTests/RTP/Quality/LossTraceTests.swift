@testable import MediaEngine
import Testing

@Suite struct LossTraceTests {
    private func trace(
        _ numbers: [Int],
        into trace: LossTrace = LossTrace(),
        verdict: ReceiverStatistics.Verdict = .inOrder
    ) -> LossTrace {
        var trace = trace
        for number in numbers { trace.receive(UInt16(truncatingIfNeeded: number), verdict: verdict) }
        return trace
    }

    /// The trace as text, `x` for a lost packet.
    private func text(_ trace: LossTrace) -> String {
        (0..<trace.count).map { trace.hasCome($0) ? "." : "x" }.joined()
    }

    @Test func `gaps of numbers are losses, also over the wrap, and a reordered packet is none`() {
        let found = trace([65_533, 65_534, 2, 3, 1])
        #expect(text(found) == "..xx...")
        #expect(found.beginSequence == 65_533 && found.endSequence == 4)
    }

    @Test func `an interval begins with the number after the last, and what comes late changes nothing`() {
        var found = trace([10, 11, 13])
        found.beginInterval()
        #expect(found.count == 0 && found.beginSequence == 14)
        found = trace([12, 16, 17], into: found)
        #expect(text(found) == "xx.." && found.beginSequence == 14 && found.endSequence == 18)
    }

    @Test func `duplicates and stray numbers are no packets of the trace`() {
        let found = trace([5, 500, 5], into: trace([5, 7]), verdict: .badSequence)
        #expect(text(trace([7], into: found, verdict: .duplicate)) == ".x.")
    }

    @Test func `a stray before the source is forgotten, and a restart begins anew`() {
        let running = trace([3, 4], into: trace([900, 1, 2], verdict: .probation))
        #expect(text(running) == "...." && running.beginSequence == 1)
        let restarted = trace([40_002, 40_004], into: trace([40_001], into: running, verdict: .restarted))
        #expect(text(restarted) == "..x." && restarted.beginSequence == 40_001)
    }

    @Test func `of more numbers than fit the newest are kept`() {
        let long = trace(Array(0..<5000).filter { $0 % 7 != 3 })
        #expect(long.count == LossTrace.capacity && long.endSequence == 5000)
        for index in 0..<long.count { #expect(long.hasCome(index) == ((5000 - 1024 + index) % 7 != 3)) }
        let gap = trace([7000], into: long)
        #expect(text(gap) == String(repeating: "x", count: 1023) + ".")
    }
}
