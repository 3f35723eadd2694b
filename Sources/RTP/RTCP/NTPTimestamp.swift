/// A time of day as RTCP carries it: seconds since 1900 in the high 32 bits, fraction of a second in the low ones.
///
/// Units: 1/2³² s. The seconds wrap in 2036, which the differences that RTCP takes survive.
/// Source: RFC 3550, section 4; RFC 5905, section 6.
package struct NTPTimestamp: Hashable, Sendable, BitwiseCopyable {
    /// Seconds and fraction together.
    package var rawValue: UInt64

    /// The time stamp with these 64 bits.
    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The time `unixNanoseconds` after 1970.
    package init(unixNanoseconds: Int64) {
        var (seconds, nanoseconds) = unixNanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        if nanoseconds < 0 {
            seconds &-= 1
            nanoseconds &+= 1_000_000_000
        }
        let high = UInt64(truncatingIfNeeded: seconds &+ 2_208_988_800) << 32
        rawValue = high | (UInt64(nanoseconds) << 32) / 1_000_000_000
    }

    /// The middle 32 bits: seconds modulo 65536, and the fraction in 1/65536 s.
    package var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }
}
