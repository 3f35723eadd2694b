public import CallBasics
import Glibc
import Synchronization

/// How loud something is.
public struct AudioLevel: Sendable, BitwiseCopyable, Equatable {
    /// Mean square of the samples over about 100 ms, of full scale squared.
    var meanSquare: Float = 0
    /// The largest sample of the last second or so, of full scale.
    var peakAmplitude: Float = 0

    /// The level over about 100 ms, in dBov of a sine: a full-scale sine is at 0 dB.
    public var rms: Decibels { Decibels(amplitude: Double(2 * meanSquare).squareRoot()) }

    /// The highest peak of about the last second: the largest 16-bit sample is at 0 dB.
    public var peak: Decibels { Decibels(amplitude: Double(peakAmplitude)) }

    /// Silence.
    init() {}

    init(packed: UInt64) {
        meanSquare = Float(bitPattern: UInt32(truncatingIfNeeded: packed >> 32))
        peakAmplitude = Float(bitPattern: UInt32(truncatingIfNeeded: packed))
    }

    var packed: UInt64 { UInt64(meanSquare.bitPattern) << 32 | UInt64(peakAmplitude.bitPattern) }
}

/// Measures the level of what passes, which it leaves alone.
///
///     audio ─► meter ─► audio
package final class LevelMeterFilter: Filter, @unchecked Sendable {
    /// The level's two numbers in one word, so that publishing is one store.
    private let published = Atomic<UInt64>(0)
    private var level = AudioLevel()
    /// The level of speech as the bits of a `Float`; no number before there is one.
    private let publishedSpeech = Atomic<UInt32>(Float.nan.bitPattern)
    // One thread owns it; checking each access takes as long as the measuring (benchmark "g711-unpaced").
    @exclusivity(unchecked) private var speech = SpeechLevel()
    private var ticksToSpeech = 0
    private var smoothing: Float = 0
    private var decay: Float = 0

    /// A meter for audio of `format`.
    package init(format: AudioFormat) {
        super.init(
            FilterDescription(
                name: "meter",
                purpose: "measures the level",
                inputs: [.audio(format)],
                outputs: [.audio(format)],
                worksInPlace: true
            )
        )
    }

    /// The level now.
    ///
    /// Thread: any.
    package var currentLevel: AudioLevel { AudioLevel(packed: published.load(ordering: .relaxed)) }

    /// The level of speech, as the mean of its last 5 s, in dBov of a sine; nil until half a second of it has passed.
    ///
    /// Thread: any.
    package var speechLevel: Decibels? {
        let value = Float(bitPattern: publishedSpeech.load(ordering: .relaxed))
        return value.isNaN ? nil : Decibels(Double(value))
    }

    package override func process(_ io: borrowing FilterIO) {
        let (source, target) = (io.input(), io.output())
        target.copy(from: source)
        if smoothing == 0 {
            let tick = io.tickDuration.milliseconds
            smoothing = Float(1 - exp(-tick / 100))
            decay = Float(exp(-tick / 500))
        }
        let (energy, largest) = measure(source.samples)
        let count = Float(max(source.frameCount * source.channelCount, 1))
        let meanSquare = Float(energy) / count / (32768 * 32768)
        level.meanSquare += (meanSquare - level.meanSquare) * smoothing
        level.peakAmplitude = max(Float(largest) / 32767, level.peakAmplitude * decay)
        published.store(level.packed, ordering: .relaxed)
        speech.process(meanSquare: Double(meanSquare))
        ticksToSpeech &-= 1
        guard ticksToSpeech < 0, let speechLevel = speech.speechLevel else { return }
        ticksToSpeech = Self.speechInterval
        publishedSpeech.store(Float(speechLevel.value).bitPattern, ordering: .relaxed)
    }

    /// Ticks between two looks at the level of speech, which reports tell a few times a minute.
    private static let speechInterval = 50
}

/// The sum of the squares of `samples`, and the largest magnitude among them.
///
/// Eight at a time: a plain loop, because of its sum of 64 bits, becomes vector code that takes two. The squares of two
/// neighbours just fit into 32 bits without a sign, and their sum is one instruction of the processor.
@_noAllocation @_noLocks
func measure(_ samples: Span<Int16>) -> (energy: Int64, largest: Int32) {
    let whole = samples.count & ~7
    var sums = SIMD4<UInt64>()
    var (lows, highs) = (SIMD8<Int16>(), SIMD8<Int16>())
    samples.withUnsafeBytes { bytes in
        for index in stride(from: 0, to: whole, by: 8) {
            let eight = bytes.loadUnaligned(fromByteOffset: index &* 2, as: SIMD8<Int16>.self)
            let even = SIMD4<Int32>(truncatingIfNeeded: eight.evenHalf)
            let odd = SIMD4<Int32>(truncatingIfNeeded: eight.oddHalf)
            let squares = SIMD4<UInt32>(truncatingIfNeeded: even &* even &+ odd &* odd)
            sums &+= SIMD4<UInt64>(truncatingIfNeeded: squares)
            lows = pointwiseMin(lows, eight)
            highs = pointwiseMax(highs, eight)
        }
    }
    var energy = Int64(sums.wrappedSum())
    var (lowest, highest) = (lows.min(), highs.max())
    for index in whole..<samples.count {
        let sample = samples[index]
        energy &+= Int64(Int32(sample) &* Int32(sample))
        lowest = min(lowest, sample)
        highest = max(highest, sample)
    }
    return (energy, max(Int32(highest), min(-Int32(lowest), 32767)))
}
