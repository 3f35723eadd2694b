import CallBasics

/// The parts of a redundant-audio payload: copies of earlier packets, and the packet's own content.
///
///     0                   1                   2                   3
///     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |1|   block PT  |  timestamp offset         |   block length    |  one for each redundant block
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |0|   block PT  |                                                  the primary block
///    +-+-+-+-+-+-+-+-+
///    redundant blocks, in the order of their headers | primary block
///
/// It holds offsets and no bytes, so that it can be kept, copied and handed on without a thought of lifetimes.
/// Units: offsets and counts in bytes from the payload's first byte; timestamp offsets in clock-rate units.
/// Source: RFC 2198, section 3
package struct REDPayload: Sendable, BitwiseCopyable {
    /// One block: what it holds, how old it is, and where it lies.
    package struct Block: Hashable, Sendable, BitwiseCopyable {
        /// The payload type of the block's content.
        package let payloadType: UInt8
        /// By how much the content is older than the primary block; 0 for the primary itself.
        package let timestampOffset: UInt16
        /// Where the content begins.
        package let offset: Int
        /// Bytes of the content; 0 is valid.
        package let byteCount: Int

        /// The content, seen in the payload that the block was read from; empty when `bytes` is not long enough.
        @_lifetime(copy bytes)
        package func content(in bytes: Span<UInt8>) -> Span<UInt8> {
            guard bytes.count >= offset &+ byteCount else { return bytes.extracting(first: 0) }
            return bytes.extracting(offset..<(offset &+ byteCount))
        }
    }

    /// Redundant blocks that are read at most; payloads with more are refused.
    package static let maximumRedundantCount = 8
    /// Bytes of a redundant block's header.
    package static let redundantHeaderByteCount = 4
    /// Bytes of the primary block's header.
    package static let primaryHeaderByteCount = 1
    /// The largest timestamp offset that a header can tell.
    package static let maximumTimestampOffset: UInt16 = 0x3FFF
    /// The longest redundant block.
    package static let maximumBlockByteCount = 0x3FF

    /// Redundant blocks in the payload, oldest first as senders write them.
    package let redundantCount: Int
    /// The packet's own content.
    package let primary: Block
    private let blocks: InlineArray<8, Block>

    /// Reads a payload from all of `bytes`.
    ///
    /// Thread: any; allocates nothing, and traps on no bytes.
    /// Throws: `truncated`, or `tooManyBlocks`.
    package init(parsing bytes: Span<UInt8>) throws(RTPError) {
        let none = Block(payloadType: 0, timestampOffset: 0, offset: 0, byteCount: 0)
        var blocks = InlineArray<8, Block>(repeating: none)
        var (count, position, contentByteCount) = (0, 0, 0)
        while true {
            guard position < bytes.count else {
                throw RTPError(.truncated, found: bytes.count, required: position &+ 1)
            }
            guard bytes[position] & 0x80 != 0 else { break }
            guard count < Self.maximumRedundantCount else {
                throw RTPError(.tooManyBlocks, found: count &+ 1, required: Self.maximumRedundantCount)
            }
            guard bytes.count >= position &+ Self.redundantHeaderByteCount else {
                throw RTPError(.truncated, found: bytes.count, required: position &+ Self.redundantHeaderByteCount)
            }
            let header = bytes.uint32(at: position)
            let byteCount = Int(header & 0x3FF)
            blocks[count] = Block(
                payloadType: UInt8(header >> 24 & 0x7F),
                timestampOffset: UInt16(header >> 10 & 0x3FFF),
                offset: contentByteCount,
                byteCount: byteCount
            )
            contentByteCount &+= byteCount
            count &+= 1
            position &+= Self.redundantHeaderByteCount
        }
        let contentStart = position &+ Self.primaryHeaderByteCount
        let primaryStart = contentStart &+ contentByteCount
        guard bytes.count >= primaryStart else {
            throw RTPError(.truncated, found: bytes.count, required: primaryStart)
        }
        for index in 0..<count {
            let block = blocks[index]
            blocks[index] = Block(
                payloadType: block.payloadType,
                timestampOffset: block.timestampOffset,
                offset: contentStart &+ block.offset,
                byteCount: block.byteCount
            )
        }
        redundantCount = count
        self.blocks = blocks
        primary = Block(
            payloadType: bytes[position] & 0x7F,
            timestampOffset: 0,
            offset: primaryStart,
            byteCount: bytes.count &- primaryStart
        )
    }

    /// Redundant block `index`, 0 to `redundantCount` - 1.
    package func redundant(_ index: Int) -> Block {
        precondition(index < redundantCount)
        return blocks[index]
    }

    /// The payload type of the primary block, for those who need no more; nil when the headers are cut off.
    static func primaryPayloadType(of bytes: Span<UInt8>) -> UInt8? {
        var position = 0
        while position < bytes.count {
            guard bytes[position] & 0x80 != 0 else { return bytes[position] }
            position &+= redundantHeaderByteCount
        }
        return nil
    }

    /// Writes the header of a redundant block at `offset`; the caller has checked that its fields fit.
    static func writeRedundantHeader(
        payloadType: UInt8,
        timestampOffset: UInt16,
        byteCount: Int,
        to bytes: inout MutableSpan<UInt8>,
        at offset: Int
    ) {
        let age = UInt32(timestampOffset & maximumTimestampOffset) << 10
        let length = UInt32(truncatingIfNeeded: byteCount & maximumBlockByteCount)
        bytes.store(UInt32(0x80 | payloadType & 0x7F) << 24 | age | length, at: offset)
    }
}
