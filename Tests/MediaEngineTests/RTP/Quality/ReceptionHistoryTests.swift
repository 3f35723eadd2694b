@testable import MediaEngine
import Testing

@Suite struct ReceptionHistoryTests {
    private func history(
        _ numbers: [Int],
        into history: ReceptionHistory = ReceptionHistory(),
        verdict: ReceiverStatistics.Verdict = .inOrder
    ) -> ReceptionHistory {
        var history = history
        for number in numbers {
            let header = RTPHeader(
                payloadType: 0,
                sequenceNumber: UInt16(truncatingIfNeeded: number),
                timestamp: UInt32(truncatingIfNeeded: number * 160),
                ssrc: 1
            )
            history.receive(header, clockRate: 8000, verdict: verdict)
        }
        return history
    }

    @Test func `gaps of numbers are losses, also over the wrap`() {
        let found = history([65_533, 65_534, 1, 2]).statistics
        #expect(found.packetCount == 6 && found.lostCount == 2)
    }

    @Test func `a reordered packet is not lost`() {
        let found = history([1, 2, 4, 5, 3, 6]).statistics
        #expect(found.packetCount == 6 && found.lostCount == 0)
    }

    @Test func `a packet that the buffer throws away is discarded, and one rebuilt is not lost`() {
        var found = history([1, 2, 4, 5, 7])
        found.discard(4)
        found.recover(3)
        found.discard(500)
        #expect(found.statistics.discardedCount == 1 && found.statistics.lostCount == 1)
        // 6 never came, so nothing of it can be thrown away.
        found.discard(6)
        #expect(found.statistics.lostCount == 1 && found.statistics.discardedCount == 1)
    }

    @Test func `a long gap, and fates that are settled, count the same`() {
        let numbers = Array(0..<1000).filter { $0 % 10 != 3 }
        let found = history(numbers + [1499]).statistics
        #expect(found.packetCount == 1500 && found.lostCount == 100 + 499)
        #expect(found.burstCount >= 1)
    }

    @Test func `a stray before the source is forgotten, a restart goes on counting`() {
        let probation = history([900, 1], verdict: .probation)
        let running = history([2, 3, 5], into: probation)
        #expect(running.statistics.packetCount == 5 && running.statistics.lostCount == 1)
        let restarted = history([40_001], into: running, verdict: .restarted)
        let found = history([40_002, 40_004], into: restarted).statistics
        #expect(found.packetCount == 5 + 4 && found.lostCount == 2)
    }

    @Test func `the length of packets is what two steps agree on`() {
        #expect(history([1, 2]).packetNanoseconds == 0)
        #expect(history([1, 2, 3]).packetNanoseconds == 20_000_000)
        #expect(history([1, 2, 3, 5, 6]).packetNanoseconds == 20_000_000)
    }
}
