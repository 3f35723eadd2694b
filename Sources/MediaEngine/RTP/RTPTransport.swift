/// One leg's session, its sockets and its keys, shared by the filter that sends and the one that receives.
///
/// Thread: media. The two filters run in one thread, so nothing here is locked.
public final class RTPTransport: @unchecked Sendable {
    /// The session, with its SSRC, counters and RTCP.
    public let session: RTPSession
    /// The codec's payload type.
    public let payloadType: UInt8
    /// The payload type of telephone events; nil sends and understands none.
    public let telephoneEventPayloadType: UInt8?
    /// The payload type of redundant audio (RFC 2198); nil sends and understands none.
    public let redPayloadType: UInt8?
    /// The payload type of comfort noise (RFC 3389), and the clock rate of its time stamps; nil understands none.
    public let comfortNoise: (payloadType: UInt8, clockRate: UInt32)?

    let clockRate: UInt32
    /// Whether the session's counters have changed since they were published.
    private var hasNews = false
    private let link: any DatagramLink
    private let controlLink: (any DatagramLink)?
    private let localAddress: SocketAddress
    private let tap: PacketTap?
    private let memory: PacketScratch
    private let published = LatestValue(RTPStatistics())
    private let publishedAnchor = LatestValue(SenderAnchor())
    // One thread owns these, and no access lasts longer than a call, so checking each would be a waste of the tick.
    // Last, because they are long: what every tick asks lies together before them.
    /// The clock rate of each payload type that holds sound; 0 for others.
    @exclusivity(unchecked) private var audioClockRates = InlineArray<128, UInt32>(repeating: 0)
    @exclusivity(unchecked) var redReceiver = REDReceiver()
    @exclusivity(unchecked) var eventReceiver = TelephoneEventReceiver()
    @exclusivity(unchecked) var eventSender: TelephoneEventSender

    /// A transport over `link`, and over `controlLink` for RTCP when it has a port of its own.
    ///
    /// - Parameters:
    ///   - session: The session; payload types are announced to it here.
    ///   - link: Where RTP goes, and RTCP too when there is no `controlLink`.
    ///   - controlLink: Where RTCP goes.
    ///   - localAddress: The address that captures show as ours.
    ///   - payloadType: The codec's payload type.
    ///   - clockRate: The codec's clock rate, in Hz.
    ///   - acceptedPayloadTypes: Those of further codecs that are received, each with its clock rate.
    ///   - telephoneEventPayloadType: The payload type of telephone events, at the same clock rate.
    ///   - redPayloadType: The payload type of redundant audio, at the same clock rate.
    ///   - comfortNoise: The payload type of comfort noise, which is only received, and its clock rate.
    ///   - tap: Gets a copy of every packet, both ways.
    ///   - scratch: Where packets are made and taken; legs of one media thread may share it.
    public init(
        session: RTPSession,
        link: any DatagramLink,
        controlLink: (any DatagramLink)? = nil,
        localAddress: SocketAddress,
        payloadType: UInt8,
        clockRate: UInt32,
        acceptedPayloadTypes: [(payloadType: UInt8, clockRate: UInt32)] = [],
        telephoneEventPayloadType: UInt8?,
        redPayloadType: UInt8? = nil,
        comfortNoise: (payloadType: UInt8, clockRate: UInt32)? = nil,
        tap: PacketTap? = nil,
        scratch: PacketScratch = PacketScratch()
    ) {
        self.session = session
        self.link = link
        self.controlLink = controlLink
        self.localAddress = localAddress
        self.payloadType = payloadType
        self.clockRate = clockRate
        self.telephoneEventPayloadType = telephoneEventPayloadType
        self.redPayloadType = redPayloadType
        self.comfortNoise = comfortNoise
        self.tap = tap
        eventSender = TelephoneEventSender(clockRate: clockRate)
        memory = scratch
        for audio in acceptedPayloadTypes + [(payloadType, clockRate)] {
            session.announce(payloadType: audio.payloadType, clockRate: audio.clockRate)
            audioClockRates[Int(audio.payloadType & 0x7F)] = audio.clockRate
        }
        if let telephoneEventPayloadType {
            session.announce(payloadType: telephoneEventPayloadType, clockRate: clockRate, measuresJitter: false)
        }
        if let comfortNoise {
            session.announce(
                payloadType: comfortNoise.payloadType,
                clockRate: comfortNoise.clockRate,
                measuresJitter: false
            )
        }
        if let redPayloadType { session.announceRED(payloadType: redPayloadType, clockRate: clockRate) }
    }

    /// The session's counters as of the last tick.
    ///
    /// Thread: any.
    public var statistics: RTPStatistics { published.value }

    /// When the sound of the packet sent last was captured.
    ///
    /// Thread: any.
    public var senderAnchor: SenderAnchor { publishedAnchor.value }

    /// The clock rate of the sound in packets of this type; 0 when they hold something else.
    func audioClockRate(of payloadType: UInt8) -> UInt32 { audioClockRates[Int(payloadType & 0x7F)] }

    /// Where a payload is put together before it is sent.
    var payloadScratch: UnsafeMutableBufferPointer<UInt8> { memory.payload }

    private var scratch: UnsafeMutableBufferPointer<UInt8> { memory.bytes }

