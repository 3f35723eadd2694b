import CallBasics
@testable import RTP
import Testing

@Suite struct ReceptionRecordTests {
    /// What a source that sent `numbers`, of which the first are those of its probation, leaves on record.
    private func statistics(_ numbers: [Int], into statistics: ReceiverStatistics? = nil) -> ReceiverStatistics {
        var statistics = statistics ?? ReceiverStatistics()
        for number in numbers {
            let header = RTPHeader(
                payloadType: 0,
                sequenceNumber: UInt16(truncatingIfNeeded: number),
                timestamp: UInt32(truncatingIfNeeded: number * 160),
                ssrc: 1
            )
            _ = statistics.receive(header, clockRate: 8000, arrival: .zero)
        }
        return statistics
    }

    /// The interval's packets as text, `x` for one that is missing.
    private func text(_ trace: LossTrace) -> String {
        (0..<trace.count).map { trace.hasCome($0) ? "." : "x" }.joined()
    }

    @Test func `gaps of numbers are losses, also over the wrap, and a reordered packet is none`() {
        let record = statistics([65_533, 65_534, 2, 3, 1]).record
        #expect(text(record.unreported) == "..xx...")
        #expect(record.unreported.beginSequence == 65_533 && record.unreported.endSequence == 4)
        #expect(record.recent.statistics.packetCount == 7 && record.recent.statistics.lostCount == 2)
    }

    @Test func `an interval begins with the number after the last, and what comes late changes nothing`() {
        var source = statistics([10, 11, 13])
        source.record.beginInterval()
        #expect(source.record.unreported.count == 0 && source.record.unreported.beginSequence == 14)
        let trace = statistics([12, 16, 17], into: source).record.unreported
        #expect(text(trace) == "xx.." && trace.beginSequence == 14 && trace.endSequence == 18)
    }

    @Test func `duplicates and stray numbers are no packets of the record`() {
        let record = statistics([5, 6, 8, 8, 40_000, 5]).record
        #expect(text(record.unreported) == "..x.")
        #expect(record.recent.statistics.packetCount == 4)
    }

    @Test func `a stray before the source is forgotten, and a restart begins anew but for the counts`() {
        let running = statistics([900, 1, 2, 3, 5])
        #expect(text(running.record.unreported) == "...x." && running.record.unreported.beginSequence == 1)
        let restarted = statistics([40_000, 40_001, 40_003], into: running)
        #expect(text(restarted.record.unreported) == "..x.")
        let found = restarted.record.recent.statistics
        #expect(found.packetCount == 5 + 4 && found.lostCount == 2)
        // 39,999 has the bit that 959 had modulo 1024, and is no duplicate of anything.
        #expect(statistics([39_999], into: restarted).duplicateCount == 0)
    }

    @Test func `what is thrown away long after it came counts, too, as far back as is remembered`() {
        var record = statistics(Array(0..<2000).filter { $0 != 1500 }).record
        for number in 1400..<1410 { record.discard(UInt16(number)) }
        record.discard(1500)
        record.discard(900)
        let found = record.recent.statistics
        #expect(found.discardedCount == 10 && found.lostCount == 1 && found.packetCount == 2000)
        #expect(found.discardFraction == 0.005)
    }

    @Test func `all that a full buffer throws away at once fits the list`() {
        var list = PlayoutReport.Numbers()
        for number in 0..<256 { list.append(UInt16(number)) }
        let last = list.number(255)
        #expect(list.count == 256 && last == 255)
        for number in 0..<1000 { list.append(UInt16(number)) }
        #expect(list.count < 300)
    }

    @Test func `of more numbers than fit the newest are kept`() {
        let long = statistics(Array(0..<5000).filter { $0 % 7 != 3 })
        let trace = long.record.unreported
        #expect(trace.count == ReceptionRecord.capacity && trace.endSequence == 5000)
        for index in 0..<trace.count { #expect(trace.hasCome(index) == ((5000 - 1024 + index) % 7 != 3)) }
        let gap = statistics([7000], into: long).record.unreported
        #expect(text(gap) == String(repeating: "x", count: 1023) + ".")
    }

    @Test func `a packet that the playout throws away is discarded, and one rebuilt is not lost`() {
        var record = statistics([1, 2, 4, 5, 7]).record
        record.discard(4)
        record.rebuild(3)
        record.discard(500)
        #expect(record.recent.statistics.discardedCount == 1 && record.recent.statistics.lostCount == 1)
        // 6 never came, so nothing of it can be thrown away, and 5 came, so it cannot be rebuilt.
        record.discard(6)
        record.rebuild(5)
        #expect(record.recent.statistics.lostCount == 1 && record.recent.statistics.discardedCount == 1)
        // What was rebuilt stays lost on the network.
        #expect(text(record.unreported) == "..x..x.")
    }

    @Test func `fates that are settled count as they did while they were open`() {
        let numbers = Array(0..<1000).filter { $0 % 10 != 3 }
        let found = statistics(numbers + [1499]).record.recent.statistics
        #expect(found.packetCount == 1500 && found.lostCount == 100 + 499)
        #expect(found.burstCount >= 1)
    }

    @Test func `for any order of packets the record is what a list of them says`() {
        var generator = SeededGenerator(seed: 5)
        var source = ReceiverStatistics(probation: 1)
        var came: Set<Int> = []
        var highest = 70
        for _ in 0..<20_000 {
            let number = highest + 2 - Int(generator.next() % 60)
            guard number >= 70, generator.next() % 4 != 0 else {
                highest += 1
                continue
            }
            let isNew = came.insert(number).inserted
            let header = RTPHeader(
                payloadType: 0,
                sequenceNumber: UInt16(truncatingIfNeeded: number),
                timestamp: 0,
                ssrc: 1
            )
            let verdict = source.receive(header, clockRate: 0, arrival: .zero)
            #expect((verdict == .duplicate) == !isNew)
            highest = max(highest, number)
        }
        let newest = came.max() ?? 0
        #expect(source.receivedCount - source.duplicateCount == UInt64(came.count))
        let first = came.min() ?? 0
        #expect(source.lostCount == UInt64(newest - first + 1 - came.count))
        let trace = source.record.unreported
        for index in 0..<trace.count {
            #expect(trace.hasCome(index) == came.contains(newest + 1 - trace.count + index))
        }
    }

    @Test func `the length of packets is what two steps agree on`() {
        #expect(statistics([1, 2]).packetNanoseconds == 0)
        #expect(statistics([1, 2, 3]).packetNanoseconds == 20_000_000)
        #expect(statistics([1, 2, 3, 5, 6]).packetNanoseconds == 20_000_000)
    }
}
