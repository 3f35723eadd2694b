package import CallBasics

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
    package var level: Decibels { Decibels(amplitude: power.squareRoot()) }
    /// The level of the noise.
    package var noiseFloor: Decibels { Decibels(amplitude: floorPower.squareRoot()) }

    /// Whether the last block itself stood out of the noise.
    package var isLoud: Bool { hangover == Self.hangoverBlocks }

    /// The noise as a power, so that most blocks need no logarithm.
    package private(set) var floorPower = 0.0
    private var hangover = 0
    private var blockCount = 0

    /// A detector that has heard nothing.
    package init() {}

    /// Hears 10 ms; answers whether someone speaks.
    @discardableResult
    package mutating func process(_ samples: Span<Int16>) -> Bool {
        process(meanSquare: Self.power(of: samples) / 2)
    }

    /// The power of a block: 1 for the loudest sine.
    package static func power(of samples: Span<Int16>) -> Double {
        let (energy, _) = measure(samples)
        return 2 * Double(energy) / Double(max(samples.count, 1)) / (32768 * 32768)
    }

    /// Hears 10 ms whose mean square is known, of full scale squared; answers whether someone speaks.
    mutating func process(meanSquare: Double) -> Bool {
        power = 2 * meanSquare
        let heard = max(power, Self.silence)
        // The first half second may begin within a word: the floor then rises no faster than later.
        if blockCount == 0 {
            floorPower = heard
        } else if heard < floorPower {
            // By a quarter of the distance in dB.
            floorPower *= (heard / floorPower).squareRoot().squareRoot()
        } else {
            floorPower = min(heard, floorPower * Self.rise)
        }
        blockCount &+= 1
        if heard > max(floorPower, Self.lowestFloor) * Self.distance {
            hangover = Self.hangoverBlocks
        } else if hangover > 0 {
            hangover &-= 1
        }
        isActive = hangover > 0
        return isActive
    }

    /// -100 dB.
    private static var silence: Double { 1e-10 }
    /// 0.03 dB in 10 ms: 3 dB in a second.
    private static var rise: Double { 1.006_931_668_851_804_2 }
    /// -65 dB: what is quieter than this and `distance` is silence in any case.
    private static var lowestFloor: Double { 3.162_277_660_168_379_5e-7 }
    /// 9 dB.
    private static var distance: Double { 7.943_282_347_242_815 }
    private static var hangoverBlocks: Int { 20 }
}
