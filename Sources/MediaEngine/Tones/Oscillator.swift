/// A sine of constant frequency that can be asked for any of its frames.
///
/// The phase of frame n is n times a 64-bit increment, modulo one turn: nothing accumulates, so the frequency is
/// right to a billionth of a turn after hours, and a block's samples do not depend on where blocks begin. The sine is a
/// polynomial instead of a table or a recurrence, because then a loop over frames vectorises.
struct Oscillator: BitwiseCopyable, Hashable {
    /// Turns per frame, in units of 2^-64 turn.
    let increment: UInt64

    /// A sine of `frequency` Hz, which lies below half of `sampleRate`.
    init(frequency: Double, sampleRate: Int) {
        increment = UInt64(frequency / Double(sampleRate) * 0x1p64)
    }

    /// The value of frame `position`, between -1 and 1; frame 0 is 0, rising.
    func value(at position: Int) -> Float {
        Self.sine(increment &* UInt64(truncatingIfNeeded: position))
    }

    /// The sine of `phase`, in units of 2^-64 turn.
    ///
    /// The half turn around zero comes from the Taylor series to the 11th power, whose error is below 6e-8 there; the
    /// other half is its mirror image.
    @inline(__always)
    static func sine(_ phase: UInt64) -> Float {
        let turn = Int32(truncatingIfNeeded: phase >> 32)
        let mirrored = Int32.min &- turn
        let isOuter = (turn ^ (turn &<< 1)) < 0
        let x = Float(isOuter ? mirrored : turn) * 0x1p-31
        let square = x * x
        var sum: Float = -0.007_370_430_9
        sum = sum * square + 0.082_145_886_6
        sum = sum * square - 0.599_264_529
        sum = sum * square + 2.550_164_04
        sum = sum * square - 5.167_712_78
        sum = sum * square + 3.141_592_65
        return sum * x
    }
}
