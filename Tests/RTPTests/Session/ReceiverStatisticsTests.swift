import CallBasics
@testable import RTP
import Testing

@Suite struct ReceiverStatisticsTests {
    private static func feed(_ sequence: [UInt16], probation: Int = 2) -> (
        ReceiverStatistics, [ReceiverStatistics.Verdict]
    ) {
        var statistics = ReceiverStatistics(probation: probation)
        var verdicts: [ReceiverStatistics.Verdict] = []
        for (index, number) in sequence.enumerated() {
            let header = RTPHeader(payloadType: 0, sequenceNumber: number, timestamp: UInt32(index) * 160, ssrc: 1)
            let arrival = MediaTime(nanoseconds: Int64(index) * 20_000_000)
            verdicts.append(statistics.receive(header, clockRate: 8000, arrival: arrival))
        }
        return (statistics, verdicts)
    }

    @Test func `a source is valid after two packets in sequence, which both count`() {
        let (statistics, verdicts) = Self.feed([9, 5, 6, 7])
        #expect(verdicts == [.probation, .probation, .inOrder, .inOrder])
        #expect(statistics.isValid && statistics.receivedCount == 3 && statistics.lostCount == 0)
    }

    @Test(
        arguments: [
            // sequence numbers, received, lost, duplicate, reordered
            ([UInt16](1...10), 10, 0, 0, 0),
            ([1, 2, 4, 5], 4, 1, 0, 0),
            ([1, 2, 4, 3, 5], 5, 0, 0, 1),
            ([1, 2, 3, 3, 4], 5, 0, 1, 0),
            ([1, 2, 3, 3, 5], 5, 1, 1, 0),
            ([65533, 65534, 65535, 0, 1], 5, 0, 0, 0),
            ([65534, 65535, 1, 0, 0], 5, 0, 1, 1),
            ([100, 101, 99, 98], 4, 0, 0, 2),
            ([1, 2, 150, 149, 149], 5, 146, 1, 1),
        ] as [([UInt16], Int, Int, Int, Int)]
    )
    func `packets are counted by what became of them`(
        sequence: [UInt16],
        received: Int,
        lost: Int,
        duplicate: Int,
        reordered: Int
    ) {
        let (statistics, _) = Self.feed(sequence)
        #expect(statistics.receivedCount == UInt64(received))
        #expect(statistics.lostCount == UInt64(lost))
        #expect(statistics.duplicateCount == UInt64(duplicate))
        #expect(statistics.reorderedCount == UInt64(reordered))
    }

    @Test func `a jump counts only when the next packet follows it`() {
        let (stray, verdicts) = Self.feed([1, 2, 40000, 3, 4])
        #expect(verdicts == [.probation, .inOrder, .badSequence, .inOrder, .inOrder])
        #expect(stray.lostCount == 0 && stray.badSequenceCount == 1)
        let (restarted, moved) = Self.feed([1, 2, 4, 40000, 40001, 40002])
        #expect(moved.suffix(3) == [.badSequence, .restarted, .inOrder])
        #expect(restarted.restartCount == 1 && restarted.lostCount == 1 && restarted.receivedCount == 6)
        #expect(restarted.badSequenceCount == 0)
    }

    // Time stamps and the clock go on by 20 ms a packet.
    @Test(arguments: [30, 1000, 2999, -30, -100])
    func `numbers that jump while time does not are a restart, and no loss`(jump: Int) {
        let before = (0..<50).map { UInt16(1000 + $0) }
        let after = (50..<60).map { UInt16(1000 + $0 + jump) }
        let (statistics, verdicts) = Self.feed(before + after)
        #expect(Array(verdicts[50..<53]) == [.badSequence, .restarted, .inOrder])
        #expect(statistics.lostCount == 0 && statistics.duplicateCount == 0 && statistics.reorderedCount == 0)
        #expect(statistics.receivedCount == 60 && statistics.restartCount == 1)
    }

