import CallBasics

/// What one receiver says of one source: the body of sender and receiver reports.
///
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |                             SSRC                              |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    | fraction lost |       cumulative number of packets lost       |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |           extended highest sequence number received           |
///    |                      interarrival jitter                      |
///    |                         last SR (LSR)                         |
///    |                   delay since last SR (DLSR)                  |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///
/// Source: RFC 3550, section 6.4.1
package struct RTCPReportBlock: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of a block.
    package static let byteCount = 24

    /// The source that the block is about.
    package var ssrc: UInt32
    /// Loss since the last report, in 1/256.
    package var fractionLost: UInt8
    /// Packets lost since the beginning, in 24 bits; negative when duplicates outnumber losses.
    package var cumulativeLost: Int32
    /// The highest sequence number received, cycles in the high half.
    package var extendedHighestSequence: UInt32
    /// Interarrival jitter, in units of the clock rate.
    package var jitter: UInt32
    /// The middle 32 bits of the last sender report's NTP time stamp; 0 when none came.
    package var lastSenderReport: UInt32
    /// Time since that report came, in 1/65536 s.
    package var delaySinceLastSenderReport: UInt32

    /// A block with the given fields.
    package init(
        ssrc: UInt32,
        fractionLost: UInt8,
        cumulativeLost: Int32,
        extendedHighestSequence: UInt32,
        jitter: UInt32,
        lastSenderReport: UInt32 = 0,
        delaySinceLastSenderReport: UInt32 = 0
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.extendedHighestSequence = extendedHighestSequence
        self.jitter = jitter
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }

    /// Reads the block at `offset`, or answers nil when it does not lie inside `bytes`.
    init?(parsing bytes: Span<UInt8>, at offset: Int) {
        guard offset >= 0, bytes.count &- offset >= Self.byteCount else { return nil }
        let loss = bytes.uint32(at: offset &+ 4)
        self.init(
            ssrc: bytes.uint32(at: offset),
            fractionLost: UInt8(truncatingIfNeeded: loss >> 24),
            cumulativeLost: Int32(bitPattern: loss << 8) >> 8,
            extendedHighestSequence: bytes.uint32(at: offset &+ 8),
            jitter: bytes.uint32(at: offset &+ 12),
            lastSenderReport: bytes.uint32(at: offset &+ 16),
            delaySinceLastSenderReport: bytes.uint32(at: offset &+ 20)
        )
    }

    func serialize(into bytes: inout MutableSpan<UInt8>, at offset: Int) {
        let lost = UInt32(bitPattern: min(max(cumulativeLost, -0x80_0000), 0x7F_FFFF)) & 0xFF_FFFF
        bytes.store(ssrc, at: offset)
        bytes.store(UInt32(fractionLost) << 24 | lost, at: offset &+ 4)
        bytes.store(extendedHighestSequence, at: offset &+ 8)
        bytes.store(jitter, at: offset &+ 12)
        bytes.store(lastSenderReport, at: offset &+ 16)
        bytes.store(delaySinceLastSenderReport, at: offset &+ 20)
    }
}
