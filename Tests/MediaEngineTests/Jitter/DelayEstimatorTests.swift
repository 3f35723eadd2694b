import Testing

@testable import MediaEngine

@Suite struct DelayEstimatorTests {
    private static let millisecond: Int64 = 1_000_000

    /// Feeds packets of 20 ms whose network delays in ms are given by `delay`, and answers the estimator.
    private func feed(
        _ estimator: inout DelayEstimator,
        packets: Range<Int>,
        delay: (Int) -> Int
    ) -> [Int64] {
        // In the order of arrival, as a socket gives them.
        packets.map { (number: $0, arrival: $0 * 20 + delay($0)) }.sorted { $0.arrival < $1.arrival }.map {
            estimator.add(
                arrival: Int64($0.arrival) * Self.millisecond,
                mediaTime: Int64($0.number) * 20 * Self.millisecond,
                length: 20 * Self.millisecond
            )
        }
    }

    @Test func `a steady network needs no delay`() {
        var estimator = DelayEstimator()
        _ = feed(&estimator, packets: 0..<200) { _ in 35 }
        let (high, base) = (estimator.highDelay, estimator.base)
        #expect(high == 0)
        #expect(base == 35 * Self.millisecond)
    }

    @Test(arguments: [30, 60, 100])
    func `the delay is the jitter's width`(_ jitter: Int) {
        var estimator = DelayEstimator()
        var generator = SeededGenerator(seed: 11)
        _ = feed(&estimator, packets: 0..<1500) { _ in 20 + Int(generator.next() % UInt64(jitter)) }
        let high = Int(estimator.highDelay / Self.millisecond)
        let common = Int(estimator.commonDelay / Self.millisecond)
        #expect((jitter - 6...jitter + 4).contains(high), "\(high) ms")
        #expect((jitter * 85 / 100...jitter).contains(common), "\(common) ms")
    }

    @Test func `packets that a stall held up count once`() {
        var estimator = DelayEstimator()
        _ = feed(&estimator, packets: 0..<500) { _ in 20 }
        // 300 ms in which nothing comes, then fifteen packets at once.
        _ = feed(&estimator, packets: 500..<515) { 20 + 300 - ($0 - 500) * 20 }
        #expect(estimator.highDelay == 0)
        // One more soon afterwards, and they are no longer rare.
        _ = feed(&estimator, packets: 515..<560) { _ in 20 }
        _ = feed(&estimator, packets: 560..<570) { 20 + 200 - ($0 - 560) * 20 }
        #expect(estimator.highDelay >= 200 * Self.millisecond)
    }

    @Test func `stalls that come again and again are prepared for`() {
        var estimator = DelayEstimator()
        _ = feed(&estimator, packets: 0..<1000) { number in
            let position = number % 50
            return position < 10 ? 20 + 200 - position * 20 : 20
        }
        #expect(estimator.highDelay >= 200 * Self.millisecond)
    }

    @Test func `the base follows a path that becomes longer, and takes along what it taught`() {
        var estimator = DelayEstimator()
        _ = feed(&estimator, packets: 0..<300) { _ in 20 }
        _ = feed(&estimator, packets: 300..<600) { _ in 120 }
        #expect(estimator.base == 120 * Self.millisecond)
        #expect(estimator.highDelay == 0)
        let delays = feed(&estimator, packets: 600..<602) { _ in 20 }
        #expect(delays == [0, 0])
        #expect(estimator.base == 20 * Self.millisecond)
    }

    @Test func `a sender whose clock runs slow costs little delay`() {
        var estimator = DelayEstimator()
        // 1000 ppm: 1 ms in a second.
        _ = feed(&estimator, packets: 0..<6000) { 20 + $0 / 50 }
        #expect(estimator.highDelay <= 10 * Self.millisecond)
    }

    @Test func `a path that is longer than anybody can wait is taken with its second packet, and jitter stays known`() {
        var estimator = DelayEstimator()
        _ = feed(&estimator, packets: 0..<300) { 20 + $0 % 3 * 20 }
        let high = estimator.highDelay
        _ = feed(&estimator, packets: 300..<301) { _ in 1020 }
        #expect(estimator.base == 20 * Self.millisecond)
        _ = feed(&estimator, packets: 301..<302) { _ in 1040 }
        let (base, after) = (estimator.base, estimator.highDelay)
        #expect(base == 1020 * Self.millisecond)
        #expect(high >= 40 * Self.millisecond && after == high)
    }

    @Test func `jitter of a second, without a silence, is no other path`() {
        var estimator = DelayEstimator()
        var generator = SeededGenerator(seed: 3)
        let delays = feed(&estimator, packets: 0..<2000) { _ in 20 + Int(generator.next() % 1000) }
        // Of a base that moved up, many would be early.
        let median = delays.sorted()[1000]
        #expect((400 * Self.millisecond...600 * Self.millisecond).contains(median))
        let (base, high) = (estimator.base, estimator.highDelay)
        #expect(base < 100 * Self.millisecond && high >= 600 * Self.millisecond)
    }

    @Test func `packets that catch up after a long stall have taken no other path`() {
        var estimator = DelayEstimator()
        _ = feed(&estimator, packets: 0..<300) { _ in 20 }
        // One second in which nothing comes, then one packet each 10 ms.
        _ = feed(&estimator, packets: 300..<400) { 20 + 1000 - ($0 - 300) * 10 }
        #expect(estimator.base == 20 * Self.millisecond)
    }
}
