package import CallBasics

/// The counters of one RTP session, as a report reads them.
///
/// Units: packets and bytes since the session began; jitter and round trip in nanoseconds.
package struct RTPStatistics: Hashable, Sendable, BitwiseCopyable {
    /// The source that this side sends as.
    package var localSSRC: UInt32 = 0
    /// The source that is heard now; nil before the first packet.
    package var remoteSSRC: UInt32?
    /// The address that is heard now; nil before it is sure.
    package var remoteAddress: SocketAddress?
    /// Whether it has said goodbye (RTCP BYE), and sends no more.
    package var hasSourceLeft = false

    /// RTP packets sent.
    package var sentPacketCount: UInt64 = 0
    /// Payload bytes sent.
    package var sentPayloadByteCount: UInt64 = 0
    /// RTCP datagrams sent.
    package var sentControlCount: UInt64 = 0

    /// RTP packets received from sources that were heard, duplicates included.
    package var receivedPacketCount: UInt64 = 0
    /// Packets that sequence numbers show missing.
    package var lostCount: UInt64 = 0
    /// Packets that came more than once.
    package var duplicateCount: UInt64 = 0
    /// Packets that came after a newer one.
    package var reorderedCount: UInt64 = 0
    /// Packets with a sequence number far from all others.
    package var badSequenceCount: UInt64 = 0
    /// Times that the source began a new sequence.
    package var restartCount: UInt64 = 0
    /// Interarrival jitter of the current source, in ns.
    package var jitterNanoseconds: Int64 = 0
    /// RTCP datagrams received and understood.
    package var receivedControlCount: UInt64 = 0

    /// RTP packets from another address than the one that is heard.
    package var otherAddressCount: UInt64 = 0
    /// RTP packets from hosts that signalling did not name, while the named one had time to begin.
    package var unnamedHostCount: UInt64 = 0
    /// RTP packets of an SSRC that had given way to another.
    package var formerSourceCount: UInt64 = 0
    /// RTCP datagrams from another address than the source's, or of another source.
    package var otherControlCount: UInt64 = 0
    /// Times that another source or source address took over.
    package var sourceChangeCount: UInt64 = 0
    /// RTP packets with a payload type that was not announced.
    package var unknownPayloadTypeCount: UInt64 = 0
    /// Datagrams of STUN and DTLS, whoever sent them.
    package var otherProtocolCount: UInt64 = 0
    /// Datagrams that are neither valid RTP nor valid RTCP.
    package var malformedCount: UInt64 = 0
    /// Packets of a codec without a byte of sound.
    package var emptyPayloadCount: UInt64 = 0
    /// Packets of redundant audio (RED) whose blocks could not be read.
    package var malformedREDCount: UInt64 = 0
    /// Packets of telephone events that are too short or have no duration.
    package var malformedEventCount: UInt64 = 0
    /// Packets that had not come when a later one brought a copy of them (RED).
    package var redundantCount: UInt64 = 0
    /// Times that somebody else used this side's SSRC.
    package var collisionCount: UInt64 = 0
    /// Packets of this side's own that came back.
    package var loopedCount: UInt64 = 0

    /// Whether the peer has reported on what it receives from here; without that the next five say nothing.
    package var hasRemoteReport = false
    /// Loss that the peer saw between its last two reports, 0 to 1.
    package var remoteFractionLost: Double = 0
    /// Runs of losses that the peer saw in that time; nil when it did not tell them (RFC 3611, section 4.1).
    package var remoteLossRuns: LossRuns?
    /// Packets that the peer has lost in all; negative when duplicates outnumber losses.
    package var remoteCumulativeLost: Int32 = 0
    /// Jitter that the peer sees, in units of the clock rate that this side sends with.
    package var remoteJitter: UInt32 = 0
    /// The last measured round trip, in ns; nil until the peer has answered a sender report.
    package var roundTripNanoseconds: Int64?

    /// What a packet of the current source lasts, in ns; 0 before it is known.
    package var packetNanoseconds: Int64 = 0
    /// What became of the current source's packets, in the order of their numbers.
    package var reception = RecentReception()
    /// How the peer hears this side, by its own account (RFC 3611, section 4.7).
    package var remoteMetrics: RTCPVoIPMetrics?
    /// Reports that cannot be true: more lost than was sent, answers to what was never asked, values out of range.
    ///
    /// Nothing of them is believed.
    package var implausibleReportCount: UInt64 = 0

    /// Counters at zero.
    package init() {}

    /// The last measured round trip.
    package var roundTrip: Duration? { roundTripNanoseconds.map { .nanoseconds($0) } }

    /// Packets and RTCP datagrams of others than the source that is heard.
    package var foreignPacketCount: UInt64 {
        otherAddressCount &+ unnamedHostCount &+ formerSourceCount &+ otherControlCount
    }

    mutating func count(_ refusal: RemoteSourcePolicy.Refusal) {
        switch refusal {
        case .otherAddress: otherAddressCount &+= 1
        case .unnamedHost: unnamedHostCount &+= 1
        case .formerSource: formerSourceCount &+= 1
        case .otherControl: otherControlCount &+= 1
        }
    }

    /// Tells of the source that is heard now, of which `add` has told nothing.
    mutating func tell(_ source: borrowing ReceiverStatistics) {
        reception = source.record.recent
        packetNanoseconds = source.packetNanoseconds
        jitterNanoseconds = source.jitterDuration.nanoseconds
        add(source)
    }

    /// Adds the packets of a source.
    mutating func add(_ source: borrowing ReceiverStatistics) {
        receivedPacketCount &+= source.receivedCount
        lostCount &+= source.lostCount
        duplicateCount &+= source.duplicateCount
        reorderedCount &+= source.reorderedCount
        badSequenceCount &+= source.badSequenceCount
        restartCount &+= source.restartCount
    }
}
