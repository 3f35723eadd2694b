import Glibc

/// Noise as loud as the other side tells, in place of the sound that it leaves out.
///
///      0 1 2 3 4 5 6 7
///     +-+-+-+-+-+-+-+-+-+-+-+-+-+
///     |0|    level    | spectrum
///     +-+-+-+-+-+-+-+-+-+-+-+-+-+
///
/// The level is in -dBov, where 0 is as loud as a square wave at full scale. The reflection coefficients that may follow are
/// not looked at, as the RFC allows: the noise is white.
/// Pure: it owns no memory. Shape: interleaved samples.
/// Source: RFC 3389, section 3
struct ComfortNoise: BitwiseCopyable {
    /// Whether noise was asked for, and no sound since.
    private(set) var isOn = false
    private var state: UInt32 = 0x9E37_79B9
    private var wantedGain: Float = 0
    private var gain: Float = 0
    /// The share of the way to the wanted gain that one sample goes.
    private let pace: Float

    /// The root mean square of what `nextValue` gives: two numbers of 16 bits added.
    private static var plainLevel: Float { 26755 }
    private static var fullScale: Float { 32768 }

    /// No noise yet, in sound of `format`; levels change within about 10 ms.
    init(format: AudioFormat) {
        pace = 1 / (0.004 * Float(format.sampleRate * format.channelCount))
    }

    /// Begins, or changes the level, as `payload` says; an empty one says nothing.
    mutating func begin(_ payload: Span<UInt8>) {
        guard !payload.isEmpty else { return }
        if !isOn { gain = 0 }
        isOn = true
        wantedGain = Self.fullScale / Self.plainLevel * powf(10, -Float(payload[0] & 0x7F) / 20)
    }

    /// Goes on as `other` would, in sound of another format.
    mutating func goOn(from other: ComfortNoise) {
        isOn = other.isOn
        gain = other.gain
        wantedGain = other.wantedGain
    }

    /// Sound is there again.
    mutating func end() { isOn = false }

    /// Writes noise over the samples from `start` to before `end`.
    mutating func fill(_ samples: inout MutableSpan<Int16>, from start: Int, to end: Int) {
        for index in start..<end {
            gain += (wantedGain - gain) * pace
            samples[index] = Int16(max(min(nextValue() * gain, 32767), -32768))
        }
    }

    private mutating func nextValue() -> Float {
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        return Float(Int32(Int16(truncatingIfNeeded: state)) &+ Int32(Int16(truncatingIfNeeded: state >> 16)))
    }
}
