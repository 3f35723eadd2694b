import CallBasics

/// By how much less comes out of a canceller than goes in, over the last seconds in which the far end spoke.
struct EchoReduction: BitwiseCopyable {
    private var captured: Float = 0
    private var remaining: Float = 0

    /// The reduction; 0 dB at the beginning.
    var value: Decibels { Decibels(amplitude: Double((captured + 1) / (remaining + 1)).squareRoot()) }

    /// Takes the energies of 10 ms before and after.
    mutating func note(captured: Int64, remaining: Int64) {
        self.captured += (Float(captured) - self.captured) * Self.smoothing
        self.remaining += (Float(remaining) - self.remaining) * Self.smoothing
    }

    /// Some 2 s.
    private static var smoothing: Float { 0.005 }
}
