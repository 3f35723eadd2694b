import Glibc

/// Holds the fill level of a buffer between two clocks where it began, by moving the ratio of a resampler.
///
/// The loop is proportional and integral and overdamped in every state, so that it never swings. It begins fast, learns
/// the drift within seconds, and then shifts to slower gears, in which jitter of the level hardly moves the ratio; a
/// level that has gone far astray brings the fast gear back. Like roc-toolkit's `latency_tuner`, with gears in place of
/// two profiles.
/// Pure: levels and time in, a correction out. Units: frames, seconds, parts per million.
package struct LatencyController: Sendable, BitwiseCopyable {
    /// The largest correction, in parts per million.
    package static var limitPPM: Double { 2000 }
    /// The largest change of the correction in a second, in parts per million.
    package static var slewPPM: Double { 1000 }

    /// How much faster the buffer must be emptied; negative is slower.
    package private(set) var ppm = 0.0
    /// The level that is held, once it is known.
    package private(set) var target: Double?
    /// The level without its jitter.
    package private(set) var level = 0.0

    private let sampleRate: Double
    private var integral = 0.0
    /// Seconds that the loop has run; chooses the gear.
    private var age = 0.0
    /// How far looks lie from the level, on average: wake-ups that come early and late, cards that move in steps.
    private var jitter = 0.0
    private var learnedTime = 0.0
    private var learnedCount = 0.0

    /// A controller for a buffer at `sampleRate`, which holds the level that it has after a second and a half.
    ///
    /// Sound servers step by a millisecond or two in the beginning, which is no drift.
    package init(sampleRate: Int) {
        self.sampleRate = Double(sampleRate)
    }

    /// Takes the level that the buffer has `elapsed` seconds after the look before.
    package mutating func update(level measured: Double, elapsed: Double) {
        guard let target else { return learn(measured, elapsed) }
        age += elapsed
        jitter += (abs(measured - level) - jitter) * min(1, elapsed / 2)
        let gear = min(max(age / Self.gearRatio, Self.fastest, calmGear), Self.slowest)
        level += (measured - level) * min(1, elapsed * Self.filterRatio / gear)
        let error = level - target
        // More than 4 ms: something has changed that a slow gear would take too long to follow.
        if abs(error) > sampleRate * 0.004 { age = min(age, Self.fastest * Self.gearRatio) }
        let proportional = error / (sampleRate * gear) * 1e6
        let wanted = integral + proportional
        // The integral rests while the output is at its limit, or it would overshoot afterwards.
        if abs(wanted) < Self.limitPPM || wanted * error < 0 {
            integral += proportional * elapsed / (Self.damping * gear)
        }
        let bounded = min(max(wanted, -Self.limitPPM), Self.limitPPM)
        let step = Self.slewPPM * elapsed
        ppm += min(max(bounded - ppm, -step), step)
    }

    /// Forgets the level, and learns the next one; the drift that was learned remains when `keepsRate` is set.
    package mutating func restart(keepsRate: Bool) {
        target = nil
        learnedTime = 0
        learnedCount = 0
        level = 0
        jitter = 0
        if !keepsRate {
            integral = 0
            ppm = 0
            age = 0
        }
    }

    /// The fastest gear in which jitter moves the ratio by no more than about 50 ppm.
    private var calmGear: Double { pow(jitter / (sampleRate * 2e-4), 2.0 / 3) }

    private mutating func learn(_ measured: Double, _ elapsed: Double) {
        learnedTime += elapsed
        learnedCount += 1
        let share = max(1 / learnedCount, min(1, 3 * elapsed))
        level += (measured - level) * share
        jitter += (abs(measured - level) - jitter) * share
        if learnedTime >= Self.learningTime { target = level }
    }

    private static var learningTime: Double { 1.5 }
    /// Time constants of the gears in seconds, and how much longer the loop must have run than a gear lasts.
    private static var fastest: Double { 2 }
    private static var slowest: Double { 20 }
    private static var gearRatio: Double { 4 }
    /// How much faster than the gear the level is followed.
    private static var filterRatio: Double { 8 }
    /// The integral's time constant in gears: 4 is critical damping, more is overdamped.
    private static var damping: Double { 8 }
}
