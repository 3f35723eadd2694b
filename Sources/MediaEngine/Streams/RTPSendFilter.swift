package import CallBasics
package import RTP

/// What a send filter can be asked for.
package enum RTPSendCommand: Sendable, BitwiseCopyable {
    /// Sends the key `code` (RFC 4733, section 3.2), followed by silence; durations in nanoseconds.
    case key(code: UInt8, duration: Int64, gap: Int64)
    /// Inserts a pause between the keys that wait; in nanoseconds.
    case pause(Int64)
    /// Presses the key `code`, until `releaseKey`.
    case press(code: UInt8)
    /// Releases the pressed key.
    case releaseKey
    /// Repeats up to so many packets of audio, 0 to 2, in each packet (RFC 2198), if redundant audio was agreed.
    ///
    /// The first packet after it already carries a copy of the one before.
    case redundancy(generations: Int)
    /// Sends with other payload types from now on.
    case formats(SendFormats)
    /// Sends RTCP BYE at that time, and nothing after it.
    case leave(at: MediaTime)
}

/// The payload types and clock rates that one side sends with.
package struct SendFormats: Hashable, Sendable, BitwiseCopyable {
    /// The clock rate of the codec's time stamps, in Hz.
    package var clockRate: UInt32
    /// The payload type of telephone events; nil sends none.
    package var eventPayloadType: UInt8?
    /// The clock rate of their time stamps.
    package var eventClockRate: UInt32
    /// The payload type of redundant audio (RFC 2198); nil sends none.
    package var redPayloadType: UInt8?

    /// Formats with a codec of that clock rate, and nothing else.
    package init(clockRate: UInt32) {
        self.clockRate = clockRate
        eventClockRate = clockRate
    }
}

