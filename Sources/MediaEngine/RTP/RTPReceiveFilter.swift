/// Receives RTP and RTCP: hands the codec's packets on, and tells of keys and reports.
///
///     (network) ─► RTP receive ─► packets
///
/// Events: "key down" and "key up" (value: the code, detail: ms it was held), "report" (the other side told what it
/// receives), "goodbye", "source" (another sender took the place of the first).
public final class RTPReceiveFilter: Filter, @unchecked Sendable {
    private let transport: RTPTransport
    private var hasSource = false
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
        pacing.begin()
        while pacing.looksAgain, taken < Self.datagramLimit, packets.count < PacketBatch.capacity {
            let wasTaken = transport.receive(at: now) { bytes, reception, arrival in
                switch reception {
                case .control(let events): told.formUnion(events)
                case .ignored: break
                case .media(let media):
                    if media.isNewSource { isNewSource = true }
                    pacing.took(
                        media.packet.header,
                        clockRate: transport.clockRate,
                        arrival: arrival,
                        at: now,
                        tick: tick
                    )
                    deliver(media, bytes, arrival, packets)
                }
            }
            guard wasTaken else { break }
            taken &+= 1
        }
        if isNewSource {
            if hasSource { io.emit("source") }
            hasSource = true
        }
        if told.contains(.remoteReport) { io.emit("report") }
        if told.contains(.goodbye) { io.emit("goodbye") }
    }

    private func deliver(
        _ media: RTPReception.Media,
        _ bytes: Span<UInt8>,
        _ arrival: MediaTime,
        _ packets: PacketBatch
    ) {
        let header = media.packet.header
        let payload = media.packet.payload(in: bytes)
        guard header.payloadType == transport.payloadType else {
            transport.eventReceiver.receive(header, payload: payload, arrival: arrival)
            // Events share the audio's sequence numbers: without this, the numbers they took would look lost.
            packets.append(
                PacketHeader(sequenceNumber: header.sequenceNumber, isNumberOnly: true, arrival: arrival)
            ) { _ in 0 }
            return
        }
        guard payload.count <= PacketBatch.maximumPayloadByteCount else { return }
        var fields = PacketHeader(
            rtpTimestamp: header.timestamp,
            sequenceNumber: header.sequenceNumber,
            payloadType: header.payloadType,
            isMarked: header.isMarked,
            arrival: arrival
        )
        fields.beginsSource = media.isNewSource
        packets.append(fields) { target in
            for index in 0..<payload.count { target[index] = payload[index] }
            return payload.count
        }
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
