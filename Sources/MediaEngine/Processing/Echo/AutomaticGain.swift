package import CallBasics
import Glibc

/// Brings speech to the same level, however far the mouth is from the microphone.
///
/// The gain follows the level of speech over seconds and stands still in pauses, so that noise is not raised in them;
/// a sudden loud sound is held below full scale at once.
/// Pure. Shape: mono `Int16`, 10 ms at a time. `process` allocates nothing.
package struct AutomaticGain: Sendable, BitwiseCopyable {
    /// The gain in use.
    package private(set) var gain = Decibels.unity

    private var activity = VoiceActivity()
    /// The mean square of speech; 0 before the first.
    private var speechPower = 0.0
    private var lastFactor: Float = 1

    /// A gain of 0 dB that has heard nothing.
    package init() {}

    /// Works on 10 ms where they lie.
    package mutating func process(_ samples: inout MutableSpan<Int16>) {
        let isActive = activity.process(samples.span)
        if isActive, activity.level.value > Self.quietestSpeech {
            let power = pow(10, activity.level.value / 10)
            let share = speechPower == 0 ? 1 : power > speechPower ? Self.rise : Self.fall
            speechPower += (power - speechPower) * share
            let wanted = Self.target - 10 * log10(speechPower)
            let step = min(max(wanted - gain.value, -Self.step), Self.step)
            gain.value = min(max(gain.value + step, Self.range.lowerBound), Self.range.upperBound)
        }
        let (_, largest) = measure(samples.span)
        var factor = Float(gain.amplitude)
        if Float(largest) * factor > Self.ceiling { factor = Self.ceiling / Float(largest) }
        apply(from: min(lastFactor, Self.ceiling / Float(max(largest, 1))), to: factor, &samples)
        lastFactor = factor
    }

    /// Scales by a factor that goes evenly from one to the other.
    private func apply(from first: Float, to last: Float, _ samples: inout MutableSpan<Int16>) {
        let step = (last - first) / Float(max(samples.count, 1))
        for index in 0..<samples.count {
            samples[index] = Int16(Float(samples[index]) * (first + step * Float(index)))
        }
    }

    /// The level at which speech is sent: -22 dBov.
    private static var target: Double { -22 }
    private static var range: ClosedRange<Double> { -12...24 }
    private static var quietestSpeech: Double { -55 }
    /// Speech is as loud as its louder parts: up within 0.3 s, down within 3 s.
    private static var rise: Double { 0.03 }
    private static var fall: Double { 0.003 }
    /// dB in 10 ms of speech: 10 dB in a second.
    private static var step: Double { 0.1 }
    private static var ceiling: Float { 30000 }
}
