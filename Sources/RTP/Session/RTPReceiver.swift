internal import CallBasics

/// The receive path of a session: whose packet it is, where it stands among the others, and what is to be done with it.
///
/// Thread: media.
/// Source: RFC 3550, sections 6.4.1, 8.2 and A.1
struct RTPReceiver {
    /// The source that is heard.
    struct Source: BitwiseCopyable {
        let ssrc: UInt32
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
    /// What is known of its packets: large, so it stands beside what is asked for each of them.
    var statistics = ReceiverStatistics()
    /// Whether the last stray was of no known type: the packet that continues it makes it count.
    private var isStrayUnknown = false

    init(_ policy: RemoteSourcePolicy) {
        self.policy = policy
    }

    /// The source that reports are about: a valid one that has not left.
    var heardSource: Source? {
        guard let source, source.leftAt == nil, statistics.isValid else { return nil }
        return source
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
        let (kind, clockRate) = payloads.content(of: header.payloadType)
        let mediaClockRate = mediaClockRate(kind, clockRate, payload)
        let verdict = statistics.receive(header, clockRate: mediaClockRate, arrival: arrival)
        if verdict != .badSequence { source?.lastArrival = arrival }
        // Some say goodbye at a hold and go on; what was under way says nothing.
        if verdict == .inOrder, let leftAt = source?.leftAt, arrival.nanoseconds(since: leftAt) > Self.underWay {
            source?.leftAt = nil
        }
        switch verdict {
        case .duplicate:
            return .ignored(.duplicate)
        case .badSequence:
            isStrayUnknown = kind == .unknown
            return .stray(
                RTPReception.Media(
                    packet: packet,
                    kind: kind,
                    clockRate: clockRate,
                    verdict: verdict,
                    isNewSource: false
                )
            )
        case .restarted:
            if isStrayUnknown { counters.unknownPayloadTypeCount &+= 1 }
        case .inOrder, .reordered, .probation: break
        }
        if kind == .unknown { counters.unknownPayloadTypeCount &+= 1 }
        let isNewSource = source?.isHandedOn == false
        source?.isHandedOn = true
        return .media(
            RTPReception.Media(
                packet: packet,
                kind: kind,
                clockRate: clockRate,
                verdict: verdict,
                isNewSource: isNewSource
            )
        )
    }

    /// How fast time stamps count that tell when the content was made; 0 where they do not.
    private mutating func mediaClockRate(
        _ kind: PayloadMap.Kind,
        _ clockRate: UInt32,
        _ payload: Span<UInt8>
    ) -> UInt32 {
        switch kind {
        case .audio: return clockRate
        case .redundantAudio:
            guard let type = REDPayload.primaryPayloadType(of: payload) else { return 0 }
            let primary = payloads.content(of: type)
            return primary.kind == .audio ? primary.clockRate : 0
        case .unknown, .telephoneEvent, .comfortNoise: return 0
        }
    }

    /// Nobody is heard any more: signalling has named another than whom was merely learnt.
    mutating func forgetSource(counters: inout RTPStatistics) {
        if statistics.isValid { counters.add(statistics) }
        counters.remoteMetrics = nil
        source = nil
        statistics = ReceiverStatistics()
    }

    /// Another source is heard from now on.
    private mutating func adopt(_ ssrc: UInt32, arrival: MediaTime, counters: inout RTPStatistics) {
        if let former = source, statistics.isValid {
            counters.sourceChangeCount &+= 1
            // The same source from another address goes on where it was.
            guard former.ssrc != ssrc else {
                source?.leftAt = nil
                return
            }
            counters.add(statistics)
        }
        counters.remoteMetrics = nil
        source = Source(ssrc: ssrc, lastArrival: arrival)
        statistics = ReceiverStatistics()
    }
}
