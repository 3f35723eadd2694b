internal import CallBasics

/// The receive path of a session: whose packet it is, where it stands among the others, and what is to be done with it.
///
/// Thread: media.
/// Source: RFC 3550, sections 6.4.1, 8.2 and A.1
struct RTPReceiver {
    /// The source that is heard.
    struct Source: BitwiseCopyable {
        let ssrc: UInt32
        var statistics = ReceiverStatistics()
        var lastArrival: MediaTime
        /// When it said goodbye.
        var leftAt: MediaTime?
        var isHandedOn = false
    }

    var policy: RemoteSourcePolicy
    /// What each payload type holds.
    var payloads = PayloadMap()
    /// The source that is heard; nil before its first packet.
    var source: Source?

    init(_ policy: RemoteSourcePolicy) {
        self.policy = policy
    }

    /// The source that reports are about: a valid one that has not left.
    var heardSource: Source? { source.flatMap { $0.statistics.isValid && $0.leftAt == nil ? $0 : nil } }

    /// The SSRC of `heardSource`, without a copy of all that is known of it.
    var heardSSRC: UInt32? {
        guard source?.statistics.isValid == true, source?.leftAt == nil else { return nil }
        return source?.ssrc
    }

    /// Packets may come so much later than the goodbye that was sent after them.
    private static var underWay: Int64 { 200_000_000 }

    /// Judges one RTP packet that is not of this side's own SSRC.
    ///
    /// - Parameters:
    ///   - packet: The packet.
    ///   - payload: Its payload, of which only the type of a redundant packet's primary block is looked at.
    ///   - address: Who sent it.
    ///   - arrival: When it came.
    ///   - counters: Where it is counted.
    /// - Returns: What to do with it.
    mutating func receive(
        _ packet: RTPPacket,
        payload: Span<UInt8>,
        from address: SocketAddress,
        arrival: MediaTime,
        counters: inout RTPStatistics
    ) -> RTPReception {
        let header = packet.header
        switch policy.admit(header.ssrc, header.sequenceNumber, from: address, at: arrival) {
        case .refused(let refusal):
            counters.count(refusal)
            return .ignored(.refused(refusal))
        case .begins:
            adopt(header.ssrc, arrival: arrival, counters: &counters)
        case .accepted:
            break
        }
        let kind = payloads.kind(of: header.payloadType)
        let clockRate = mediaClockRate(header.payloadType, kind, payload)
        // In place: a source is a record of a thousand packets.
        guard let verdict = source?.statistics.receive(header, clockRate: clockRate, arrival: arrival) else {
            return .ignored(.malformed)
        }
        if verdict != .badSequence { source?.lastArrival = arrival }
        // Some say goodbye at a hold and go on; what was under way says nothing.
        if verdict == .inOrder, let leftAt = source?.leftAt, arrival.nanoseconds(since: leftAt) > Self.underWay {
            source?.leftAt = nil
        }
        switch verdict {
        case .duplicate: return .ignored(.duplicate)
        case .badSequence: return .ignored(.badSequence)
        case .inOrder, .reordered, .restarted, .probation: break
        }
        if kind == .unknown {
            counters.unknownPayloadTypeCount &+= 1
        } else {
            counters.receivedPayloadByteCount &+= UInt64(packet.payloadByteCount)
        }
        let isNewSource = source?.isHandedOn == false
        source?.isHandedOn = true
        return .media(RTPReception.Media(packet: packet, kind: kind, verdict: verdict, isNewSource: isNewSource))
    }

    /// How fast time stamps count that tell when the content was made; 0 where they do not.
    private func mediaClockRate(_ payloadType: UInt8, _ kind: PayloadMap.Kind, _ payload: Span<UInt8>) -> UInt32 {
        switch kind {
        case .audio: return payloads.clockRate(of: payloadType)
        case .redundantAudio:
            guard let primary = REDPayload.primaryPayloadType(of: payload), payloads.kind(of: primary) == .audio else {
                return 0
            }
            return payloads.clockRate(of: primary)
        case .unknown, .telephoneEvent, .comfortNoise: return 0
        }
    }

    /// Another source is heard from now on.
    private mutating func adopt(_ ssrc: UInt32, arrival: MediaTime, counters: inout RTPStatistics) {
        if let former = source, former.statistics.isValid {
            counters.sourceChangeCount &+= 1
            // The same source from another address goes on where it was.
            guard former.ssrc != ssrc else {
                source?.leftAt = nil
                return
            }
            counters.add(former.statistics)
        }
        counters.remoteMetrics = nil
        source = Source(ssrc: ssrc, lastArrival: arrival)
    }
}
