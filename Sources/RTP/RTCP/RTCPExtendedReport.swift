import CallBasics

/// An extended report: blocks on what a receiver knows beyond loss and jitter.
///
///    header (4): no count, PT = 207
///    SSRC of the reporter (4) | blocks: type (1), type-specific (1), length in words less one (2), content …
///
/// Every block's length is checked first, so that `next` cannot leave the packet; a known block of a wrong length is
/// left out and counted, an unknown one is told by its type.
/// Source: RFC 3611, sections 2 and 3
///
///     var report = try RTCPExtendedReport(parsing: bytes, at: offset)
///     while let block = report.next(in: bytes) { … }
package struct RTCPExtendedReport: Hashable, Sendable, BitwiseCopyable {
    /// One block of the report.
    package enum Block: Sendable, BitwiseCopyable {
        /// Which packets came and which were lost (section 4.1).
        case lossRLE(RTCPLossRLE)
        /// The reporter's wall-clock time, to be answered (section 4.4).
        case receiverReferenceTime(NTPTimestamp)
        /// Answers to the times of others (section 4.5).
        case receiverReportDelays(RTCPReceiverReportDelays)
        /// How a call is received (section 4.7).
        case voipMetrics(RTCPVoIPMetrics)
        /// A block of another type, which is skipped.
        case other(type: UInt8)
    }

    /// Bytes before the first block.
    package static let fixedByteCount = 8
    /// The most bytes that `serialize` writes.
    static var maximumByteCount: Int { 72 &+ RTCPLossRLE.maximumByteCount }

    enum BlockType {
        static let lossRLE: UInt8 = 1
        static let receiverReferenceTime: UInt8 = 4
        static let receiverReportDelays: UInt8 = 5
        static let voipMetrics: UInt8 = 7
    }

    /// Who reports.
    package let ssrc: UInt32
    /// Known blocks of a wrong length among those that `next` has passed.
    package private(set) var malformedCount = 0
    private var position: Int
    private let end: Int

    /// Reads the report whose header stands at `offset`, and checks the length of every block.
    ///
    /// Throws: what the header throws, `invalidPadding`, or `invalidLength` when a block leaves the packet.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(RTPError) {
        let header = try RTCPHeader(parsing: bytes, at: offset)
        guard header.packetByteCount >= Self.fixedByteCount else {
            throw RTPError(.invalidLength, found: header.packetByteCount, required: Self.fixedByteCount)
        }
        ssrc = bytes.uint32(at: offset &+ 4)
        position = offset &+ Self.fixedByteCount
        let room = header.packetByteCount &- Self.fixedByteCount
        let padding = header.hasPadding ? Int(bytes[offset &+ header.packetByteCount &- 1]) : 0
        guard padding <= room, padding & 3 == 0, !header.hasPadding || padding > 0 else {
            throw RTPError(.invalidPadding, found: padding, required: room)
        }
        end = offset &+ header.packetByteCount &- padding
        var block = position
        while block < end {
            // Everything is a multiple of four, so the block's own header is there.
            let byteCount = Self.byteCount(ofBlockAt: block, in: bytes)
            guard byteCount <= end &- block else {
                throw RTPError(.invalidLength, found: end &- block, required: byteCount)
            }
            block &+= byteCount
        }
    }

    /// The next block, or nil after the last; `bytes` must be those that were checked.
    package mutating func next(in bytes: Span<UInt8>) -> Block? {
        while position < end, bytes.count >= end {
            let start = position
            let byteCount = Self.byteCount(ofBlockAt: start, in: bytes)
            guard byteCount <= end &- start else { return nil }
            position &+= byteCount
            switch bytes[start] {
            case BlockType.lossRLE where byteCount >= RTCPLossRLE.fixedByteCount:
                return .lossRLE(RTCPLossRLE(parsing: bytes, at: start, byteCount: byteCount))
            case BlockType.receiverReferenceTime where byteCount == 12:
                let seconds = UInt64(bytes.uint32(at: start &+ 4))
                let fraction = UInt64(bytes.uint32(at: start &+ 8))
                return .receiverReferenceTime(NTPTimestamp(rawValue: seconds << 32 | fraction))
            case BlockType.receiverReportDelays where (byteCount &- 4) % RTCPReceiverReportDelay.byteCount == 0:
                let count = (byteCount &- 4) / RTCPReceiverReportDelay.byteCount
                return .receiverReportDelays(RTCPReceiverReportDelays(offset: start &+ 4, count: count))
            case BlockType.voipMetrics where byteCount == RTCPVoIPMetrics.byteCount:
                return .voipMetrics(RTCPVoIPMetrics(parsing: bytes, at: start))
            case BlockType.lossRLE, BlockType.receiverReferenceTime, BlockType.receiverReportDelays,
                BlockType.voipMetrics:
                malformedCount &+= 1
            case let type:
                return .other(type: type)
            }
        }
        return nil
    }

    /// Writes a report with the blocks that are given at `offset`.
    ///
    /// - Parameters:
    ///   - ssrc: who reports.
    ///   - referenceTime: the reporter's wall-clock time, when it sends no RTP and so no sender reports.
    ///   - delay: the answer to the other side's reference time.
    ///   - metrics: how the call is received.
    ///   - losses: which packets of a source came since the last report; an empty trace is left out.
    ///   - bytes: where to write.
    ///   - offset: where in it.
    /// - Returns: the byte count, or 0 when no block is given or the report does not fit.
    package static func serialize(
        ssrc: UInt32,
        referenceTime: NTPTimestamp? = nil,
        delay: RTCPReceiverReportDelay? = nil,
        metrics: RTCPVoIPMetrics? = nil,
        losses: (ssrc: UInt32, trace: LossTrace)? = nil,
        into bytes: inout MutableSpan<UInt8>,
        at offset: Int = 0
    ) -> Int {
        var byteCount = fixedByteCount
        if referenceTime != nil { byteCount &+= 12 }
        if delay != nil { byteCount &+= 4 &+ RTCPReceiverReportDelay.byteCount }
        if metrics != nil { byteCount &+= RTCPVoIPMetrics.byteCount }
        var lossByteCount = 0
        if let losses, losses.trace.count > 0 { lossByteCount = RTCPLossRLE.byteCount(of: losses.trace) }
        byteCount &+= lossByteCount
        guard byteCount > fixedByteCount, offset >= 0, bytes.count &- offset >= byteCount else { return 0 }
        let type = RTCPHeader.PacketType.extendedReport
        RTCPHeader(count: 0, packetType: type, packetByteCount: byteCount).serialize(into: &bytes, at: offset)
        bytes.store(ssrc, at: offset &+ 4)
        var position = offset &+ fixedByteCount
        if let referenceTime {
            storeBlockHeader(BlockType.receiverReferenceTime, wordCount: 2, into: &bytes, at: position)
            bytes.store(UInt32(truncatingIfNeeded: referenceTime.rawValue >> 32), at: position &+ 4)
            bytes.store(UInt32(truncatingIfNeeded: referenceTime.rawValue), at: position &+ 8)
            position &+= 12
        }
        if let delay {
            storeBlockHeader(BlockType.receiverReportDelays, wordCount: 3, into: &bytes, at: position)
            delay.serialize(into: &bytes, at: position &+ 4)
            position &+= 4 &+ RTCPReceiverReportDelay.byteCount
        }
        if let losses, lossByteCount > 0 {
            let wordCount = UInt16(truncatingIfNeeded: lossByteCount / 4 &- 1)
            storeBlockHeader(BlockType.lossRLE, wordCount: wordCount, into: &bytes, at: position)
            RTCPLossRLE.serialize(losses.trace, ssrc: losses.ssrc, into: &bytes, at: position)
            position &+= lossByteCount
        }
        // Last: Wireshark 4.0 reads nothing behind it.
        if let metrics {
            storeBlockHeader(BlockType.voipMetrics, wordCount: 8, into: &bytes, at: position)
            metrics.serialize(into: &bytes, at: position)
        }
        return byteCount
    }

    private static func byteCount(ofBlockAt offset: Int, in bytes: Span<UInt8>) -> Int {
        4 &* (Int(bytes.uint16(at: offset &+ 2)) &+ 1)
    }

    private static func storeBlockHeader(
        _ type: UInt8,
        wordCount: UInt16,
        into bytes: inout MutableSpan<UInt8>,
        at offset: Int
    ) {
        bytes[offset] = type
        bytes[offset &+ 1] = 0
        bytes.store(wordCount, at: offset &+ 2)
    }
}
