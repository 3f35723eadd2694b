@testable import MediaEngine
import Testing

@Suite struct LatenessTests {
    @Test func `quantiles lie within a quarter of an octave`() {
        var histogram = LatenessHistogram()
        for microseconds in 1...1000 { histogram.add(.microseconds(microseconds)) }
        #expect(histogram.maximum == .milliseconds(1))
        for share in [0.1, 0.5, 0.9, 0.99] {
            let found = histogram.quantile(share).milliseconds * 1000
            #expect(found >= share * 1000 && found <= share * 1000 * 1.26)
        }
        #expect(LatenessHistogram().quantile(0.99) == .zero)
        histogram.add(.seconds(100))
        #expect(histogram.quantile(1) == .seconds(100))
    }

    @Test(arguments: [(0, 0), (1, 0), (8, 0), (20, 0), (100, 0), (101, 1), (1000, 900)])
    func `every tick that a stall of up to a second delayed is made up, and the rest is skipped`(
        behind: Int,
        skipped: Int
    ) {
        #expect(LatenessPolicy().skippedTicks(behind: behind, tickDuration: .milliseconds(10)) == skipped)
    }
}
