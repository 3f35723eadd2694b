package import CallBasics

/// One leg's RTP state, without socket, thread or clock: it numbers what is sent, judges what is received, and answers
/// and makes RTCP.
///
/// A stream belongs to its source: see `RemoteSourcePolicy`. Packets are handed on from the first one on; a source
/// counts as valid, and is reported on, after two packets in sequence.
/// Thread: media, one at a time (the send and receive filters of a leg share it). No method allocates.
/// Source: RFC 3550; RFC 5761 (RTP and RTCP on one port); RFC 4961 (symmetric RTP).
package final class RTPSession {
    /// Bytes of the largest datagram that `makeRTCP` and `makeGoodbye` write.
    package static var maximumControlByteCount: Int { 328 &+ RTCPExtendedReport.maximumByteCount }

    let configuration: RTPSessionConfiguration
    let canonicalName: [UInt8]
    // One thread owns the session, and no access lasts longer than a call, so checking each would be a waste of the tick.
    @exclusivity(unchecked) var generator: SeededGenerator
    @exclusivity(unchecked) var scheduler: RTCPScheduler
    @exclusivity(unchecked) var sender: RTPSender
    @exclusivity(unchecked) var receiver: RTPReceiver
    @exclusivity(unchecked) var counters = RTPStatistics()
    var addresses: RTPAddresses

    var learntControlDestination: SocketAddress?
    var lastSenderReport: SenderReportArrival?
    /// The other side's reference time that waits for an answer (RFC 3611, section 4.4).
    var lastReferenceTime: SenderReportArrival?
    @exclusivity(unchecked) var sentReportTimes = SentTimes()
    @exclusivity(unchecked) var sentReferenceTimes = SentTimes()
    /// What the leg's codec adds to delay and impairment.
    package var voicePath = VoicePath()
    /// What the playout has told last.
    @exclusivity(unchecked) var playout = PlayoutQuality()
    @exclusivity(unchecked) var reportedPlayout = PlayoutQuality()
    private var conflict: Conflict?
    var leavingSSRC: UInt32?

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
    ///   - configuration: Names, addresses and rules.
    ///   - payloads: What is understood.
    ///   - seed: For calls a number that nobody can guess (RFC 3550, section 5.1); the same one gives the same session.
    package init(
        configuration: RTPSessionConfiguration,
        payloads: PayloadMap,
        seed: UInt64
    ) {
        self.configuration = configuration
        addresses = configuration.addresses
        canonicalName = Array(configuration.canonicalName.utf8.prefix(RTCPSourceDescription.maximumTextByteCount))
        generator = SeededGenerator(seed: seed)
        sender = RTPSender(using: &generator)
        receiver = RTPReceiver(
            RemoteSourcePolicy(
                named: addresses.destination,
                rules: addresses.sourceRules,
                expectsPackets: addresses.expectsPackets
            )
        )
        receiver.payloads = payloads
        scheduler = RTCPScheduler(
            minimumInterval: configuration.minimumControlInterval,
            bandwidth: configuration.controlBandwidth
        )
        counters.localSSRC = sender.ssrc
    }

    /// Begins to wait for the address that signalling named; without this, with the first packet of anybody.
    package func begin(at now: MediaTime) { receiver.policy.begin(at: now) }

    /// The source that this side sends as; it changes when somebody else uses it.
    package var localSSRC: UInt32 { sender.ssrc }

    /// What each payload type of packets that come holds.
    package var payloads: PayloadMap {
        get { receiver.payloads }
        set { receiver.payloads = newValue }
    }

    /// Whether the source that was heard last has said goodbye, and sent nothing since.
    package var hasSourceLeft: Bool { receiver.source?.leftAt != nil }

    /// What packets of `payloadType` hold, and how fast their time stamps count, in Hz; 0 for unknown ones.
    package func content(of payloadType: UInt8) -> (kind: PayloadMap.Kind, clockRate: UInt32) {
        receiver.payloads.content(of: payloadType)
    }

    /// Where RTP goes: with symmetric RTP the address that is locked, else the one that signalling named.
    package var destination: SocketAddress? {
        addresses.isSymmetric ? receiver.policy.answerAddress : addresses.destination
    }

    /// Where the next RTCP datagram goes; with multiplexing this is `destination`.
    package var controlDestination: SocketAddress? {
        addresses.isMultiplexed ? destination : learntControlDestination ?? addresses.controlDestination
    }

    /// The addresses whose packets can be heard where all others can only be refused: the locked one, and the one that
    /// signalling named, if that is another; nil while others could be heard.
    package var onlyAddresses: (locked: SocketAddress, named: SocketAddress?)? { receiver.policy.onlyAddresses }

    /// Follows signalling: other addresses and rules, from `now` on.
    ///
    /// SSRC and sequence numbers go on, but for another `sourceNumber`; time stamps do in any case.
    package func update(_ addresses: RTPAddresses, at now: MediaTime) {
        if addresses.controlDestination != self.addresses.controlDestination { learntControlDestination = nil }
        if addresses.sourceNumber != self.addresses.sourceNumber { changeSource() }
        self.addresses = addresses
        receiver.policy.name(
            addresses.destination,
            rules: addresses.sourceRules,
            expectsPackets: addresses.expectsPackets,
            at: now
        )
        guard !receiver.policy.hasSource, receiver.source != nil else { return }
        receiver.forgetSource(counters: &counters)
        learntControlDestination = nil
        heardSourceChanged(at: now)
    }

    // MARK: Sending

    /// Numbers the next packet, counts it, and answers its header.
    ///
    /// - Parameters:
    ///   - payloadType: The payload type.
    ///   - isMarked: The marker bit.
    ///   - timestamp: On the media's own time line; the session adds its random offset.
    ///   - payloadByteCount: Bytes of the payload, for the counters.
    ///   - clockRate: How fast the time stamp counts, in Hz; 0 for telephone events.
    ///   - now: When the packet is sent.
    /// - Returns: The header to write in front of the payload.
    package func prepare(
        payloadType: UInt8,
        isMarked: Bool,
        timestamp: UInt32,
        payloadByteCount: Int,
        clockRate: UInt32,
        at now: MediaTime
    ) -> RTPHeader {
        counters.sentPacketCount &+= 1
        counters.sentPayloadByteCount &+= UInt64(clamping: payloadByteCount)
        return sender.prepare(
            payloadType: payloadType,
            isMarked: isMarked,
            timestamp: timestamp,
            payloadByteCount: payloadByteCount,
            clockRate: clockRate,
            at: now
        )
    }

    /// Writes a whole packet with `payload`; answers its byte count, or 0, with nothing numbered, when it does not fit.
    package func makePacket(
        payloadType: UInt8,
        isMarked: Bool,
        timestamp: UInt32,
        payload: Span<UInt8>,
        clockRate: UInt32,
        at now: MediaTime,
        into bytes: inout MutableSpan<UInt8>
    ) -> Int {
        guard bytes.count >= RTPHeader.byteCount &+ payload.count else { return 0 }
        let header = prepare(
            payloadType: payloadType,
            isMarked: isMarked,
            timestamp: timestamp,
            payloadByteCount: payload.count,
            clockRate: clockRate,
            at: now
        )
        return header.serialize(with: payload, into: &bytes)
    }

    // MARK: Receiving

    /// Takes one datagram, RTP or RTCP, told apart by RFC 5761, section 4.
    ///
    /// - Parameters:
    ///   - bytes: The whole datagram; any bytes at all.
    ///   - source: Who sent it.
    ///   - arrival: When it came.
    /// - Returns: What to do with it.
    package func receive(_ bytes: Span<UInt8>, from source: SocketAddress, arrival: MediaTime) -> RTPReception {
        switch DatagramKind(of: bytes) {
        case .rtp: receiveMedia(bytes, from: source, arrival: arrival)
        case .rtcp: receiveControl(bytes, from: source, arrival: arrival)
        case .stun, .dtls: otherProtocol()
        case .unknown: malformed()
        }
    }

    private func otherProtocol() -> RTPReception {
        counters.otherProtocolCount &+= 1
        return .ignored(.otherProtocol)
    }

    func malformed() -> RTPReception {
        counters.malformedCount &+= 1
        return .ignored(.malformed)
    }

    func refused(_ refusal: RemoteSourcePolicy.Refusal) -> RTPReception {
        counters.count(refusal)
        return .ignored(.refused(refusal))
    }

    private func receiveMedia(_ bytes: Span<UInt8>, from source: SocketAddress, arrival: MediaTime) -> RTPReception {
        guard let packet = try? RTPPacket(parsing: bytes) else { return malformed() }
        guard packet.header.ssrc != sender.ssrc else {
            if let refusal = receiver.policy.refusal(ofOwnFrom: source, at: arrival) { return refused(refusal) }
            return receiveOwnSSRC(from: source, arrival: arrival)
        }
        let wasHeard = receiver.heardSource?.ssrc
        let reception = receiver.receive(
            packet,
            payload: packet.payload(in: bytes),
            from: source,
            arrival: arrival,
            counters: &counters
        )
        if receiver.heardSource?.ssrc != wasHeard { heardSourceChanged(at: arrival) }
        return reception
    }

    private func heardSourceChanged(at now: MediaTime) {
        let ssrc = receiver.source?.ssrc
        lastReferenceTime = lastReferenceTime.flatMap { $0.ssrc == ssrc ? $0 : nil }
        lastSenderReport = lastSenderReport.flatMap { $0.ssrc == ssrc ? $0 : nil }
        updateMembers(at: now)
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
        leavingSSRC = sender.packetCount > 0 || counters.sentControlCount > 0 ? sender.ssrc : nil
        changeSource()
        if leavingSSRC != nil { scheduler.expedite(at: arrival) }
        return .ignored(.collision)
    }

    private func changeSource() {
        var ssrc: UInt32
        repeat {
            ssrc = UInt32(truncatingIfNeeded: generator.next())
        } while ssrc == sender.ssrc || ssrc == receiver.source?.ssrc
        sender.change(to: ssrc)
        counters.localSSRC = ssrc
        sentReportTimes = SentTimes()
        sentReferenceTimes = SentTimes()
    }

    // MARK: Playout

    /// Takes what the playout did with the packets since the last report, and empties its lists.
    package func take(_ report: inout PlayoutReport) {
        playout = report.quality
        for index in 0..<report.discarded.count {
            receiver.statistics.record.discard(report.discarded.number(index))
        }
        for index in 0..<report.rebuilt.count {
            receiver.statistics.record.rebuild(report.rebuilt.number(index))
        }
        report.discarded.removeAll()
        report.rebuilt.removeAll()
    }

    // MARK: Counters

    /// The counters as they are now.
    package var statistics: RTPStatistics {
        var result = RTPStatistics()
        writeStatistics(to: &result)
        return result
    }

    /// Puts the counters as they are now in place of `result`.
    package func writeStatistics(to result: inout RTPStatistics) {
        result = counters
        guard let source = receiver.source else { return }
        result.remoteSSRC = source.ssrc
        result.remoteAddress = receiver.policy.lockedAddress
        result.hasSourceLeft = hasSourceLeft
        result.tell(receiver.statistics)
    }

    /// Counts what was found wrong within a packet that was handed on, or rebuilt from one.
    package func count(_ finding: PayloadFinding) {
        switch finding {
        case .empty: counters.emptyPayloadCount &+= 1
        case .malformedEvent: counters.malformedEventCount &+= 1
        case .malformedRED: counters.malformedREDCount &+= 1
        case .redundantCopy: counters.redundantCount &+= 1
        }
    }
}

/// What was found in a payload by who takes it apart.
package enum PayloadFinding: Sendable, BitwiseCopyable {
    /// A packet of a codec without a byte of sound.
    case empty
    /// Redundant audio whose blocks could not be read.
    case malformedRED
    /// A telephone event that could not be read.
    case malformedEvent
    /// A copy of a packet that had not come.
    case redundantCopy
}
