import CallBasics
@testable import RTP
import Testing

@Suite struct SequenceNumberTests {
    @Test(
        arguments: [(5, 3, 2), (3, 5, -2), (0, 65535, 1), (65535, 0, -1), (32767, 0, 32767), (32768, 0, -32768)]
            as [(UInt16, UInt16, Int)]
    )
    func `distances go the shorter way`(later: UInt16, earlier: UInt16, distance: Int) {
        #expect(SequenceNumber(later).distance(from: SequenceNumber(earlier)) == distance)
        #expect(SequenceNumber(later).isNewer(than: SequenceNumber(earlier)) == (distance > 0))
    }

    @Test func `numbers are extended near a reference`() {
        #expect(SequenceNumber(2).extended(near: 65_534) == 65_538)
        #expect(SequenceNumber(65_534).extended(near: 65_538) == 65_534)
        #expect(SequenceNumber(65_535).next == SequenceNumber(0))
    }

    // Rosetta Code, "Pseudo-random numbers/Splitmix64": seed 1234567.
    @Test func `the seeded generator is SplitMix64`() {
        var generator = SeededGenerator(seed: 1_234_567)
        let expected: [UInt64] = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        #expect(expected.allSatisfy { $0 == generator.next() })
        #expect((0..<1000).allSatisfy { _ in (0..<1).contains(generator.nextUnit()) })
    }
}
