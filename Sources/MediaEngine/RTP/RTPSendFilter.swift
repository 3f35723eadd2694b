/// Sends packets by RTP, telephone events in between, and RTCP when it is due.
///
///     packets ─► RTP send ─► (network)
///
/// While a key is being sent, audio packets are dropped: gateways play the key's tone themselves, and would otherwise
/// play it over speech (RFC 4733, section 2.6.1.1 leaves the choice to the sender).
/// Where redundant audio was agreed (RFC 2198), keys are repeated in later packets, and audio when it is asked for.
/// Events: "key full" (value: keys and pauses that were refused because too many wait).
public final class RTPSendFilter: Filter, @unchecked Sendable {
    private let transport: RTPTransport
    private var timestamp: UInt32 = 0
    @exclusivity(unchecked) private var redundancy = REDSender()
    private var generations = 0
    private var hasLeft = false
    private var dropsAudio = false
    private var refusedKeyCount = 0

    /// A filter that sends over `transport`.
    public init(_ transport: RTPTransport) {
        self.transport = transport
        super.init(
            FilterDescription(
                name: "RTP send",
                purpose: "numbers packets and sends them, with telephone events and RTCP",
                inputs: [.packets(isRequired: false)]
            )
        )
    }

    /// Asks for the key `code` (RFC 4733, section 3.2) for `duration`, followed by silence for `gap`.
    public func send(event code: UInt8, duration: Duration, gap: Duration) -> GraphCommand {
        GraphCommand(
            to: self,
            "event",
            value: Int64(code),
            detail: Self.microseconds(duration) << 32 | Self.microseconds(gap)
        )
    }

    /// In 31 bits: half an hour.
    private static func microseconds(_ duration: Duration) -> Int64 {
        min(max(duration.nanoseconds / 1000, 0), Int64(Int32.max))
    }

    /// Asks for a pause between the keys that wait.
    public func pause(_ duration: Duration) -> GraphCommand {
        GraphCommand(to: self, "pause", value: duration.nanoseconds)
    }

    /// Presses the key `code`, until `releaseKey`.
    public func press(event code: UInt8) -> GraphCommand { GraphCommand(to: self, "press", value: Int64(code)) }

    /// Releases the pressed key.
    public func releaseKey() -> GraphCommand { GraphCommand(to: self, "release") }

    /// Repeats up to `generations` packets of audio, 0 to 2, in each packet (RFC 2198), if redundant audio was agreed.
    ///
    /// The first packet after it already carries a copy of the one before.
    public func redundancyCommand(generations: Int) -> GraphCommand {
        GraphCommand(to: self, "red", value: Int64(generations))
    }

    /// Sends RTCP BYE at `now`, and nothing after it.
    public func leave(at now: MediaTime) -> GraphCommand {
        GraphCommand(to: self, "leave", value: now.nanoseconds)
    }

    public override func handle(_ command: GraphCommand) {
        switch command.name {
        case "event":
            noteKey(
                transport.eventSender.enqueue(
                    UInt8(truncatingIfNeeded: command.value),
                    duration: .microseconds(command.detail >> 32),
                    gap: .microseconds(command.detail & 0xFFFF_FFFF)
                )
            )
        case "pause": noteKey(transport.eventSender.enqueuePause(.nanoseconds(command.value)))
        case "press": noteKey(transport.eventSender.start(UInt8(truncatingIfNeeded: command.value)))
        case "red": generations = min(max(Int(clamping: command.value), 0), REDSender.maximumGenerations)
        case "release": transport.eventSender.stop()
        case "leave":
            guard !hasLeft else { return }
            hasLeft = true
            transport.sendGoodbye(at: MediaTime(nanoseconds: command.value))
            transport.publishStatistics()
        default: break
        }
    }

    public override func process(_ io: borrowing FilterIO) {
        guard !hasLeft else { return }
        let now = io.time
        sendEvents(at: now)
        let packets = io.inputPackets()
        for index in 0..<packets.count where !dropsAudio {
            let header = packets.header(index)
            let age = Int32(bitPattern: timestamp &- header.rtpTimestamp)
            let ageNanoseconds = Int64(age) &* 1_000_000_000 / Int64(transport.clockRate)
            let captured = MediaTime(nanoseconds: now.nanoseconds &- ageNanoseconds)
            send(header, packets.payload(index), at: now, captured: captured)
        }
        let units = io.tickDuration.nanoseconds * Int64(transport.clockRate) / 1_000_000_000
        timestamp &+= UInt32(truncatingIfNeeded: units)
        transport.sendControlIfDue(at: now)
        transport.publishStatistics()
        if refusedKeyCount > 0 {
            io.emit("key full", value: Int64(refusedKeyCount))
            refusedKeyCount = 0
        }
    }

    private func send(_ header: PacketHeader, _ payload: Span<UInt8>, at now: MediaTime, captured: MediaTime) {
        if let redPayloadType = transport.redPayloadType {
            let memory = transport.payloadScratch
            var bytes = memory.mutableSpan
            let byteCount = redundancy.pack(
                header,
                payload: payload,
                generations: generations,
                eventPayloadType: transport.telephoneEventPayloadType,
                into: &bytes
            )
            if byteCount > 0 {
                transport.send(
                    payloadType: redPayloadType,
                    isMarked: header.isMarked,
                    timestamp: header.rtpTimestamp,
                    payload: UnsafeBufferPointer(rebasing: memory[..<byteCount]).span,
                    at: now,
                    captured: captured
                )
                return
            }
        }
        transport.send(
            payloadType: header.payloadType,
            isMarked: header.isMarked,
            timestamp: header.rtpTimestamp,
            payload: payload,
            at: now,
            captured: captured
        )
    }

    private func noteKey(_ wasQueued: Bool) {
        if !wasQueued { refusedKeyCount &+= 1 }
    }

    private func sendEvents(at now: MediaTime) {
        guard let payloadType = transport.telephoneEventPayloadType else { return }
        guard !transport.eventSender.isIdle else {
            dropsAudio = false
            return
        }
        var bytes = InlineArray<4, UInt8>(repeating: 0)
        while let packet = transport.eventSender.next(at: timestamp) {
            var payload = bytes.mutableSpan
            packet.event.serialize(into: &payload)
            if sendRedundantly(packet, bytes.span, payloadType, at: now) { continue }
            transport.send(
                payloadType: payloadType,
                isMarked: packet.isMarked,
                timestamp: packet.timestamp,
                payload: bytes.span,
                at: now
            )
        }
        dropsAudio = transport.eventSender.isSending
    }

    /// Sends the event with the ends of those before it; answers false when it is to go alone.
    private func sendRedundantly(
        _ packet: TelephoneEventSender.Packet,
        _ payload: Span<UInt8>,
        _ payloadType: UInt8,
        at now: MediaTime
    ) -> Bool {
        guard let redPayloadType = transport.redPayloadType else { return false }
        let memory = transport.payloadScratch
        var bytes = memory.mutableSpan
        let byteCount = redundancy.pack(packet, payload: payload, payloadType: payloadType, into: &bytes)
        guard byteCount > 0 else { return false }
        transport.send(
            payloadType: redPayloadType,
            isMarked: packet.isMarked,
            timestamp: packet.timestamp,
            payload: UnsafeBufferPointer(rebasing: memory[..<byteCount]).span,
            at: now
        )
        return true
    }
}
