import CallBasics

/// The answer to one receiver's reference time, from which that receiver tells the round trip (DLRR).
///
///    SSRC of the receiver (4) | last RR: middle 32 bits of its time (4) | delay since last RR, in 1/65536 s (4)
///
/// Source: RFC 3611, section 4.5
package struct RTCPReceiverReportDelay: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of an answer.
    package static let byteCount = 12

    /// Whose time is answered.
    package var ssrc: UInt32
    /// The middle 32 bits of that time; 0 when none came.
    package var lastReferenceTime: UInt32
    /// How long ago it came, in 1/65536 s.
    package var delay: UInt32

    /// An answer with the given fields.
    package init(ssrc: UInt32, lastReferenceTime: UInt32, delay: UInt32) {
        self.ssrc = ssrc
        self.lastReferenceTime = lastReferenceTime
        self.delay = delay
    }

    /// Writes the answer to the 12 bytes at `offset`, which must be there.
    func serialize(into bytes: inout MutableSpan<UInt8>, at offset: Int) {
        bytes.store(ssrc, at: offset)
        bytes.store(lastReferenceTime, at: offset &+ 4)
        bytes.store(delay, at: offset &+ 8)
    }
}

/// Where the answers of a DLRR block lie in the bytes that it was read from.
package struct RTCPReceiverReportDelays: Hashable, Sendable, BitwiseCopyable {
    private let offset: Int
    /// Answers in the block.
    package let count: Int

    init(offset: Int, count: Int) {
        self.offset = offset
        self.count = count
    }

    /// The answer to `ssrc`, or nil when there is none.
    package func delay(about ssrc: UInt32, in bytes: Span<UInt8>) -> RTCPReceiverReportDelay? {
        for index in 0..<count {
            let position = offset &+ RTCPReceiverReportDelay.byteCount &* index
            guard bytes.count &- position >= RTCPReceiverReportDelay.byteCount else { return nil }
            guard bytes.uint32(at: position) == ssrc else { continue }
            return RTCPReceiverReportDelay(
                ssrc: ssrc,
                lastReferenceTime: bytes.uint32(at: position &+ 4),
                delay: bytes.uint32(at: position &+ 8)
            )
        }
        return nil
    }
}
