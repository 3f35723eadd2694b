package import CallBasics
import RTP
import Synchronization

/// What a receive filter tells.
package enum RTPReceiveEvent: Sendable, BitwiseCopyable {
    /// The other side pressed the key of this event code (RFC 4733, section 3.2).
    case keyDown(code: UInt8)
    /// It released the key.
    case keyUp(code: UInt8, milliseconds: Int32)
    /// The other side told what it receives: round trip and loss are new.
    case report
    /// The other side said goodbye.
    case goodbye
    /// Another sender took the place of the one that was heard.
    case sourceChanged
    /// Nothing of the other side has come for so long, in nanoseconds.
    case stalled(nanoseconds: Int64)
    /// Packets come again.
    case resumed
}

/// What a receive filter can be asked for.
package enum RTPReceiveCommand: Sendable, BitwiseCopyable {
    /// Follows what signalling has changed: `RTPLeg.update`.
    case update(at: MediaTime)
}

/// Receives RTP and RTCP: hands the codec's packets on, and tells of keys and reports.
///
///     (network) ─► RTP receive ─► packets
package final class RTPReceiveFilter: ControlledFilter<RTPReceiveCommand, RTPReceiveEvent>, @unchecked Sendable {
    private let leg: RTPLeg
    private var hasSource = false
    /// Whether a source has said goodbye; the session knows whether it still holds.
    private var hasHeardGoodbye = false
    /// Whether the next packet handed on is to tell that a source begins: the packet it began with may not have been one.
    private var beginsSource = false
    /// Likewise, that the source begins new numbers.
    private var beginsNumbers = false
    /// How long nothing may come before that is told, in nanoseconds; the largest number expects nothing (hold, sending
    /// only).
    ///
    /// Thread: set by any.
    let patience = Atomic(Int64.max)
    /// What the other side is to send, as far as signalling says.
    ///
    /// Thread: set by any.
    let expectedMedia = Atomic(ExpectedMedia.sound)
    private var knownPatience = Int64.max
    private var expectedSince = MediaTime.zero
    private var isStalled = false
    /// Whether there may be keys to be told.
    ///
    /// Who knows is large, and of another module: to be asked it would be copied.
    private var hasKeys = false
    /// Whether redundant audio (RED, RFC 2198) may come.
    private var takesRedundancy: Bool
    // One thread owns these, and no access lasts longer than a call, so checking each would be a waste of the tick.
    @exclusivity(unchecked) private var pacing = ReceptionPacing()
    @exclusivity(unchecked) private var flood = FloodDetector()
    /// Datagrams that the link found to be nobody's, by the last look.
    private var forgedCount = 0
    @exclusivity(unchecked) private var redReceiver = REDReceiver()
    @exclusivity(unchecked) private var eventReceiver = TelephoneEventReceiver()
    @exclusivity(unchecked) private var stray = StrayPacket()

    /// Datagrams taken in one tick at most, those of strangers included, so that a flood costs a bounded time.
    private static let datagramLimit = 1024
    /// Of these, what is taken from RTCP's own port: the other side sends one in seconds.
    private static let controlLimit = 64

    /// A filter that receives for `leg`.
    ///
    /// - Parameter leg: The leg, whose session knows the payload types.
    package init(_ leg: RTPLeg) {
        self.leg = leg
        takesRedundancy = leg.session.payloads.hasRedundancy
        super.init(
            FilterDescription(
                name: "RTP receive",
                purpose: "takes packets from the network, checks their source, and counts loss",
                outputs: [.packets()]
            )
        )
    }

    package override func handle(_ command: RTPReceiveCommand) {
        switch command {
        case .update(let now):
            leg.takeUpdate(at: now)
            // What it holds was told by payload types that may mean something else now.
            stray.drop()
            let hadRedundancy = takesRedundancy
            takesRedundancy = leg.session.payloads.hasRedundancy
            if takesRedundancy, !hadRedundancy { redReceiver = REDReceiver() }
        }
    }

    package override func process(_ io: borrowing FilterIO) {
        let packets = io.outputPackets()
        if pacing.isDue(at: io.time) { receive(into: packets, io) }
        reportKeys(io)
        let hasLeft = hasHeardGoodbye && leg.session.hasSourceLeft
        leg.feedback.expectedMedia = hasLeft ? .nothing : expectedMedia.load(ordering: .relaxed)
        watchForStall(packets.count > 0, io)
    }

    private func receive(into packets: PacketBatch, _ io: borrowing FilterIO) {
        // One reference for all that follows.
        let leg = leg
        let now = io.time
        let tick = io.tickDuration
        var (hasReport, hasGoodbye, isNewSource) = (false, false, false)
        var (taken, foreignCount) = (0, 0)
        var limitOfSide = Self.datagramLimit
        // A packet of redundant audio needs more than one place.
        let limit = PacketBatch.capacity &- (takesRedundancy ? REDSender.maximumGenerations : 0)
        var side = RTPPort.Side.media
        pacing.begin()
        // A stray that is kept needs a place, too.
        while taken < limitOfSide, packets.count < limit &- (stray.isKept ? 1 : 0) {
            let wasTaken = leg.receive(from: side, at: now) { bytes, reception, arrival in
                switch reception {
                case .control(let events):
                    if events.hasRemoteReport { hasReport = true }
                    if events.hasGoodbye { (hasGoodbye, hasHeardGoodbye) = (true, true) }
                case .ignored:
                    pacing.tookForeign()
                    if side == .media { foreignCount &+= 1 }
                case .stray(let media):
                    pacing.tookForeign()
                    stray.keep(media, bytes, arrival)
                case .media(let media):
                    if media.isNewSource {
                        isNewSource = true
                        beginsSource = true
                        forgetNeighbours()
                    } else if case .restarted = media.verdict {
                        beginsNumbers = true
                        forgetNeighbours()
                        stray.withPacket(before: media.packet.header) { deliver($0, $1, $2, packets) }
                    }
                    stray.drop()
                    pacing.took(
                        media.packet.header,
                        clockRate: media.clockRate,
                        arrival: arrival,
                        at: now,
                        tick: tick
                    )
                    deliver(media, bytes, arrival, packets)
                }
            }
            if wasTaken { taken &+= 1 }
            tellKeys(io)
            if side == .media, !wasTaken || !pacing.looksAgain {
                // However calm the packets are, they say nothing of what waits on RTCP's own port.
                side = .control
                limitOfSide = min(taken &+ Self.controlLimit, Self.datagramLimit)
            } else if !wasTaken {
                break
            }
        }
        // Forgeries are dropped below, and cost as much.
        let forged = leg.port.forgedCount
        foreignCount &+= forged &- forgedCount
        forgedCount = forged
        leg.port.accept(only: flood.isFlood(foreignCount, at: now) ? leg.session.onlyAddresses : nil)
        if isNewSource {
            if hasSource { emit(.sourceChanged, io) }
            hasSource = true
        }
        if hasReport { emit(.report, io) }
        if hasGoodbye { emit(.goodbye, io) }
    }

    /// What was sent before, by another source or with other numbers, is no neighbour of the packets that come, and its keys
    /// are none of theirs.
    private func forgetNeighbours() {
        eventReceiver.reset()
        if takesRedundancy { redReceiver = REDReceiver() }
    }

    private func deliver(
        _ media: RTPReception.Media,
        _ bytes: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        let header = media.packet.header
        let payload = media.packet.payload(in: bytes)
        switch media.kind {
        case .redundantAudio: deliverRED(header, payload, arrival, packets)
        case .audio, .comfortNoise, .telephoneEvent, .unknown:
            deliver(header, media.kind, payload, arrival, packets)
        }
    }

    /// Hands on what a packet holds itself: the codec's sound, comfort noise, or a key.
    private func deliver(
        _ header: RTPHeader,
        _ kind: PayloadMap.Kind,
        _ payload: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        // By patterns: "==" of another module's enumeration costs two calls through tables.
        var (isAudio, isNoise) = (false, false)
        switch kind {
        case .audio: isAudio = true
        // An empty packet of noise says nothing.
        case .comfortNoise: isNoise = !payload.isEmpty
        case .telephoneEvent: receiveEvent(header, payload, arrival)
        case .unknown, .redundantAudio: break
        }
        if takesRedundancy { redReceiver.note(header, isAudio: isAudio) }
        guard isAudio || isNoise else {
            // What is no sound shares the audio's sequence numbers: without this, the numbers it took would look lost.
            var number = PacketHeader(sequenceNumber: header.sequenceNumber, isNumberOnly: true, arrival: arrival)
            if case .unknown = kind { number.isUndecodable = true }
            append(Span(), number, to: packets)
            return
        }
        var fields = PacketHeader(
            rtpTimestamp: header.timestamp,
            sequenceNumber: header.sequenceNumber,
            payloadType: header.payloadType,
            isMarked: header.isMarked,
            arrival: arrival
        )
        fields.isComfortNoise = isNoise
        append(payload, fields, to: packets)
    }

    /// Takes redundant audio (RFC 2198) apart: copies of packets that have not come go before the packet itself.
    private func deliverRED(
        _ header: RTPHeader,
        _ payload: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        guard let parts = try? REDPayload(parsing: payload) else {
            leg.session.count(.malformedRED)
            return
        }
        let primary = parts.primary.payloadType
        for index in 0..<parts.redundantCount {
            deliverCopy(parts.redundant(index), of: header, primary, payload, arrival, packets)
        }
        var own = header
        own.payloadType = primary
        let kind = leg.session.content(of: primary).kind
        deliver(own, kind, parts.primary.content(in: payload), arrival, packets)
    }

    private func deliverCopy(
        _ block: REDPayload.Block,
        of header: RTPHeader,
        _ primaryType: UInt8,
        _ payload: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        let session = leg.session
        // Its time stamp is told by the packet's, so it must count as the packet's does.
        let (kind, clockRate) = session.content(of: block.payloadType)
        guard clockRate == session.content(of: primaryType).clockRate else { return }
        let timestamp = header.timestamp &- UInt32(block.timestampOffset)
        if kind == .telephoneEvent {
            // Its own number is not told; one older than the packet's is true, and all that the receiver asks.
            let event = RTPHeader(
                payloadType: block.payloadType,
                sequenceNumber: header.sequenceNumber &- 1,
                timestamp: timestamp,
                ssrc: header.ssrc
            )
            receiveEvent(event, block.content(in: payload), arrival)
            return
        }
        // The last place is the packet's own.
        guard kind == .audio, block.byteCount > 0, packets.count < PacketBatch.capacity &- 1,
            let sequenceNumber = redReceiver.claim(timestampOffset: block.timestampOffset, before: header)
        else { return }
        session.count(.redundantCopy)
        var fields = PacketHeader(
            rtpTimestamp: timestamp,
            sequenceNumber: sequenceNumber,
            payloadType: block.payloadType,
            arrival: arrival
        )
        fields.isRedundant = true
        append(block.content(in: payload), fields, to: packets)
    }

    private func receiveEvent(_ header: RTPHeader, _ payload: Span<UInt8>, _ arrival: MediaTime) {
        let clockRate = leg.session.content(of: header.payloadType).clockRate
        let isRead = eventReceiver.receive(header, payload: payload, clockRate: clockRate, arrival: arrival)
        if !isRead { leg.session.count(.malformedEvent) }
        hasKeys = true
    }

    private func append(_ payload: Span<UInt8>, _ header: PacketHeader, to packets: PacketBatch) {
        guard payload.count <= PacketBatch.maximumPayloadByteCount else { return }
        if payload.isEmpty, !header.isRedundant, !header.isNumberOnly { leg.session.count(.empty) }
        var header = header
        header.beginsSource = beginsSource
        header.beginsNumbers = beginsNumbers
        let wasAppended = packets.append(header) { target in
            target.store(payload, at: 0)
            return payload.count
        }
        if wasAppended { (beginsSource, beginsNumbers) = (false, false) }
    }

    private func reportKeys(_ io: borrowing FilterIO) {
        guard hasKeys else { return }
        eventReceiver.advance(to: io.time)
        tellKeys(io)
        hasKeys = !eventReceiver.isIdle
    }

    /// Tells of keys packet by packet: a stall brings more together than the receiver keeps.
    private func tellKeys(_ io: borrowing FilterIO) {
        guard hasKeys else { return }
        while let report = eventReceiver.next() {
            switch report.kind {
            case .started: emit(.keyDown(code: report.code), io)
            case .ended, .presumedEnded:
                emit(.keyUp(code: report.code, milliseconds: Int32(clamping: Int(report.milliseconds))), io)
            }
        }
    }

    private func watchForStall(_ hasCome: Bool, _ io: borrowing FilterIO) {
        let patience = patience.load(ordering: .relaxed)
        if hasCome || patience != knownPatience {
            knownPatience = patience
            expectedSince = io.time
            guard hasCome, isStalled else { return }
            isStalled = false
            emit(.resumed, io)
        } else if !isStalled, io.time.nanoseconds(since: expectedSince) >= patience {
            isStalled = true
            emit(.stalled(nanoseconds: io.time.nanoseconds(since: expectedSince)), io)
        }
    }
}
