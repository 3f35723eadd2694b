internal import CallBasics

/// The send path of a session: numbers packets and counts them.
///
/// Thread: media.
/// Source: RFC 3550, sections 5.1 and 6.4.1
struct RTPSender: BitwiseCopyable {
    /// The source that this side sends as.
    private(set) var ssrc: UInt32
    private(set) var nextSequenceNumber: UInt16
    private let timestampOffset: UInt32

    /// Counts under the present SSRC, which a sender report carries.
    private(set) var packetCount: UInt32 = 0
    private(set) var octetCount: UInt32 = 0
    private var packetsSincePreviousReport = 0
    private var packetsSinceLastReport = 0

    private var lastTimestamp: UInt32 = 0
    private var lastClockRate: UInt32 = 0
    private var lastTime: MediaTime?

    init(using generator: inout SeededGenerator) {
        ssrc = UInt32(truncatingIfNeeded: generator.next())
        // In the lower half, so that who misses the first packets of SRTP guesses their cycle right (RFC 3711, section 3.3.1).
        nextSequenceNumber = UInt16(truncatingIfNeeded: generator.next()) & 0x7FFF
        timestampOffset = UInt32(truncatingIfNeeded: generator.next())
    }

    /// Whether packets were sent since the report before the last: a sender, as RTCP takes it (section 6.4).
    var isSender: Bool { packetsSinceLastReport > 0 || packetsSincePreviousReport > 0 }

    /// Numbers the next packet, counts it, and answers its header.
    ///
    /// - Parameters:
    ///   - payloadType: The payload type.
    ///   - isMarked: The marker bit.
    ///   - timestamp: On the media's own time line; the random offset is added.
    ///   - payloadByteCount: Bytes of the payload, for the counters.
    ///   - clockRate: How fast the time stamp counts, in Hz; 0 for telephone events, whose time stamp is that of their start
    ///     and does not relate time and wall clock.
    ///   - now: When the packet is sent.
    /// - Returns: The header to write in front of the payload.
    mutating func prepare(
        payloadType: UInt8,
        isMarked: Bool,
        timestamp: UInt32,
        payloadByteCount: Int,
        clockRate: UInt32,
        at now: MediaTime
    ) -> RTPHeader {
        let header = RTPHeader(
            isMarked: isMarked,
            payloadType: payloadType,
            sequenceNumber: nextSequenceNumber,
            timestamp: timestamp &+ timestampOffset,
            ssrc: ssrc
        )
        nextSequenceNumber &+= 1
        packetCount &+= 1
        octetCount &+= UInt32(truncatingIfNeeded: payloadByteCount)
        packetsSinceLastReport &+= 1
        if clockRate > 0 {
            lastTimestamp = header.timestamp
            lastClockRate = clockRate
            lastTime = now
        }
        return header
    }

    /// Sends as `ssrc` from now on: somebody else uses the former one, or the other side is to know nothing of it.
    mutating func change(to ssrc: UInt32) {
        self.ssrc = ssrc
        // As at the beginning.
        nextSequenceNumber &= 0x7FFF
        packetCount = 0
        octetCount = 0
    }

    /// The report on what was sent, with the wall clock's time `ntp` at `now`; nil when nothing was sent of late.
    func report(ntp: NTPTimestamp, at now: MediaTime) -> RTCPSenderReport? {
        guard isSender, let lastTime else { return nil }
        let elapsed = (now - lastTime).clockUnits(at: lastClockRate)
        return RTCPSenderReport(
            ssrc: ssrc,
            ntpTimestamp: ntp,
            rtpTimestamp: lastTimestamp &+ UInt32(truncatingIfNeeded: elapsed),
            packetCount: packetCount,
            octetCount: octetCount
        )
    }

    /// Notes that a report was sent.
    mutating func didReport() {
        packetsSincePreviousReport = packetsSinceLastReport
        packetsSinceLastReport = 0
    }
}
