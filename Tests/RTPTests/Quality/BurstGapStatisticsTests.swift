import CallBasics
@testable import RTP
import Testing

@Suite struct BurstGapStatisticsTests {
    /// The statistics of `text`: 1 is received, 0 lost, X discarded.
    private func statistics(_ text: String) -> BurstGapStatistics {
        var statistics = BurstGapStatistics()
        for character in text { statistics.count(character == "1" ? .received : character == "0" ? .lost : .discarded) }
        return statistics
    }

    @Test func `the example of RFC 3611, section 4_7_2`() {
        // 64 packets of 10 ms; the last of them is missing in the RFC's drawing, not in its text.
        let example = statistics("11110111111111111111111X111X1011110111111111111111111X1111111111")
        #expect(example.packetCount == 64)
        #expect(example.burstCount == 1 && example.meanBurstPacketCount == 12)
        #expect((example.burstDensity * 100).rounded() == 33)
        #expect(example.meanGapPacketCount == 23 + 29)
        #expect((example.gapDensity * 100).rounded() == 4)
        #expect(Int(example.lossFraction * 256) == 12 && Int(example.discardFraction * 256) == 12)
    }

    @Test func `no packets, no loss and no quality`() {
        let none = BurstGapStatistics()
        #expect(none.lossFraction == 0 && none.burstDensity == 0 && none.gapDensity == 0)
        #expect(none.meanBurstPacketCount == 0 && none.meanGapPacketCount == 0 && none.burstRatio == 1)
        let clean = statistics(String(repeating: "1", count: 100))
        #expect(clean.burstCount == 0 && clean.gapPacketCount == 100 && clean.gapDensity == 0 && clean.burstRatio == 1)
    }

    @Test(arguments: [
        // Fifteen received packets hold a burst together, sixteen part it.
        ("0" + String(repeating: "1", count: 15) + "0", 1, 17, 2),
        ("0" + String(repeating: "1", count: 16) + "0", 0, 0, 0),
        ("000", 1, 3, 3),
        ("1110", 0, 0, 0),
        ("0X" + String(repeating: "1", count: 16) + "00" + String(repeating: "1", count: 20) + "0", 2, 4, 4),
        (String(repeating: "1", count: 20) + "0110111", 1, 4, 2),
    ]) func `bursts begin and end with a loss`(text: String, bursts: Int, packets: Int, losses: Int) {
        let found = statistics(text)
        #expect(found.burstCount == bursts && found.burstPacketCount == packets && found.burstLossCount == losses)
        #expect(found.gapPacketCount == text.count - packets)
        #expect(found.gapLossCount == text.filter { $0 != "1" }.count - losses)
    }

    @Test func `the burst ratio is 1 for losses each for itself, and grows with their runs`() {
        var generator = SeededGenerator(seed: 3)
        let random = String((0..<20_000).map { _ in generator.nextUnit() < 0.1 ? "0" : "1" })
        #expect(abs(statistics(random).burstRatio - 1) < 0.05)
        let runs = String(repeating: String(repeating: "1", count: 36) + "0000", count: 100)
        #expect(abs(statistics(runs).burstRatio - 4 * 0.9) < 0.001)
        #expect(statistics("0000").burstRatio == 1)
    }
}
