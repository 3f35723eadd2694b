import CallBasics

/// A receiver report: what somebody who sends nothing received of others.
///
///    header (4): count = report blocks, PT = 201
///    SSRC of the reporter (4) | report blocks (24 each) | profile-specific extensions
///
/// Source: RFC 3550, section 6.4.2
package struct RTCPReceiverReport: Hashable, Sendable, BitwiseCopyable {
    /// Bytes before the report blocks.
    package static let fixedByteCount = 8

    /// Who reports.
    package var ssrc: UInt32
    /// The report blocks behind the fixed part.
    package let blocks: RTCPReportBlocks

    /// A report to serialise; its blocks are given to `serialize`.
    package init(ssrc: UInt32) {
        self.ssrc = ssrc
        blocks = RTCPReportBlocks(offset: 0, count: 0)
    }

    /// Reads the report whose header stands at `offset`.
    ///
    /// Throws: what the header throws, or `invalidLength` when the blocks do not fit.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(RTPError) {
        let header = try RTCPHeader(parsing: bytes, at: offset)
        let required = Self.fixedByteCount &+ RTCPReportBlock.byteCount &* Int(header.count)
        guard header.packetByteCount >= required else {
            throw RTPError(.invalidLength, found: header.packetByteCount, required: required)
        }
        ssrc = bytes.uint32(at: offset &+ 4)
        blocks = RTCPReportBlocks(offset: offset &+ Self.fixedByteCount, count: Int(header.count))
    }

    /// Writes the report, with `block` if there is one, at `offset`.
    ///
    /// Answers the byte count, or 0 when it does not fit.
    package func serialize(
        with block: RTCPReportBlock? = nil,
        into bytes: inout MutableSpan<UInt8>,
        at offset: Int = 0
    ) -> Int {
        let byteCount = Self.fixedByteCount &+ (block == nil ? 0 : RTCPReportBlock.byteCount)
        guard offset >= 0, bytes.count &- offset >= byteCount else { return 0 }
        let header = RTCPHeader(
            count: block == nil ? 0 : 1,
            packetType: RTCPHeader.PacketType.receiverReport,
            packetByteCount: byteCount
        )
        header.serialize(into: &bytes, at: offset)
        bytes.store(ssrc, at: offset &+ 4)
        block?.serialize(into: &bytes, at: offset &+ Self.fixedByteCount)
        return byteCount
    }
}
