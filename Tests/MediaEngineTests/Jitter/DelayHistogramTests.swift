import Testing

@testable import MediaEngine

@Suite struct DelayHistogramTests {
    private static let millisecond: Int64 = 1_000_000

    @Test func `the prior is what is expected, until packets tell better`() {
        var histogram = DelayHistogram(memory: 100, prior: 40 * Self.millisecond, high: 0.98, common: 0.9)
        #expect(histogram.highDelay == 42_500_000)
        for _ in 0..<50 { histogram.add(0) }
        let (high, common) = (histogram.highDelay, histogram.commonDelay)
        #expect(high == 0)
        #expect(common == 0)
    }

    @Test func `the quantiles are those of the packets of late`() {
        var histogram = DelayHistogram(memory: 200, prior: 0, high: 0.95, common: 0.5)
        var generator = SeededGenerator(seed: 3)
        var delays: [Int64] = []
        for _ in 0..<3000 {
            let delay = Int64(generator.next() % 80) * Self.millisecond
            delays.append(delay)
            histogram.add(delay)
        }
        // Weights fall by 1/e over the memory: the exact quantile of the weighted packets, for comparison.
        let weighted = delays.enumerated().map { index, delay in
            (delay: delay, weight: pow(199.0 / 200, delays.count - index))
        }.sorted { $0.delay < $1.delay }
        let total = weighted.reduce(0) { $0 + $1.weight }
        func quantile(_ share: Double) -> Int64 {
            var sum = 0.0
            for entry in weighted {
                sum += entry.weight
                if sum >= share * total { return entry.delay }
            }
            return weighted.last?.delay ?? 0
        }
        let (high, common) = (histogram.highDelay, histogram.commonDelay)
        #expect(abs(high - quantile(0.95)) <= 4 * Self.millisecond)
        #expect(abs(common - quantile(0.5)) <= 6 * Self.millisecond)
    }

    @Test func `what is forgotten no longer counts, and scales stay finite`() {
        var histogram = DelayHistogram(memory: 50, prior: 0, high: 0.95, common: 0.5)
        for _ in 0..<5000 { histogram.add(100 * Self.millisecond) }
        #expect(histogram.highDelay == 102_500_000)
        for _ in 0..<5000 { histogram.add(20 * Self.millisecond) }
        #expect(histogram.highDelay == 22_500_000)
    }

    @Test func `a shift moves everything down, and nothing below zero`() {
        var histogram = DelayHistogram(memory: 100, prior: 0, high: 0.95, common: 0.4)
        for index in 0..<100 { histogram.add((index < 50 ? 10 : 110) * Self.millisecond) }
        histogram.shiftDown(100 * Self.millisecond)
        let (high, common) = (histogram.highDelay, histogram.commonDelay)
        #expect(high == 12_500_000)
        #expect(common == 0)
    }

    @Test func `delays beyond the last bucket and below zero are kept in bounds`() {
        var histogram = DelayHistogram(memory: 100, prior: 0, high: 0.95, common: 0.5)
        for _ in 0..<10 { histogram.add(.max) }
        #expect(histogram.highDelay == 640_000_000)
        for _ in 0..<2000 { histogram.add(.min) }
        #expect(histogram.highDelay == 0)
    }

    private func pow(_ base: Double, _ exponent: Int) -> Double {
        (0..<exponent).reduce(1) { product, _ in product * base }
    }
}
