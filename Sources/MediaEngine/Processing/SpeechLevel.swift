package import CallBasics

/// How loud speech is, and what is heard in its pauses, as means over about 5 s of each.
///
/// `VoiceActivity` tells the two apart; what it takes for speech includes 200 ms after each word.
/// Pure. Shape: 10 ms of interleaved `Int16` at a time. `process` allocates nothing.
package struct SpeechLevel: Sendable, BitwiseCopyable {
    private var activity = VoiceActivity()
    private var speech = Mean()
    private var pauses = Mean()

    /// A meter that has heard nothing.
    package init() {}

    /// The level of speech, in dBov of a sine; nil until half a second of it was heard.
    package var speechLevel: Decibels? { speech.level }

    /// The level in pauses, in dBov of a sine; nil until half a second of them was heard.
    package var noiseLevel: Decibels? { pauses.level }

    /// Hears 10 ms.
    package mutating func process(_ samples: Span<Int16>) {
        count(activity.process(samples))
    }

    /// Hears 10 ms whose mean square is known, of full scale squared.
    mutating func process(meanSquare: Double) {
        count(activity.process(meanSquare: meanSquare))
    }

    private mutating func count(_ isSpeech: Bool) {
        if isSpeech {
            speech.add(activity.power)
        } else {
            pauses.add(activity.power)
        }
    }

    /// The mean power of the first 500 blocks; from then on each counts 1/500.
    private struct Mean: BitwiseCopyable {
        private var power = 0.0
        private var blockCount = 0

        mutating func add(_ blockPower: Double) {
            blockCount = min(blockCount &+ 1, SpeechLevel.memory)
            power += (blockPower - power) / Double(blockCount)
        }

        var level: Decibels? {
            blockCount >= SpeechLevel.leastBlockCount ? Decibels(amplitude: power.squareRoot()) : nil
        }
    }

    private static var memory: Int { 500 }
    private static var leastBlockCount: Int { 50 }
}
