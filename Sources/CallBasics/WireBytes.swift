extension Span where Element == UInt8 {
    /// The big-endian number in the two bytes at `offset`, which must lie inside the span.
    @inlinable package func uint16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset &+ 1])
    }

    /// The big-endian number in the four bytes at `offset`, which must lie inside the span.
    @inlinable package func uint32(at offset: Int) -> UInt32 {
        UInt32(uint16(at: offset)) << 16 | UInt32(uint16(at: offset &+ 2))
    }
}

extension MutableSpan where Element == UInt8 {
    /// Writes `value`, highest byte first, to the two bytes at `offset`.
    @inlinable package mutating func store(_ value: UInt16, at offset: Int) {
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset &+ 1] = UInt8(truncatingIfNeeded: value)
    }

    /// Writes `value`, highest byte first, to the four bytes at `offset`.
    @inlinable package mutating func store(_ value: UInt32, at offset: Int) {
        store(UInt16(truncatingIfNeeded: value >> 16), at: offset)
        store(UInt16(truncatingIfNeeded: value), at: offset &+ 2)
    }

    /// Copies `bytes` to `offset`.
    @inlinable package mutating func store(_ bytes: Span<UInt8>, at offset: Int) {
        precondition(offset >= 0 && count &- offset >= bytes.count)
        withUnsafeMutableBytes { target in
            bytes.withUnsafeBytes { source in
                guard let start = source.baseAddress, let end = target.baseAddress else { return }
                (end + offset).copyMemory(from: start, byteCount: source.count)
            }
        }
    }
}
