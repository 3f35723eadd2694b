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

    @Test(arguments: [(0, 0), (1, 0), (4, 0), (5, 1), (1000, 996)])
    func `after a stall a few ticks run and the rest is skipped`(
        behind: Int,
        skipped: Int
    ) {
        #expect(LatenessPolicy(maximumCatchUp: 4).skippedTicks(behind: behind) == skipped)
    }
}
