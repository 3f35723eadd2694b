/// Receives RTP and RTCP: hands the codec's packets on, and tells of keys and reports.
///
///     (network) ─► RTP receive ─► packets
///
/// Events: "key down" and "key up" (value: the code, detail: ms it was held), "report" (the other side told what it
/// receives), "goodbye", "source" (another sender took the place of the first).
public final class RTPReceiveFilter: Filter, @unchecked Sendable {
    private let transport: RTPTransport
    private var hasSource = false
    /// Whether the next packet handed on is to tell that a source begins: the packet it began with may not have been one.
    private var beginsSource = false
    private var pacing = ReceptionPacing()
    /// Datagrams taken in one tick at most, so that a flood costs a bounded time.
    private static let datagramLimit = 48

    /// A filter that receives over `transport`.
    public init(_ transport: RTPTransport) {
        self.transport = transport
        super.init(
            FilterDescription(
                name: "RTP receive",
                purpose: "takes packets from the network, checks their source, and counts loss",
                outputs: [.packets()]
            )
        )
    }

    public override func process(_ io: borrowing FilterIO) {
        let packets = io.outputPackets()
        guard pacing.isDue(at: io.time) else {
            reportKeys(io)
            return
        }
        receive(into: packets, io)
        reportKeys(io)
    }

    private func receive(into packets: PacketBatch, _ io: borrowing FilterIO) {
        let now = io.time
        let tick = io.tickDuration
        var told = RTPReception.ControlEvents()
        var isNewSource = false
        var taken = 0
        // A packet of redundant audio needs more than one place.
        let limit = PacketBatch.capacity &- (transport.redPayloadType == nil ? 0 : REDSender.maximumGenerations)
        var port = RTPTransport.Port.media
        pacing.begin()
        while taken < Self.datagramLimit, packets.count < limit {
            let wasTaken = transport.receive(from: port, at: now) { bytes, reception, arrival in
                switch reception {
                case .control(let events): told.formUnion(events)
                case .ignored: break
                case .media(let media):
                    if media.isNewSource {
                        isNewSource = true
                        beginsSource = true
                        // What a former source sent is no neighbour of this one's packets, and its keys are none of this one's.
                        transport.eventReceiver.reset()
                        if transport.redPayloadType != nil { transport.redReceiver = REDReceiver() }
                    }
                    pacing.took(
                        media.packet.header,
                        clockRate: clockRate(of: media.packet.header.payloadType),
                        arrival: arrival,
                        at: now,
                        tick: tick
                    )
                    deliver(media, bytes, arrival, packets)
                }
            }
            if wasTaken { taken &+= 1 }
            if port == .media, !wasTaken || !pacing.looksAgain {
                // However calm the packets are, they say nothing of what waits on RTCP's own port.
                port = .control
            } else if !wasTaken {
                break
            }
        }
        if isNewSource {
            if hasSource { io.emit("source") }
            hasSource = true
        }
        if told.contains(.remoteReport) { io.emit("report") }
        if told.contains(.goodbye) { io.emit("goodbye") }
    }

    /// The clock rate that time stamps of packets of this type count at.
    private func clockRate(of payloadType: UInt8) -> UInt32 {
        if let noise = transport.comfortNoise, noise.payloadType == payloadType { return noise.clockRate }
        let audio = transport.audioClockRate(of: payloadType)
        return audio > 0 ? audio : transport.clockRate
    }

    private func deliver(
        _ media: RTPReception.Media,
        _ bytes: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        let header = media.packet.header
        let payload = media.packet.payload(in: bytes)
        if header.payloadType == transport.redPayloadType {
            deliverRED(header, payload, arrival, packets)
        } else {
            deliver(header, payload, arrival, packets)
        }
    }

