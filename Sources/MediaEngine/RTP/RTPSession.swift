/// One leg's RTP state, without socket, thread or clock: it numbers what is sent, judges what is received, and answers
/// and makes RTCP.
///
/// One remote source is heard at a time. Its packets are handed on from the first one on if their payload type was
/// announced, and it counts as valid, its address as worth answering, after two packets in sequence. A second source is
/// counted as foreign until the first has been silent for `sourceTimeout` or has said goodbye.
/// Thread: media, one at a time (the send and receive filters of a leg share it). No method allocates.
/// Source: RFC 3550; RFC 5761 (RTP and RTCP on one port); RFC 4961 (symmetric RTP).
public final class RTPSession: @unchecked Sendable {
    /// Bytes of the largest datagram that `makeRTCP` and `makeGoodbye` write.
    public static var maximumControlByteCount: Int { 328 &+ RTCPExtendedReport.maximumByteCount }

    // One thread owns the session, and no access lasts longer than a call, so checking each would be a waste of the tick.

    /// The source that this side sends as; it changes when somebody else uses it.
    @exclusivity(unchecked) public private(set) var localSSRC: UInt32
    /// Where RTP goes; symmetric RTP puts the valid source's address here.
    @exclusivity(unchecked) public var destination: SocketAddress?
    /// Where the next RTCP datagram goes; with multiplexing this is `destination`.
    public var controlDestination: SocketAddress? {
        get { configuration.isMultiplexed ? destination : separateControlDestination }
        set { separateControlDestination = newValue }
    }

    let configuration: RTPSessionConfiguration
    let canonicalName: [UInt8]
    @exclusivity(unchecked) var generator: SeededGenerator
    @exclusivity(unchecked) var scheduler: RTCPScheduler
    @exclusivity(unchecked) private var clockRates = InlineArray<128, UInt32>(repeating: 0)
    @exclusivity(unchecked) private var jitterRates = InlineArray<128, UInt32>(repeating: 0)
    private var redPayloadType: UInt8?
    var separateControlDestination: SocketAddress?

    private(set) var nextSequenceNumber: UInt16
    private let timestampOffset: UInt32
    var lastSentTimestamp: UInt32 = 0
    var lastSentClockRate: UInt32 = 0
    var lastSentTime: MediaTime?
    /// Counts under the present SSRC, which a sender report carries (RFC 3550, section 6.4.1).
    var packetCountOfSSRC: UInt32 = 0
    var octetCountOfSSRC: UInt32 = 0
    var packetsSincePreviousReport = 0
    var packetsSinceLastReport = 0

    @exclusivity(unchecked) var current: RemoteSource?
    private var candidate: RemoteSource?
    var lastSenderReport: SenderReportArrival?
    /// The other side's reference time that waits for an answer (RFC 3611, section 4.4).
    var lastReferenceTime: SenderReportArrival?
    @exclusivity(unchecked) var sentReportTimes = SentTimes()
    @exclusivity(unchecked) var sentReferenceTimes = SentTimes()
    @exclusivity(unchecked) var reception = ReceptionHistory()
    @exclusivity(unchecked) var lossTrace = LossTrace()
    /// What the leg's codec adds to delay and impairment; set it before the session is used.
    public var voicePath = VoicePath()
    /// What the playout knows when a report is made; without one, nothing was played.
    var playoutQuality: (() -> PlayoutQuality?)?
    @exclusivity(unchecked) var reportedPlayout = PlayoutQuality()
    private var conflict: Conflict?
    var leavingSSRC: UInt32?
    @exclusivity(unchecked) var counters = RTPStatistics()

    struct RemoteSource: BitwiseCopyable {
        let ssrc: UInt32
        var address: SocketAddress
        var statistics = ReceiverStatistics()
        var lastArrival: MediaTime
        var hasLeft = false
        var isAnnounced = false
    }

    struct SenderReportArrival: BitwiseCopyable {
        let ssrc: UInt32
        let compactTime: UInt32
        let arrival: MediaTime
    }

