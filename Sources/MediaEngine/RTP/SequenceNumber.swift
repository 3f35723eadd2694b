/// A 16-bit RTP sequence number, which wraps, with the arithmetic that wrapping needs.
///
/// Source: RFC 3550, section 5.1; RFC 1982 for the order of wrapping numbers.
public struct SequenceNumber: Hashable, Sendable, BitwiseCopyable {
    /// The number in the packet.
    public var rawValue: UInt16

    /// The sequence number `rawValue`.
    public init(_ rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Steps from `earlier` to this number along the shorter way: -32768 to 32767.
    public func distance(from earlier: SequenceNumber) -> Int {
        Int(Int16(truncatingIfNeeded: rawValue &- earlier.rawValue))
    }

    /// Whether this number comes after `other` along the shorter way.
    public func isNewer(than other: SequenceNumber) -> Bool {
        distance(from: other) > 0
    }

    /// The number after this one.
    public var next: SequenceNumber { SequenceNumber(rawValue &+ 1) }

    /// The 64-bit number with these low bits that lies nearest to `reference`.
    public func extended(near reference: Int64) -> Int64 {
        reference &+ Int64(distance(from: SequenceNumber(UInt16(truncatingIfNeeded: reference))))
    }
}