    /// Hands on what a packet holds itself: the codec's sound, comfort noise, or a key.
    private func deliver(
        _ header: RTPHeader,
        _ payload: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        let isAudio = transport.audioClockRate(of: header.payloadType) > 0
        if transport.redPayloadType != nil { transport.redReceiver.note(header, isAudio: isAudio) }
        // An empty packet of it says nothing.
        let isComfortNoise = header.payloadType == transport.comfortNoise?.payloadType && !payload.isEmpty
        guard isAudio || isComfortNoise else {
            if header.payloadType == transport.telephoneEventPayloadType {
                transport.eventReceiver.receive(header, payload: payload, arrival: arrival)
            }
            // Events share the audio's sequence numbers: without this, the numbers they took would look lost.
            append(
                Span(),
                PacketHeader(sequenceNumber: header.sequenceNumber, isNumberOnly: true, arrival: arrival),
                to: packets
            )
            return
        }
        var fields = PacketHeader(
            rtpTimestamp: header.timestamp,
            sequenceNumber: header.sequenceNumber,
            payloadType: header.payloadType,
            isMarked: header.isMarked,
            arrival: arrival
        )
        fields.isComfortNoise = isComfortNoise
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
            transport.session.counters.malformedREDCount &+= 1
            return
        }
        for index in 0..<parts.redundantCount {
            deliverCopy(parts.redundant(index), of: header, parts.primary.payloadType, payload, arrival, packets)
        }
        var own = header
        own.payloadType = parts.primary.payloadType
        deliver(own, parts.primary.content(in: payload), arrival, packets)
    }

    private func deliverCopy(
        _ block: REDPayload.Block,
        of header: RTPHeader,
        _ primaryType: UInt8,
        _ payload: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        let timestamp = header.timestamp &- UInt32(block.timestampOffset)
        if block.payloadType == transport.telephoneEventPayloadType {
            // Its own number is not told; one older than the packet's is true, and all that the receiver asks.
            let event = RTPHeader(
                payloadType: block.payloadType,
                sequenceNumber: header.sequenceNumber &- 1,
                timestamp: timestamp,
                ssrc: header.ssrc
            )
            transport.eventReceiver.receive(event, payload: block.content(in: payload), arrival: arrival)
            return
        }
        // Its time stamp is told by the packet's, so it must be sound that counts as the packet's does. The last place is
        // the packet's own.
        let audioClockRate = transport.audioClockRate(of: block.payloadType)
        guard audioClockRate > 0, audioClockRate == clockRate(of: primaryType), block.byteCount > 0,
            packets.count < PacketBatch.capacity &- 1,
            let sequenceNumber = transport.redReceiver.claim(timestampOffset: block.timestampOffset, before: header)
        else { return }
        transport.session.counters.redundantCount &+= 1
        var fields = PacketHeader(
            rtpTimestamp: timestamp,
            sequenceNumber: sequenceNumber,
            payloadType: block.payloadType,
            arrival: arrival
        )
        fields.isRedundant = true
        append(block.content(in: payload), fields, to: packets)
    }

    private func append(_ payload: Span<UInt8>, _ header: PacketHeader, to packets: PacketBatch) {
        guard payload.count <= PacketBatch.maximumPayloadByteCount else { return }
        if payload.isEmpty, !header.isRedundant, !header.isNumberOnly {
            transport.session.counters.emptyPayloadCount &+= 1
        }
        var header = header
        header.beginsSource = beginsSource
        let wasAppended = packets.append(header) { target in
            for index in 0..<payload.count { target[index] = payload[index] }
            return payload.count
        }
        if wasAppended { beginsSource = false }
    }

    private func reportKeys(_ io: borrowing FilterIO) {
        guard !transport.eventReceiver.isIdle else { return }
        transport.eventReceiver.advance(to: io.time)
        while let report = transport.eventReceiver.next() {
            let held = Int64(report.milliseconds(clockRate: transport.clockRate))
            let name: MessageName = report.kind == .started ? "key down" : "key up"
            io.emit(name, value: Int64(report.code), detail: held)
        }
    }
}