    private struct Conflict: BitwiseCopyable {
        let address: SocketAddress
        var lastSeen: MediaTime
    }

    /// A session whose SSRC, first sequence number and time stamp offset are drawn from `seed`.
    ///
    /// - Parameters:
    ///   - configuration: names, clocks and rules.
    ///   - seed: for calls a number from `SystemRandomNumberGenerator`; in tests any, for equal results.
    public init(configuration: RTPSessionConfiguration, seed: UInt64) {
        self.configuration = configuration
        canonicalName = Array(configuration.canonicalName.utf8.prefix(RTCPSourceDescription.maximumTextByteCount))
        generator = SeededGenerator(seed: seed)
        localSSRC = UInt32(truncatingIfNeeded: generator.next())
        nextSequenceNumber = UInt16(truncatingIfNeeded: generator.next())
        timestampOffset = UInt32(truncatingIfNeeded: generator.next())
        scheduler = RTCPScheduler(
            minimumInterval: configuration.minimumControlInterval,
            bandwidth: configuration.controlBandwidth
        )
        destination = configuration.destination
        separateControlDestination = configuration.controlDestination
        counters.localSSRC = localSSRC
    }

    /// Announces that `payloadType` is understood, and what a unit of its time stamps is.
    ///
    /// - Parameters:
    ///   - payloadType: 0 to 127; others are ignored.
    ///   - clockRate: in Hz; 0 takes the announcement back.
    ///   - measuresJitter: false for telephone events, whose time stamps stand still and would spoil the figure.
    public func announce(payloadType: UInt8, clockRate: UInt32, measuresJitter: Bool = true) {
        guard payloadType < 128 else { return }
        clockRates[Int(payloadType)] = clockRate
        jitterRates[Int(payloadType)] = measuresJitter ? clockRate : 0
    }

    /// Announces that `payloadType` is redundant audio (RFC 2198), whose packets count as what their primary block holds.
    public func announceRED(payloadType: UInt8, clockRate: UInt32) {
        announce(payloadType: payloadType, clockRate: clockRate)
        redPayloadType = clockRate > 0 ? payloadType : nil
    }

    /// The payload type of what a packet holds: of the primary block of redundant audio.
    private func mediaPayloadType(_ payloadType: UInt8, _ payload: Span<UInt8>) -> UInt8 {
        guard payloadType == redPayloadType else { return payloadType }
        return REDPayload.primaryPayloadType(of: payload) ?? payloadType
    }

    // MARK: Sending

    /// Numbers the next packet, counts it, and answers its header.
    ///
    /// - Parameters:
    ///   - payloadType: the payload type; announced ones give the clock rate for sender reports.
    ///   - isMarked: the marker bit.
    ///   - timestamp: on the media's own time line; the session adds its random offset.
    ///   - payloadByteCount: bytes of the payload, for the counters.
    ///   - mediaPayloadType: the payload type of the primary block of redundant audio.
    ///   - now: when the packet is sent.
    /// - Returns: the header to write in front of the payload.
    public func prepare(
        payloadType: UInt8,
        isMarked: Bool,
        timestamp: UInt32,
        payloadByteCount: Int,
        mediaPayloadType: UInt8? = nil,
        at now: MediaTime
    ) -> RTPHeader {
        let mediaPayloadType = Int((mediaPayloadType ?? payloadType) & 0x7F)
        let header = RTPHeader(
            isMarked: isMarked,
            payloadType: payloadType,
            sequenceNumber: nextSequenceNumber,
            timestamp: timestamp &+ timestampOffset,
            ssrc: localSSRC
        )
        nextSequenceNumber &+= 1
        packetCountOfSSRC &+= 1
        octetCountOfSSRC &+= UInt32(truncatingIfNeeded: payloadByteCount)
        packetsSinceLastReport &+= 1
        counters.sentPacketCount &+= 1
        counters.sentPayloadByteCount &+= UInt64(clamping: payloadByteCount)
        // A telephone event's time stamp is that of its start, so only a moving one relates time and wall clock.
        if jitterRates[mediaPayloadType] > 0 {
            lastSentTimestamp = header.timestamp
            lastSentClockRate = clockRates[mediaPayloadType]
            lastSentTime = now
        }
        return header
    }

