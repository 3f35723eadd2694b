import CallBasics

/// A sender report: what a source has sent, and what it received of others.
///
///    header (4): count = report blocks, PT = 200
///    SSRC of sender (4) | NTP time stamp (8) | RTP time stamp (4) | packet count (4) | octet count (4)
///    report blocks (24 each) | profile-specific extensions
///
/// Source: RFC 3550, section 6.4.1
package struct RTCPSenderReport: Hashable, Sendable, BitwiseCopyable {
    /// Bytes before the report blocks.
    package static let fixedByteCount = 28

    /// The source that sends.
    package var ssrc: UInt32
    /// The wall-clock time when the report was made.
    package var ntpTimestamp: NTPTimestamp
    /// The same instant on the clock of the source's RTP time stamps.
    package var rtpTimestamp: UInt32
    /// RTP packets sent since the source began; wraps.
    package var packetCount: UInt32
    /// Payload bytes sent since the source began; wraps.
    package var octetCount: UInt32
    /// The report blocks behind the fixed part.
    package let blocks: RTCPReportBlocks

    /// A report to serialise; its blocks are given to `serialize`.
    package init(
        ssrc: UInt32,
        ntpTimestamp: NTPTimestamp,
        rtpTimestamp: UInt32,
        packetCount: UInt32,
        octetCount: UInt32
    ) {
        self.ssrc = ssrc
        self.ntpTimestamp = ntpTimestamp
        self.rtpTimestamp = rtpTimestamp
        self.packetCount = packetCount
        self.octetCount = octetCount
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
        let ntp = UInt64(bytes.uint32(at: offset &+ 8)) << 32 | UInt64(bytes.uint32(at: offset &+ 12))
        ntpTimestamp = NTPTimestamp(rawValue: ntp)
        rtpTimestamp = bytes.uint32(at: offset &+ 16)
        packetCount = bytes.uint32(at: offset &+ 20)
        octetCount = bytes.uint32(at: offset &+ 24)
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
            packetType: RTCPHeader.PacketType.senderReport,
            packetByteCount: byteCount
        )
        header.serialize(into: &bytes, at: offset)
        bytes.store(ssrc, at: offset &+ 4)
        bytes.store(UInt32(truncatingIfNeeded: ntpTimestamp.rawValue >> 32), at: offset &+ 8)
        bytes.store(UInt32(truncatingIfNeeded: ntpTimestamp.rawValue), at: offset &+ 12)
        bytes.store(rtpTimestamp, at: offset &+ 16)
        bytes.store(packetCount, at: offset &+ 20)
        bytes.store(octetCount, at: offset &+ 24)
        block?.serialize(into: &bytes, at: offset &+ Self.fixedByteCount)
        return byteCount
    }
}

/// Where the report blocks of a report lie in the bytes that it was read from.
package struct RTCPReportBlocks: Hashable, Sendable, BitwiseCopyable {
    private let offset: Int
    /// Blocks in the report, 0 to 31.
    package let count: Int

    init(offset: Int, count: Int) {
        self.offset = offset
        self.count = count
    }

    /// Block `index`, or nil when there is none.
    package func block(_ index: Int, in bytes: Span<UInt8>) -> RTCPReportBlock? {
        guard index >= 0, index < count else { return nil }
        return RTCPReportBlock(parsing: bytes, at: offset &+ RTCPReportBlock.byteCount &* index)
    }

    /// The block about `ssrc`, or nil when there is none.
    package func block(about ssrc: UInt32, in bytes: Span<UInt8>) -> RTCPReportBlock? {
        for index in 0..<count {
            guard let block = block(index, in: bytes) else { return nil }
            if block.ssrc == ssrc { return block }
        }
        return nil
    }
}
