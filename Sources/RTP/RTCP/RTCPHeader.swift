import CallBasics

/// The four bytes that every RTCP packet begins with.
///
///     0                   1                   2                   3
///     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |V=2|P|  count  |  packet type  |   length in words, less one   |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///
/// Source: RFC 3550, section 6.4.1
package struct RTCPHeader: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of the header.
    package static let byteCount = 4

    /// The packet types that this folder reads and writes.
    package enum PacketType {
        /// Sender report.
        package static let senderReport: UInt8 = 200
        /// Receiver report.
        package static let receiverReport: UInt8 = 201
        /// Source description.
        package static let sourceDescription: UInt8 = 202
        /// Goodbye.
        package static let goodbye: UInt8 = 203
        /// Extended report.
        package static let extendedReport: UInt8 = 207
    }

    /// Whether padding ends the packet.
    package let hasPadding: Bool
    /// Report blocks, chunks or sources in the packet, 0 to 31; feedback packets keep their format here.
    package let count: UInt8
    /// The packet type.
    package let packetType: UInt8
    /// Bytes of the whole packet, this header and padding included: a multiple of 4.
    package let packetByteCount: Int

    init(count: Int, packetType: UInt8, packetByteCount: Int) {
        hasPadding = false
        self.count = UInt8(truncatingIfNeeded: count & 0x1F)
        self.packetType = packetType
        self.packetByteCount = packetByteCount
    }

    /// Reads the header at `offset` and checks that the whole packet lies inside `bytes`.
    ///
    /// Throws: `truncated`, `unsupportedVersion`, or `invalidLength`.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(RTPError) {
        guard offset >= 0, bytes.count &- offset >= Self.byteCount else {
            throw RTPError(.truncated, found: bytes.count &- offset, required: Self.byteCount)
        }
        let first = bytes[offset]
        guard first >> 6 == RTPHeader.version else {
            throw RTPError(.unsupportedVersion, found: Int(first >> 6), required: Int(RTPHeader.version))
        }
        hasPadding = first & 0x20 != 0
        count = first & 0x1F
        packetType = bytes[offset &+ 1]
        packetByteCount = 4 &* (Int(bytes.uint16(at: offset &+ 2)) &+ 1)
        guard packetByteCount <= bytes.count &- offset else {
            throw RTPError(.invalidLength, found: bytes.count &- offset, required: packetByteCount)
        }
    }

    /// Writes the header to the first 4 bytes at `offset`, which must be there.
    func serialize(into bytes: inout MutableSpan<UInt8>, at offset: Int) {
        bytes[offset] = RTPHeader.version << 6 | count
        bytes[offset &+ 1] = packetType
        bytes.store(UInt16(truncatingIfNeeded: packetByteCount / 4 &- 1), at: offset &+ 2)
    }
}