    /// Writes a whole packet with `payload`; answers its byte count, or 0, with nothing numbered, when it does not fit.
    public func makePacket(
        payloadType: UInt8,
        isMarked: Bool,
        timestamp: UInt32,
        payload: Span<UInt8>,
        at now: MediaTime,
        into bytes: inout MutableSpan<UInt8>
    ) -> Int {
        guard bytes.count >= RTPHeader.byteCount &+ payload.count else { return 0 }
        let header = prepare(
            payloadType: payloadType,
            isMarked: isMarked,
            timestamp: timestamp,
            payloadByteCount: payload.count,
            mediaPayloadType: mediaPayloadType(payloadType, payload),
            at: now
        )
        return header.serialize(with: payload, into: &bytes)
    }

    // MARK: Receiving

    /// Takes one datagram, RTP or RTCP, told apart by RFC 5761, section 4.
    ///
    /// - Parameters:
    ///   - bytes: the whole datagram; any bytes at all.
    ///   - source: who sent it.
    ///   - arrival: when it came.
    /// - Returns: what to do with it.
    public func receive(_ bytes: Span<UInt8>, from source: SocketAddress, arrival: MediaTime) -> RTPReception {
        switch DatagramKind(of: bytes) {
        case .rtp: receiveMedia(bytes, from: source, arrival: arrival)
        case .rtcp: receiveControl(bytes, from: source, arrival: arrival)
        case .stun, .dtls: .ignored(.otherProtocol)
        case .unknown: malformed()
        }
    }

    func malformed() -> RTPReception {
        counters.malformedCount &+= 1
        return .ignored(.malformed)
    }

    private func receiveMedia(_ bytes: Span<UInt8>, from source: SocketAddress, arrival: MediaTime) -> RTPReception {
        guard let packet = try? RTPPacket(parsing: bytes) else { return malformed() }
        guard clockRates[Int(packet.header.payloadType)] > 0 else {
            counters.unknownPayloadTypeCount &+= 1
            return .ignored(.unknownPayloadType)
        }
        guard packet.header.ssrc != localSSRC else { return receiveOwnSSRC(from: source, arrival: arrival) }
        guard select(packet.header, from: source, arrival: arrival), var remote = current else {
            counters.foreignPacketCount &+= 1
            return .ignored(.foreign)
        }

        let wasValid = remote.statistics.isValid
        let rate = jitterRates[Int(mediaPayloadType(packet.header.payloadType, packet.payload(in: bytes)) & 0x7F)]
        let verdict = remote.statistics.receive(packet.header, clockRate: rate, arrival: arrival)
        if !remote.statistics.isValid || verdict != .badSequence { remote.lastArrival = arrival }
        if configuration.isSymmetric, remote.statistics.isValid, destination != remote.address {
            destination = remote.address
        }
        let isNewSource = !remote.isAnnounced
        reception.receive(packet.header, clockRate: rate, verdict: verdict)
        lossTrace.receive(packet.header.sequenceNumber, verdict: verdict)
        switch verdict {
        case .duplicate:
            current = remote
            return .ignored(.duplicate)
        case .badSequence:
            current = remote
            return .ignored(.badSequence)
        case .inOrder, .reordered, .restarted, .probation:
            remote.isAnnounced = true
            current = remote
        }
        counters.receivedPayloadByteCount &+= UInt64(packet.payloadByteCount)
        if !wasValid, remote.statistics.isValid { updateMembers(at: arrival) }
        return .media(RTPReception.Media(packet: packet, verdict: verdict, isNewSource: isNewSource))
    }

