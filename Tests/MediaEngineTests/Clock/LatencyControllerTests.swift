@testable import MediaEngine
import Testing

@Suite struct LatencyControllerTests {
    /// A buffer between two clocks, and what the loop makes of it.
    private struct Loop {
        var controller = LatencyController(sampleRate: 48_000)
        var level = 720.0
        var levels: [Double] = []
        var corrections: [Double] = []

        mutating func run(seconds: Double, driftPPM: Double, jitter: (inout SeededGenerator) -> Double = { _ in 0 }) {
            var generator = SeededGenerator(seed: 7)
            for _ in 0..<Int(seconds * 100) {
                level += 480 * (driftPPM - controller.ppm) / 1e6
                controller.update(level: level + jitter(&generator), elapsed: 0.01)
                levels.append(level)
                corrections.append(controller.ppm)
            }
        }
    }

    @Test(arguments: [50.0, -50, 300, -300, 1000, -1000, 1900, -1900])
    func `a drift is taken away and the level stays within 10 ms`(ppm: Double) {
        var loop = Loop()
        loop.run(seconds: 600, driftPPM: ppm)
        // The target is what the level has become while it was learned.
        let target = loop.controller.target ?? 0
        let farthest = loop.levels.map { abs($0 - 720) }.max() ?? 0
        #expect(farthest < (abs(ppm) > 1000 ? 480 : 300), "\(farthest)")
        #expect(abs(loop.controller.ppm - ppm) < 2)
        #expect(abs(loop.level - target) < 48, "\(loop.level) for \(target)")
    }

    @Test(arguments: [300.0, -1000]) func `the loop does not swing`(ppm: Double) {
        var loop = Loop()
        loop.run(seconds: 900, driftPPM: ppm)
        // The level leaves its target once and comes back; it may pass it once, and by little.
        let target = loop.controller.target ?? 0
        let errors = loop.levels.dropFirst(150).map { ($0 - target) * (ppm > 0 ? 1 : -1) }
        let peak = errors.max() ?? 0
        #expect(errors.min() ?? 0 > -0.2 * peak, "\(errors.min() ?? 0) after \(peak)")
        let late = loop.corrections.suffix(10_000)
        #expect((late.max() ?? 0) - (late.min() ?? 0) < 1)
    }

    @Test func `jitter of the level hardly moves the ratio once the loop has settled`() {
        var loop = Loop()
        loop.run(seconds: 300, driftPPM: 100) { Double.random(in: -96...96, using: &$0) }
        let late = loop.corrections.suffix(20_000)
        #expect(late.allSatisfy { abs($0 - 100) < 15 }, "\(late.min() ?? 0)…\(late.max() ?? 0)")
    }

    @Test func `jitter from the beginning does not throw the ratio about, and drift is still learned`() {
        var loop = Loop()
        loop.run(seconds: 120, driftPPM: 300) { Double.random(in: -240...240, using: &$0) }
        let early = loop.corrections.prefix(3000)
        #expect(early.allSatisfy { abs($0) < 700 }, "\(early.min() ?? 0)…\(early.max() ?? 0)")
        #expect(loop.levels.allSatisfy { abs($0 - 720) < 240 })
        #expect(abs(loop.controller.ppm - 300) < 60, "\(loop.controller.ppm)")
    }

    @Test func `the correction is bounded, and moves slowly`() {
        var loop = Loop()
        loop.run(seconds: 20, driftPPM: 5000)
        #expect(loop.corrections.allSatisfy { abs($0) <= LatencyController.limitPPM })
        let steps = zip(loop.corrections, loop.corrections.dropFirst()).map { abs($0 - $1) }
        #expect((steps.max() ?? 0) <= LatencyController.slewPPM * 0.01 + 1e-9)
        #expect(loop.controller.ppm == LatencyController.limitPPM)
    }

    @Test func `a level that jumps is brought back, and the drift is not forgotten`() {
        var loop = Loop()
        loop.run(seconds: 200, driftPPM: 200)
        loop.level += 300
        loop.run(seconds: 60, driftPPM: 200)
        #expect(abs(loop.level - 720) < 96, "\(loop.level)")
        loop.controller.restart(keepsRate: true)
        loop.level = 900
        loop.run(seconds: 60, driftPPM: 200)
        #expect(abs(loop.level - 900) < 96, "\(loop.level)")
        #expect(abs(loop.controller.ppm - 200) < 20, "\(loop.controller.ppm)")
    }
}