    /// Opus at 48 kHz: 20 ms of speech in a packet, in silence one each 420 ms.
    @Test(arguments: 7...9) func `what is lost after silence is lost, and no jump`(missing: Int) {
        var statistics = ReceiverStatistics()
        var (milliseconds, verdicts): (Int, [ReceiverStatistics.Verdict]) = (0, [])
        for number in 0..<40 {
            milliseconds += (3...5).contains(number) ? 420 : 20
            guard number != missing else { continue }
            let timestamp = UInt32(milliseconds * 48)
            let header = RTPHeader(payloadType: 96, sequenceNumber: UInt16(number), timestamp: timestamp, ssrc: 1)
            let arrival = MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000)
            verdicts.append(statistics.receive(header, clockRate: 48_000, arrival: arrival))
        }
        #expect(verdicts == [.probation] + [ReceiverStatistics.Verdict](repeating: .inOrder, count: 38))
        #expect(statistics.lostCount == 1 && statistics.restartCount == 0)
        #expect(statistics.packetNanoseconds == 20_000_000)
    }

    @Test func `a jump is confirmed by whatever follows, a key that tells no time as well`() {
        var statistics = ReceiverStatistics()
        let packets = [(1, 8000), (2, 8000), (3, 8000), (33, 8000), (34, 0), (35, 8000)]
        let verdicts = packets.enumerated().map { index, packet in
            let timestamp = UInt32(index * 160)
            let header = RTPHeader(payloadType: 0, sequenceNumber: UInt16(packet.0), timestamp: timestamp, ssrc: 1)
            let arrival = MediaTime(nanoseconds: Int64(index) * 20_000_000)
            return statistics.receive(header, clockRate: UInt32(packet.1), arrival: arrival)
        }
        #expect(verdicts == [.probation, .inOrder, .inOrder, .badSequence, .restarted, .inOrder])
        #expect(statistics.lostCount == 0 && statistics.receivedCount == 6)
    }

    @Test func `sequence numbers are extended over wraps`() {
        let (statistics, _) = Self.feed((0..<70_000).map { UInt16(truncatingIfNeeded: $0) })
        #expect(statistics.expectedCount == 70_000)
        #expect(statistics.reportedHighest & 0xFFFF == UInt32(69_999 & 0xFFFF))
        #expect(statistics.extended(UInt16(69_990 & 0xFFFF)) == statistics.extendedHighest - 9)
    }

    // RFC 3550, section 6.4.1: the high half of the number counts cycles, of which the first is 0.
    @Test(
        arguments: [([60_000, 60_001], 60_001), ([65_534, 65_535, 0, 1], 0x1_0001), ([9, 10, 11], 11)]
            as [([UInt16], UInt32)]
    )
    func `the first cycle is 0, whatever the first number is`(numbers: [UInt16], reported: UInt32) {
        #expect(Self.feed(numbers).0.reportedHighest == reported)
    }

    @Test func `the fraction lost is that of the interval`() {
        var (statistics, _) = Self.feed([1, 2, 3, 5])
        #expect(statistics.takeFractionLost() == 256 / 5)
        #expect(statistics.takeFractionLost() == 0)
        #expect(statistics.cumulativeLost == 1)
    }

    @Test func `duplicates make the reported loss negative, never the fraction`() {
        var (statistics, _) = Self.feed([1, 2, 2, 2])
        #expect(statistics.cumulativeLost == -2)
        #expect(statistics.takeFractionLost() == 0)
        #expect(statistics.lostCount == 0)
    }

    @Test func `jitter follows RFC 3550 A-8`() {
        // Transit times alternate by 80 units, so J approaches 80: after n packets 80 · (1 - (15/16)^n).
        var statistics = ReceiverStatistics(probation: 1)
        for index in 0..<200 {
            let header = RTPHeader(
                payloadType: 0,
                sequenceNumber: UInt16(index),
                timestamp: UInt32(index) * 160,
                ssrc: 1
            )
            let late: Int64 = index % 2 == 0 ? 0 : 10_000_000
            let arrival = MediaTime(nanoseconds: Int64(index) * 20_000_000 + late)
            _ = statistics.receive(header, clockRate: 8000, arrival: arrival)
        }
        #expect((79...80).contains(statistics.jitter))
        #expect(abs(statistics.jitterDuration.milliseconds - 10) < 0.1)
    }

    @Test func `a timestamp that wraps leaves jitter alone`() {
        var statistics = ReceiverStatistics(probation: 1)
        for index in 0..<100 {
            let header = RTPHeader(
                payloadType: 0,
                sequenceNumber: UInt16(index),
                timestamp: UInt32.max - 4000 &+ UInt32(index) &* 160,
                ssrc: 1
            )
            let arrival = MediaTime(nanoseconds: Int64(index) * 20_000_000)
            _ = statistics.receive(header, clockRate: 8000, arrival: arrival)
        }
        #expect(statistics.jitter == 0)
    }

    @Test func `any headers at any times do not trap`() {
        var generator = SeededGenerator(seed: 7)
        var statistics = ReceiverStatistics()
        for _ in 0..<20_000 {
            let random = generator.next()
            let header = RTPHeader(
                payloadType: 0,
                sequenceNumber: random & 1 == 0
                    ? UInt16(truncatingIfNeeded: random >> 8) & 63 : UInt16(truncatingIfNeeded: random >> 8),
                timestamp: UInt32(truncatingIfNeeded: generator.next()),
                ssrc: 1
            )
            let arrival = MediaTime(nanoseconds: Int64(bitPattern: generator.next()))
            _ = statistics.receive(header, clockRate: UInt32(truncatingIfNeeded: generator.next()), arrival: arrival)
            _ = statistics.takeFractionLost()
            _ = statistics.cumulativeLost
            _ = statistics.jitterDuration
        }
    }
}
