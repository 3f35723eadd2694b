/// A generator of pseudo-random numbers that gives the same numbers for the same seed: SplitMix64.
///
/// One word of state and trivially copyable, so that it lives inside values of the media thread. It is no secret:
/// identifiers that must not be guessed take their seed from `SystemRandomNumberGenerator`.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 17.
package struct SeededGenerator: RandomNumberGenerator, Sendable, BitwiseCopyable {
    @usableFromInline var state: UInt64

    /// A generator whose sequence `seed` determines.
    @inlinable package init(seed: UInt64) {
        state = seed
    }

    /// The next 64 bits.
    @inlinable package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// The next number of at least 0 and less than 1, with 53 random bits.
    @inlinable package mutating func nextUnit() -> Double {
        Double(next() >> 11) * 0x1p-53
    }
}
