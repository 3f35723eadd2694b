package import CallBasics
package import RTP

/// One leg's session and port, shared by the filter that receives, the one that plays, and the one that sends.
///
/// Thread: media. The filters run in one thread, so nothing here is locked.
package final class RTPLeg {
    let session: RTPSession
    let port: RTPPort
    /// What the playout tells the session.
    let feedback = PlayoutFeedback()
    /// What signalling has changed, for the command `update` of the receive filter.
    let update = HandOff<LegUpdate>()
    /// Whether the session's counters have changed since they were published; as the session's parts, not checked.
    @exclusivity(unchecked) private var hasNews = false
    /// The session's counters as of the last tick.
    ///
    /// Thread: read by any.
    let statistics = LatestValue(RTPStatistics())
    /// When the sound of the packet sent last was captured.
    ///
    /// Thread: read by any.
    let senderAnchor = LatestValue(SenderAnchor())

    /// A leg of `session` over `port`.
    package init(session: RTPSession, port: RTPPort) {
        self.session = session
        self.port = port
    }

    /// Follows what signalling has changed, at the edge of a tick.
    func takeUpdate(at now: MediaTime) {
        guard let offered = update.take() else { return }
        offered._withUnsafeGuaranteedRef { update in
            session.payloads = update.payloads
            session.voicePath = update.voicePath
            session.update(update.addresses, at: now)
        }
        // Whom signalling names may be another than who is let through while a flood lasts.
        port.accept(only: nil)
        update.retire(offered)
    }

    // MARK: Receiving

    /// Takes the next datagram of `side`, and hands on what the session makes of it.
    ///
    /// - Returns: Whether there was a datagram.
    @inline(__always)
    func receive(
        from side: RTPPort.Side,
        at now: MediaTime,
        _ body: (Span<UInt8>, RTPReception, MediaTime) -> Void
    ) -> Bool {
        port.receive(from: side, at: now) { bytes, source, arrival in
            hasNews = true
            body(bytes, session.receive(bytes, from: source, arrival: arrival), arrival)
        }
    }

    // MARK: Sending

    /// Numbers and sends one packet.
    ///
    /// - Parameters:
    ///   - header: Type, marker, and the time stamp on the stream's own time line, to which the session adds its offset.
    ///   - payload: The payload.
    ///   - clockRate: How fast the time stamp counts; 0 for telephone events.
    ///   - now: The tick's start.
    ///   - captured: When the payload's first sample was captured; nil for telephone events.
    func send(
        _ header: PayloadHeader,
        _ payload: Span<UInt8>,
        clockRate: UInt32,
        at now: MediaTime,
        captured: MediaTime? = nil
    ) {
        guard let destination = session.destination else { return }
        let memory = port.bytes
        var packet = memory.mutableSpan
        let byteCount = session.makePacket(
            payloadType: header.payloadType,
            isMarked: header.isMarked,
            timestamp: header.timestamp,
            payload: payload,
            clockRate: clockRate,
            at: now,
            into: &packet
        )
        guard byteCount > 0 else { return }
        if let captured {
            senderAnchor.publish(SenderAnchor(timestamp: port.bytes.span.uint32(at: 4), time: captured))
        }
        hasNews = true
        port.send(byteCount, from: .media, to: destination, at: now)
    }

    /// Sends RTCP when it is due.
    func sendControlIfDue(at now: MediaTime) {
        guard !session.waitsForReport(at: now), session.controlDestination != nil else { return }
        takePlayoutReport()
        let memory = port.bytes
        var packet = memory.mutableSpan
        sendControl(session.makeRTCP(at: now, into: &packet), at: now)
    }

    /// Tells the other side that this one leaves (RTCP BYE).
    func sendGoodbye(at now: MediaTime) {
        takePlayoutReport()
        let memory = port.bytes
        var packet = memory.mutableSpan
        sendControl(session.makeGoodbye(at: now, into: &packet), at: now)
    }

    /// Makes the counters readable from other threads, if they have changed.
    func publishStatistics() {
        if feedback.hasFates { takePlayoutReport() }
        guard hasNews else { return }
        hasNews = false
        statistics.publish { session.writeStatistics(to: &$0) }
    }

    /// Tells the session what the playout did: at once what became of packets, the rest when a report is made.
    private func takePlayoutReport() {
        feedback.hasFates = false
        hasNews = true
        session.take(&feedback.report)
    }

    private func sendControl(_ byteCount: Int, at now: MediaTime) {
        guard byteCount > 0, let destination = session.controlDestination else { return }
        hasNews = true
        // From the port that it shares: who hears this side knows it by that address.
        port.send(byteCount, from: session.sharesPort ? .media : .control, to: destination, at: now)
    }
}

/// What signalling changes of a running leg.
final class LegUpdate: Sendable {
    let payloads: PayloadMap
    let addresses: RTPAddresses
    let voicePath: VoicePath

    init(payloads: PayloadMap, addresses: RTPAddresses, voicePath: VoicePath) {
        self.payloads = payloads
        self.addresses = addresses
        self.voicePath = voicePath
    }
}

/// When a sound was captured, and the RTP timestamp that it was sent with.
package struct SenderAnchor: Sendable, BitwiseCopyable {
    /// The timestamp on the wire; nil before anything was sent.
    package private(set) var timestamp: UInt32?
    /// When the packet's first sample was captured.
    package private(set) var time = MediaTime.zero

    init(timestamp: UInt32? = nil, time: MediaTime = .zero) {
        self.timestamp = timestamp
        self.time = time
    }
}
