extension Duration {
    /// The whole nanoseconds of the duration, saturating at about 292 years.
    @inlinable package var nanoseconds: Int64 {
        // Up to nine seconds, and so in every tick, a division of 64 bits does, which is ten times faster.
        if let short = Int64(exactly: attoseconds) { return short / 1_000_000_000 }
        return Int64(clamping: attoseconds / 1_000_000_000)
    }

    /// `nanoseconds` as a duration; the standard library's own is not inlined, which counts in a tick.
    @inlinable @inline(__always)
    package init(wholeNanoseconds nanoseconds: Int64) {
        self.init(attoseconds: Int128(nanoseconds) &* 1_000_000_000)
    }

    /// The duration in milliseconds, with its fraction.
    @inlinable package var milliseconds: Double { Double(nanoseconds) / 1_000_000 }

    /// The whole units of a clock of `clockRate` Hz in the duration, without overflow for any duration.
    @inlinable package func clockUnits(at clockRate: UInt32) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
    }
}
