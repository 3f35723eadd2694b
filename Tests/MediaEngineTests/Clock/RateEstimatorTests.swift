@testable import MediaEngine
import Testing

@Suite struct RateEstimatorTests {
    /// Looks every 10 ms, each up to `jitter` late, at a clock that is off by `ppm`.
    private func estimator(ppm: Double, jitterMs: Double, seconds: Int, seed: UInt64 = 1) -> RateEstimator {
        var estimator = RateEstimator(nominalRate: 48_000)
        var generator = SeededGenerator(seed: seed)
        for look in 0..<seconds * 100 {
            let time = MediaTime.zero + .milliseconds(10 * look)
            // The look is noted for when it was due, and sees what the clock has counted when it really happened.
            let late = Double.random(in: 0...1, using: &generator) * jitterMs / 1000
            let seen = (Double(look) / 100 + late) * 48_000 * (1 + ppm / 1e6)
            estimator.observe(frames: Int64(seen), at: time)
        }
        return estimator
    }

    @Test(arguments: [0.0, 50, -50, 300, -300, 1000, -1000], [0.0, 1, 4])
    func `the rate is right within 5 ppm after 30 s, whenever the looks come`(ppm: Double, jitterMs: Double) throws {
        for seed in 1...4 as ClosedRange<UInt64> {
            let found = try #require(estimator(ppm: ppm, jitterMs: jitterMs, seconds: 30, seed: seed).ppm)
            #expect(abs(found - ppm) < 5, "\(found) ppm for \(ppm)")
        }
    }

    @Test func `nothing is said before three seconds`() {
        #expect(estimator(ppm: 100, jitterMs: 0, seconds: 2).ppm == nil)
        #expect(estimator(ppm: 100, jitterMs: 0, seconds: 4).ppm != nil)
    }

    @Test func `a few looks that come far too late hardly matter`() throws {
        var estimator = RateEstimator(nominalRate: 48_000)
        for look in 0..<3000 {
            let late = look % 250 == 249 ? 0.04 : 0
            let seen = (Double(look) / 100 + late) * 48_000 * (1 + 80 / 1e6)
            estimator.observe(frames: Int64(seen), at: .zero + .milliseconds(10 * look))
        }
        #expect(abs(try #require(estimator.ppm) - 80) < 5)
    }

    @Test func `frames that were lost are no drift`() throws {
        var estimator = RateEstimator(nominalRate: 48_000)
        var lost = 0
        for look in 0..<3000 {
            if look == 500 || look == 2000 {
                lost += 700
                estimator.rebase()
            }
            let seen = Int(Double(look) * 480 * (1 - 120 / 1e6)) - lost
            estimator.observe(frames: Int64(seen), at: .zero + .milliseconds(10 * look))
        }
        #expect(abs(try #require(estimator.ppm) + 120) < 1)
    }

    @Test func `after a pause that is longer than the memory the rate is measured anew`() throws {
        var estimator = RateEstimator(nominalRate: 48_000)
        for look in 0..<15_000 where look < 3000 || look >= 12_000 {
            let seen = Double(look) * 480 * (1 + 100 / 1e6)
            estimator.observe(frames: Int64(seen), at: .zero + .milliseconds(10 * look))
            if let ppm = estimator.ppm { #expect(abs(ppm - 100) < 20, "\(ppm) at \(look)") }
        }
        #expect(abs(try #require(estimator.ppm) - 100) < 1)
    }

    @Test func `a clock that changes its rate is followed within minutes`() throws {
        var estimator = RateEstimator(nominalRate: 48_000)
        var frames = 0.0
        for look in 0..<60_000 {
            frames += 480 * (1 + (look < 20_000 ? 100.0 : 140) / 1e6)
            estimator.observe(frames: Int64(frames), at: .zero + .milliseconds(10 * look))
        }
        #expect(abs(try #require(estimator.ppm) - 140) < 2)
    }
}
