/// A sine of constant frequency that can be asked for any of its frames.
///
/// The phase of frame n is n times a 64-bit increment, modulo one turn: nothing accumulates, so the frequency is
/// right to a billionth of a turn after hours, and a block's samples do not depend on where blocks begin. The sine is a
/// polynomial: unlike a recurrence it needs no earlier frame, and unlike a table no memory that tones share.
struct Oscillator: BitwiseCopyable, Hashable {
    /// Turns per frame, in units of 2^-64 turn.
    let increment: UInt64

    /// A sine of `frequency` Hz, which lies below half of `sampleRate`.
    init(frequency: Double, sampleRate: Int) {
        increment = UInt64(frequency / Double(sampleRate) * 0x1p64)
    }

    /// Frames over which 32 bits of phase may be counted on, before they are taken from the 64 bits again.
    static let anchorFrameCount = 64

    /// Adds `amplitude` times the sine of the frames from `position` on to the `count` values at `target`.
    func add(to target: UnsafeMutablePointer<Float>, count: Int, from position: Int, amplitude: Float) {
        var done = 0
        while done < count {
            let (run, first) = run(from: position &+ done, limit: count &- done)
            var turn = first
            let step = turnStep
            let values = target + done
            for index in 0..<run {
                values[index] += amplitude * Self.sine(turn)
                turn &+= step
            }
            done &+= run
        }
    }

    /// The frames from `position` to the next anchor, at most `limit`, and the turn of the first.
    ///
    /// Anchors lie at fixed frames, so that a frame's value is the same however blocks are cut.
    @inline(__always)
    func run(from position: Int, limit: Int) -> (count: Int, turn: Int32) {
        let offset = position & (Self.anchorFrameCount &- 1)
        let anchor = increment &* UInt64(truncatingIfNeeded: position &- offset)
        let turn = Int32(truncatingIfNeeded: anchor >> 32) &+ turnStep &* Int32(truncatingIfNeeded: offset)
        return (min(limit, Self.anchorFrameCount &- offset), turn)
    }

    /// Turns per frame, in units of 2^-32 turn.
    var turnStep: Int32 { Int32(truncatingIfNeeded: (increment &+ 0x8000_0000) >> 32) }

    /// The sine of `turn`, in units of 2^-32 turn.
    ///
    /// The half turn around zero comes from the Taylor series to the 11th power, whose error is below 6e-8 there; the
    /// other half is its mirror image.
    @inline(__always)
    static func sine(_ turn: Int32) -> Float {
        // All ones in the outer half, and then the number is subtracted from the half turn: without a branch.
        let outer = (turn ^ (turn &<< 1)) &>> 31
        let x = Float((turn ^ outer) &- outer &+ (outer & Int32.min)) * 0x1p-31
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
