import CallBasics

/// A parsed RTP packet: its header, and where in the bytes the other parts lie.
///
///    fixed header (12) | CSRC (4 × CC) | extension (X): profile, length, words | payload | padding (P), count last
///
/// It holds offsets and no bytes, so that it can be kept, copied and handed on without a thought of lifetimes.
/// Units: offsets and counts in bytes from the packet's first byte.
/// Source: RFC 3550, sections 5.1 and 5.3.1
package struct RTPPacket: Hashable, Sendable, BitwiseCopyable {
    /// The fixed header.
    package let header: RTPHeader
    /// Contributing sources listed behind the header, 0 to 15.
    package let contributingSourceCount: UInt8
    /// Whether there is an extension header.
    package let hasExtension: Bool
    /// The extension's first 16 bits, which its profile defines; 0xBEDE is RFC 8285's one-byte form.
    package let extensionProfile: UInt16
    /// Where the extension's words begin.
    package let extensionOffset: Int
    /// Bytes of the extension's words.
    package let extensionByteCount: Int
    /// Where the payload begins.
    package let payloadOffset: Int
    /// Bytes of the payload; 0 is valid.
    package let payloadByteCount: Int
    /// Bytes of padding, the counting byte included; 0 when there is none.
    package let paddingByteCount: Int

    /// Where the payload lies in the packet's bytes.
    package var payloadRange: Range<Int> { payloadOffset..<(payloadOffset &+ payloadByteCount) }

    /// Reads a packet from all of `bytes`.
    ///
    /// Thread: any; allocates nothing, and traps on no bytes.
    /// Throws: `truncated`, `unsupportedVersion`, or `invalidPadding`.
    package init(parsing bytes: Span<UInt8>) throws(RTPError) {
        guard bytes.count >= RTPHeader.byteCount else {
            throw RTPError(.truncated, found: bytes.count, required: RTPHeader.byteCount)
        }
        let first = bytes[0]
        guard first >> 6 == RTPHeader.version else {
            throw RTPError(.unsupportedVersion, found: Int(first >> 6), required: Int(RTPHeader.version))
        }
        header = RTPHeader(
            isMarked: bytes[1] & 0x80 != 0,
            payloadType: bytes[1] & 0x7F,
            sequenceNumber: bytes.uint16(at: 2),
            timestamp: bytes.uint32(at: 4),
            ssrc: bytes.uint32(at: 8)
        )
        contributingSourceCount = first & 0x0F
        hasExtension = first & 0x10 != 0

        var offset = RTPHeader.byteCount &+ 4 &* Int(contributingSourceCount)
        if hasExtension {
            guard bytes.count >= offset &+ 4 else {
                throw RTPError(.truncated, found: bytes.count, required: offset &+ 4)
            }
            extensionProfile = bytes.uint16(at: offset)
            extensionOffset = offset &+ 4
            extensionByteCount = 4 &* Int(bytes.uint16(at: offset &+ 2))
            offset = extensionOffset &+ extensionByteCount
        } else {
            extensionProfile = 0
            extensionOffset = offset
            extensionByteCount = 0
        }
        guard bytes.count >= offset else { throw RTPError(.truncated, found: bytes.count, required: offset) }

        payloadOffset = offset
        let remaining = bytes.count &- offset
        let hasPadding = first & 0x20 != 0
        paddingByteCount = hasPadding ? Int(bytes[bytes.count &- 1]) : 0
        guard paddingByteCount <= remaining, !hasPadding || paddingByteCount > 0 else {
            throw RTPError(.invalidPadding, found: paddingByteCount, required: remaining)
        }
        payloadByteCount = remaining &- paddingByteCount
    }

    /// The payload, seen in the bytes that the packet was read from; empty when `bytes` is not long enough.
    @_lifetime(copy bytes)
    package func payload(in bytes: Span<UInt8>) -> Span<UInt8> {
        guard bytes.count >= payloadRange.upperBound else { return bytes.extracting(first: 0) }
        return bytes.extracting(payloadRange)
    }
}
