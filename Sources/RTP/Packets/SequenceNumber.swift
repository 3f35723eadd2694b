/// A 16-bit RTP sequence number, which wraps, with the arithmetic that wrapping needs.
///
/// Source: RFC 3550, section 5.1; RFC 1982 for the order of wrapping numbers.
package struct SequenceNumber: Hashable, Sendable, BitwiseCopyable {
    /// The number in the packet.
    package var rawValue: UInt16

    /// The sequence number `rawValue`.
    package init(_ rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Steps from `earlier` to this number along the shorter way: -32768 to 32767.
    package func distance(from earlier: SequenceNumber) -> Int {
        Int(Int16(truncatingIfNeeded: rawValue &- earlier.rawValue))
    }

    /// Whether this number comes after `other` along the shorter way.
    package func isNewer(than other: SequenceNumber) -> Bool {
        distance(from: other) > 0
    }

    /// The number after this one.
    package var next: SequenceNumber { SequenceNumber(rawValue &+ 1) }

    /// The 64-bit number with these low bits that lies nearest to `reference`.
    package func extended(near reference: Int64) -> Int64 {
        reference &+ Int64(distance(from: SequenceNumber(UInt16(truncatingIfNeeded: reference))))
    }
}
