package import CallBasics
import Glibc

/// Tells speech from the noise around it, 10 ms at a time.
///
/// A block is active when it stands out of the noise floor, which follows the quietest blocks at once and louder ones
/// slowly; activity lasts for 200 ms more, through the pauses within a word.
/// Pure. Shape: `Int16`, the channels interleaved if there are several. `process` allocates nothing.
package struct VoiceActivity: Sendable, BitwiseCopyable {
    /// Whether someone speaks.
    package private(set) var isActive = false
    /// The power of the last block: 1 for the loudest sine.
    package private(set) var power = 0.0
    /// The level of the last block, in dBov of a sine.
    package private(set) var level = Decibels.silence
    /// The level of the noise.
    package private(set) var noiseFloor = Decibels.silence

    /// Whether the last block itself stood out of the noise.
    var isLoud: Bool { hangover == Self.hangoverBlocks }

    private var hangover = 0
    private var blockCount = 0

    /// A detector that has heard nothing.
    package init() {}

    /// Hears 10 ms; answers whether someone speaks.
    @discardableResult
    package mutating func process(_ samples: Span<Int16>) -> Bool {
        let (energy, _) = measure(samples)
        return process(meanSquare: Double(energy) / Double(max(samples.count, 1)) / (32768 * 32768))
    }

    /// Hears 10 ms whose mean square is known, of full scale squared; answers whether someone speaks.
    mutating func process(meanSquare: Double) -> Bool {
        power = 2 * meanSquare
        level = Decibels(amplitude: power.squareRoot())
        // The first half second may begin within a word: the floor then rises no faster than later.
        if blockCount == 0 || level < noiseFloor {
            let isFirst = blockCount == 0
            noiseFloor.value += (level.value - noiseFloor.value) * (isFirst ? 1 : Self.fall)
        } else {
            noiseFloor.value = min(level.value, noiseFloor.value + Self.rise)
        }
        blockCount &+= 1
        let floor = max(noiseFloor.value, Self.lowestFloor)
        if level.value > floor + Self.distance {
            hangover = Self.hangoverBlocks
        } else if hangover > 0 {
            hangover &-= 1
        }
        isActive = hangover > 0
        return isActive
    }

    private static var fall: Double { 0.3 }
    /// dB in 10 ms: 3 dB in a second.
    private static var rise: Double { 0.03 }
    /// What is quieter than this and `distance` is silence in any case.
    private static var lowestFloor: Double { -65 }
    private static var distance: Double { 9 }
    private static var hangoverBlocks: Int { 20 }
}