/// Sends packets by RTP, telephone events in between, and RTCP when it is due.
///
///     packets ─► RTP send ─► (network)
///
/// While a key is being sent, audio packets are dropped: gateways play the key's tone themselves, and would otherwise
/// play it over speech (RFC 4733, section 2.6.1.1 leaves the choice to the sender).
/// Where redundant audio was agreed (RFC 2198), keys are repeated in later packets, and audio when it is asked for.
package final class RTPSendFilter: ControlledFilter<RTPSendCommand, Never>, @unchecked Sendable {
    /// The places for keys and pauses that wait: whoever sends one takes one first.
    let keyPlaces = Credits(TelephoneEventSender.capacity)

    private let leg: RTPLeg
    @exclusivity(unchecked) private var formats: SendFormats
    /// The tick's start on the codec's time line, and on that of telephone events.
    private var timestamp: UInt32 = 0
    private var eventTimestamp: UInt32 = 0
    private var generations = 0
    private var hasLeft = false
    /// Whether there may be keys to be sent.
    ///
    /// Who knows is large, and of another module: to be asked it would be copied.
    private var hasKeys = false
    private var dropsAudio = false
    // One thread owns these, and no access lasts longer than a call, so checking each would be a waste of the tick.
    @exclusivity(unchecked) private var redundancy = REDSender()
    @exclusivity(unchecked) private var events: TelephoneEventSender

    /// A filter that sends for `leg`.
    package init(_ leg: RTPLeg, _ formats: SendFormats) {
        self.leg = leg
        self.formats = formats
        events = TelephoneEventSender(clockRate: formats.eventClockRate)
        super.init(
            FilterDescription(
                name: "RTP send",
                purpose: "numbers packets and sends them, with telephone events and RTCP",
                inputs: [.packets(isRequired: false)]
            )
        )
    }

    /// The session's counters as of the last tick.
    ///
    /// Thread: any.
    package var statistics: RTPStatistics { leg.statistics.value }

    /// When the sound of the packet sent last was captured.
    ///
    /// Thread: any.
    package var senderAnchor: SenderAnchor { leg.senderAnchor.value }

    package override func handle(_ command: RTPSendCommand) {
        hasKeys = true
        switch command {
        case .key(let code, let duration, let gap):
            let isQueued = events.enqueue(code, duration: .nanoseconds(duration), gap: .nanoseconds(gap))
            if !isQueued { keyPlaces.give(1) }
        case .pause(let duration):
            if !events.enqueuePause(.nanoseconds(duration)) { keyPlaces.give(1) }
        case .press(let code):
            if !events.start(code) { keyPlaces.give(1) }
        case .releaseKey: events.stop()
        case .redundancy(let count): generations = min(max(count, 0), REDSender.maximumGenerations)
        case .formats(let formats):
            if formats.eventClockRate != self.formats.eventClockRate { redundancy.forgetEvents() }
            self.formats = formats
            guard formats.eventPayloadType == nil else { return events.change(clockRate: formats.eventClockRate) }
            // What waits can be sent no more.
            keyPlaces.give(events.queuedCount)
            events = TelephoneEventSender(clockRate: formats.eventClockRate)
            dropsAudio = false
        case .leave(let now):
            guard !hasLeft else { return }
            hasLeft = true
            leg.sendGoodbye(at: now)
            leg.publishStatistics()
        }
    }

    package override func process(_ io: borrowing FilterIO) {
        guard !hasLeft else { return }
        let now = io.time
        sendEvents(at: now)
        let packets = io.inputPackets()
        for index in 0..<packets.count where !dropsAudio {
            let header = packets.header(index)
            let age = Int32(bitPattern: timestamp &- header.rtpTimestamp)
            let ageNanoseconds = Int64(age) &* 1_000_000_000 / Int64(formats.clockRate)
            let captured = MediaTime(nanoseconds: now.nanoseconds &- ageNanoseconds)
            let fields = PayloadHeader(
                payloadType: header.payloadType,
                timestamp: header.rtpTimestamp,
                isMarked: header.isMarked
            )
            send(fields, packets.payload(index), at: now, captured: captured)
        }
        let tick = io.tickDuration.nanoseconds
        timestamp &+= UInt32(truncatingIfNeeded: tick &* Int64(formats.clockRate) / 1_000_000_000)
        eventTimestamp &+= UInt32(truncatingIfNeeded: tick &* Int64(formats.eventClockRate) / 1_000_000_000)
        leg.sendControlIfDue(at: now)
        leg.publishStatistics()
    }

    private func send(_ header: PayloadHeader, _ payload: Span<UInt8>, at now: MediaTime, captured: MediaTime) {
        if let redPayloadType = formats.redPayloadType {
            let memory = leg.port.payload
            var bytes = memory.mutableSpan
            let byteCount = redundancy.pack(
                header,
                payload: payload,
                generations: generations,
                // On another clock, how far back the event lies cannot be told.
                eventPayloadType: formats.eventClockRate == formats.clockRate ? formats.eventPayloadType : nil,
                into: &bytes
            )
            if byteCount > 0 {
                var header = header
                header.payloadType = redPayloadType
                let packed = UnsafeBufferPointer(rebasing: memory[..<byteCount]).span
                leg.send(header, packed, clockRate: formats.clockRate, at: now, captured: captured)
                return
            }
        }
        leg.send(header, payload, clockRate: formats.clockRate, at: now, captured: captured)
    }

    private func sendEvents(at now: MediaTime) {
        guard let payloadType = formats.eventPayloadType else { return }
        guard hasKeys else { return }
        hasKeys = !events.isIdle
        guard hasKeys else {
            dropsAudio = false
            return joinAudio()
        }
        let waiting = events.queuedCount
        var bytes = InlineArray<4, UInt8>(repeating: 0)
        while let packet = events.next(at: eventTimestamp) {
            var payload = bytes.mutableSpan
            packet.event.serialize(into: &payload)
            if sendRedundantly(packet, bytes.span, payloadType, at: now) { continue }
            let header = PayloadHeader(
                payloadType: payloadType,
                timestamp: packet.timestamp,
                isMarked: packet.isMarked
            )
            leg.send(header, bytes.span, clockRate: 0, at: now)
        }
        if events.queuedCount < waiting { keyPlaces.give(waiting &- events.queuedCount) }
        dropsAudio = events.isSending
    }

    /// Brings the time line of telephone events onto that of the audio, where both have one clock (RFC 4733, section 2.1): a
    /// codec of another clock may have been sent before.
    private func joinAudio() {
        guard formats.eventClockRate == formats.clockRate, eventTimestamp != timestamp else { return }
        eventTimestamp = timestamp
        redundancy.forgetEvents()
    }

    /// Sends the event with the ends of those before it; answers false when it is to go alone.
    private func sendRedundantly(
        _ packet: TelephoneEventSender.Packet,
        _ payload: Span<UInt8>,
        _ payloadType: UInt8,
        at now: MediaTime
    ) -> Bool {
        guard let redPayloadType = formats.redPayloadType else { return false }
        let memory = leg.port.payload
        var bytes = memory.mutableSpan
        let byteCount = redundancy.pack(packet, payload: payload, payloadType: payloadType, into: &bytes)
        guard byteCount > 0 else { return false }
        let header = PayloadHeader(
            payloadType: redPayloadType,
            timestamp: packet.timestamp,
            isMarked: packet.isMarked
        )
        leg.send(header, UnsafeBufferPointer(rebasing: memory[..<byteCount]).span, clockRate: 0, at: now)
        return true
    }
}
