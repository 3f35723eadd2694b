import Glibc

/// A level or a gain in decibels.
///
/// Units: as a gain, dB of amplitude: +6 dB doubles the amplitude (20·log10). As a level, dBov of a sine: 0 dBov is
/// the loudest sine that 16 bits hold (RFC 6464's reference is a square wave, 3 dB above).
public struct Decibels: Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// The number of decibels.
    public var value: Double

    /// A gain or level of `value` dB.
    public init(_ value: Double) {
        self.value = value
    }

    /// The gain that a linear amplitude factor stands for; zero and less is `silence`.
    package init(amplitude: Double) {
        value = amplitude > 0 ? max(20 * log10(amplitude), Decibels.silence.value) : Decibels.silence.value
    }

    /// No gain.
    package static let unity = Decibels(0)

    /// The floor of every level, below the smallest 16-bit sample: -100 dB.
    public static let silence = Decibels(-100)

    /// 0 dBm0 in dBov of a sine: digital milliwatt of G.711 lies 3.17 dB (µ-law, ITU-T G.711 table 5) below
    /// the loudest sine.
    package static let zeroDBm0 = Decibels(-3.17)

    /// The linear factor of amplitude: 10^(dB/20), and 0 at or below `silence`.
    public var amplitude: Double { value <= Decibels.silence.value ? 0 : pow(10, value / 20) }

    /// Whether `left` is quieter than `right`.
    public static func < (left: Decibels, right: Decibels) -> Bool { left.value < right.value }

    /// "-10.0 dB".
    public var description: String { "\((value * 10).rounded() / 10) dB" }
}