    /// Numbers and sends one packet.
    ///
    /// - Parameters:
    ///   - payloadType: The payload type.
    ///   - isMarked: The marker bit.
    ///   - timestamp: On the stream's own time line; the session adds its offset.
    ///   - payload: The payload.
    ///   - now: The tick's start.
    ///   - captured: When the payload's first sample was captured; nil for telephone events.
    func send(
        payloadType: UInt8,
        isMarked: Bool,
        timestamp: UInt32,
        payload: Span<UInt8>,
        at now: MediaTime,
        captured: MediaTime? = nil
    ) {
        guard let destination = session.destination else { return }
        var packet = scratch.mutableSpan
        let byteCount = session.makePacket(
            payloadType: payloadType,
            isMarked: isMarked,
            timestamp: timestamp,
            payload: payload,
            at: now,
            into: &packet
        )
        guard byteCount > 0 else { return }
        if let captured { publishedAnchor.publish(SenderAnchor(timestamp: wireTimestamp, time: captured)) }
        transmit(byteCount, over: link, to: destination, at: now)
    }

    /// The timestamp of the packet in `scratch`, with the session's offset.
    private var wireTimestamp: UInt32 {
        UInt32(scratch[4]) << 24 | UInt32(scratch[5]) << 16 | UInt32(scratch[6]) << 8 | UInt32(scratch[7])
    }

    /// Sends RTCP when it is due.
    func sendControlIfDue(at now: MediaTime) {
        guard session.controlDestination != nil else { return }
        var packet = scratch.mutableSpan
        let byteCount = session.makeRTCP(at: now, into: &packet)
        transmitControl(byteCount, at: now)
    }

    /// Tells the other side that this one leaves (RTCP BYE).
    func sendGoodbye(at now: MediaTime) {
        var packet = scratch.mutableSpan
        let byteCount = session.makeGoodbye(at: now, into: &packet)
        transmitControl(byteCount, at: now)
    }

    /// Where datagrams come from.
    enum Port {
        /// RTP's port, which RTCP may share.
        case media
        /// RTCP's own port.
        case control
    }

    /// Takes the next datagram of `port`, and hands on what the session makes of it.
    ///
    /// - Parameters:
    ///   - port: Which port; there may be none for RTCP alone.
    ///   - now: The tick's start.
    ///   - body: Gets the datagram's bytes, what they are, and when they arrived.
    /// - Returns: Whether there was a datagram.
    func receive(
        from port: Port,
        at now: MediaTime,
        _ body: (Span<UInt8>, RTPReception, MediaTime) -> Void
    ) -> Bool {
        guard port == .control else { return take(from: link, at: now, body) }
        guard let controlLink else { return false }
        return take(from: controlLink, at: now, body)
    }

    /// Makes the counters readable from other threads, if they have changed.
    func publishStatistics() {
        guard hasNews else { return }
        hasNews = false
        published.publish { session.writeStatistics(to: &$0) }
    }

    /// Hears from the playout that the packet came too late, or did not fit.
    func noteDiscard(_ sequenceNumber: UInt16) {
        session.reception.discard(sequenceNumber)
        hasNews = true
    }

    /// Hears from the playout that the packet, which is lost, was rebuilt from its successor.
    func noteRecovery(_ sequenceNumber: UInt16) {
        session.reception.recover(sequenceNumber)
        hasNews = true
    }

    private func take(
        from link: any DatagramLink,
        at now: MediaTime,
        _ body: (Span<UInt8>, RTPReception, MediaTime) -> Void
    ) -> Bool {
        var buffer = scratch.mutableSpan
        guard let datagram = link.receive(into: &buffer, at: now) else { return false }
        hasNews = true
        // What was cut off cannot be whole: handing on nothing makes the session count it as malformed.
        let byteCount = datagram.byteCount <= buffer.count ? datagram.byteCount : 0
        let bytes = UnsafeBufferPointer(rebasing: scratch[..<byteCount]).span
        tap?.record(bytes, from: datagram.source, to: localAddress, at: datagram.arrival)
        body(bytes, session.receive(bytes, from: datagram.source, arrival: datagram.arrival), datagram.arrival)
        return true
    }

    private func transmitControl(_ byteCount: Int, at now: MediaTime) {
        guard byteCount > 0, let destination = session.controlDestination else { return }
        transmit(byteCount, over: controlLink ?? link, to: destination, at: now)
    }

    private func transmit(
        _ byteCount: Int,
        over link: any DatagramLink,
        to destination: SocketAddress,
        at now: MediaTime
    ) {
        hasNews = true
        let bytes = UnsafeBufferPointer(rebasing: scratch[..<byteCount]).span
        link.send(bytes, to: destination, at: now)
        tap?.record(bytes, from: localAddress, to: destination, at: now)
    }
}

/// When a sound was captured, and the RTP timestamp that it was sent with.
public struct SenderAnchor: Sendable, BitwiseCopyable {
    /// The timestamp on the wire; nil before anything was sent.
    public private(set) var timestamp: UInt32?
    /// When the packet's first sample was captured.
    public private(set) var time = MediaTime.zero

    init(timestamp: UInt32? = nil, time: MediaTime = .zero) {
        self.timestamp = timestamp
        self.time = time
    }
}