    /// Whether the packet belongs to the current source, which changes here when it may.
    private func select(_ header: RTPHeader, from source: SocketAddress, arrival: MediaTime) -> Bool {
        guard let remote = current else {
            current = RemoteSource(ssrc: header.ssrc, address: source, lastArrival: arrival)
            return true
        }
        let isValid = remote.statistics.isValid
        let isSilent = arrival - remote.lastArrival >= configuration.sourceTimeout
        if header.ssrc == remote.ssrc {
            guard source != remote.address else { return true }
            guard !isValid || remote.hasLeft || isSilent else { return false }
            current?.address = source
            if isValid { counters.sourceChangeCount &+= 1 }
            return true
        }
        if remote.hasLeft {
            adopt(RemoteSource(ssrc: header.ssrc, address: source, lastArrival: arrival))
            return true
        }
        // Of two sources from the beginning, the one that is first valid wins.
        var other = RemoteSource(ssrc: header.ssrc, address: source, lastArrival: arrival)
        if let candidate, candidate.ssrc == header.ssrc, candidate.address == source { other = candidate }
        _ = other.statistics.receive(header, clockRate: 0, arrival: arrival)
        guard other.statistics.isValid, !isValid || isSilent else {
            candidate = other
            return false
        }
        // Counting begins afresh: what came before was counted as foreign.
        other = RemoteSource(ssrc: header.ssrc, address: source, lastArrival: arrival)
        other.statistics = ReceiverStatistics(probation: 1)
        adopt(other)
        return true
    }

    private func adopt(_ source: RemoteSource) {
        if let former = current, former.statistics.isValid {
            fold(former.statistics, into: &counters)
            counters.sourceChangeCount &+= 1
        }
        current = source
        candidate = nil
        reception = ReceptionHistory()
        lossTrace = LossTrace()
        counters.remoteMetrics = nil
        lastReferenceTime = lastReferenceTime.flatMap { $0.ssrc == source.ssrc ? $0 : nil }
        lastSenderReport = lastSenderReport.flatMap { $0.ssrc == source.ssrc ? $0 : nil }
    }

    private func receiveOwnSSRC(from source: SocketAddress, arrival: MediaTime) -> RTPReception {
        if let known = conflict, known.address == source,
            arrival - known.lastSeen < configuration.minimumControlInterval * 10
        {
            conflict?.lastSeen = arrival
            counters.loopedCount &+= 1
            return .ignored(.looped)
        }
        conflict = Conflict(address: source, lastSeen: arrival)
        counters.collisionCount &+= 1
        leavingSSRC = packetCountOfSSRC > 0 || counters.sentControlCount > 0 ? localSSRC : nil
        repeat {
            localSSRC = UInt32(truncatingIfNeeded: generator.next())
        } while localSSRC == leavingSSRC || localSSRC == current?.ssrc
        counters.localSSRC = localSSRC
        packetCountOfSSRC = 0
        octetCountOfSSRC = 0
        sentReportTimes = SentTimes()
        sentReferenceTimes = SentTimes()
        if leavingSSRC != nil { scheduler.expedite(at: arrival) }
        return .ignored(.collision)
    }

    // MARK: Counters

    /// The counters as they are now.
    public var statistics: RTPStatistics {
        var result = RTPStatistics()
        writeStatistics(to: &result)
        return result
    }

    /// Puts the counters as they are now in place of `result`.
    func writeStatistics(to result: inout RTPStatistics) {
        result = counters
        result.reception = reception
        guard let remote = current else { return }
        result.remoteSSRC = remote.ssrc
        result.jitterNanoseconds = remote.statistics.jitterDuration.nanoseconds
        fold(remote.statistics, into: &result)
    }

    private func fold(_ source: ReceiverStatistics, into total: inout RTPStatistics) {
        total.receivedPacketCount &+= source.receivedCount
        total.lostCount &+= source.lostCount
        total.duplicateCount &+= source.duplicateCount
        total.reorderedCount &+= source.reorderedCount
        total.badSequenceCount &+= source.badSequenceCount
        total.restartCount &+= source.restartCount
    }
}
