/// The counters of one RTP session, as a report reads them.
///
/// Units: packets and bytes since the session began; jitter and round trip in nanoseconds.
public struct RTPStatistics: Hashable, Sendable, BitwiseCopyable {
    /// The source that this side sends as.
    public var localSSRC: UInt32 = 0
    /// The source that is heard now; nil before the first packet.
    public var remoteSSRC: UInt32?

    /// RTP packets sent.
    public var sentPacketCount: UInt64 = 0
    /// Payload bytes sent.
    public var sentPayloadByteCount: UInt64 = 0
    /// RTCP datagrams sent.
    public var sentControlCount: UInt64 = 0

    /// RTP packets received from sources that were heard, duplicates included.
    public var receivedPacketCount: UInt64 = 0
    /// Payload bytes received in them.
    public var receivedPayloadByteCount: UInt64 = 0
    /// Packets that sequence numbers show missing.
    public var lostCount: UInt64 = 0
    /// Packets that came more than once.
    public var duplicateCount: UInt64 = 0
    /// Packets that came after a newer one.
    public var reorderedCount: UInt64 = 0
    /// Packets with a sequence number far from all others.
    public var badSequenceCount: UInt64 = 0
    /// Times that the source began a new sequence.
    public var restartCount: UInt64 = 0
    /// Interarrival jitter of the current source, in ns.
    public var jitterNanoseconds: Int64 = 0
    /// RTCP datagrams received and understood.
    public var receivedControlCount: UInt64 = 0

    /// Packets of a second source while the first was alive.
    public var foreignPacketCount: UInt64 = 0
    /// Times that another source or source address took over.
    public var sourceChangeCount: UInt64 = 0
    /// RTP packets with a payload type that was not announced.
    public var unknownPayloadTypeCount: UInt64 = 0
    /// Datagrams that are neither valid RTP nor valid RTCP.
    public var malformedCount: UInt64 = 0
    /// Packets of a codec without a byte of sound.
    public var emptyPayloadCount: UInt64 = 0
    /// Packets of redundant audio (RED) whose blocks could not be read.
    public var malformedREDCount: UInt64 = 0
    /// Packets that had not come when a later one brought a copy of them (RED).
    public var redundantCount: UInt64 = 0
    /// Times that somebody else used this side's SSRC.
    public var collisionCount: UInt64 = 0
    /// Packets of this side's own that came back.
    public var loopedCount: UInt64 = 0

    /// Whether the peer has reported on what it receives from here; without that the next five say nothing.
    public var hasRemoteReport = false
    /// Loss that the peer saw between its last two reports, 0 to 1.
    public var remoteFractionLost: Double = 0
    /// Runs of losses that the peer saw in that time; nil when it did not tell them (RFC 3611, section 4.1).
    public var remoteLossRuns: LossRuns?
    /// Packets that the peer has lost in all; negative when duplicates outnumber losses.
    public var remoteCumulativeLost: Int32 = 0
    /// Jitter that the peer sees, in units of the clock rate that this side sends with.
    public var remoteJitter: UInt32 = 0
    /// The last measured round trip, in ns; nil until the peer has answered a sender report.
    public var roundTripNanoseconds: Int64?

    /// What became of the current source's packets, in the order of their numbers.
    public var reception = ReceptionHistory()
    /// How the peer hears this side, by its own account (RFC 3611, section 4.7).
    public var remoteMetrics: RTCPVoIPMetrics?
    /// Reports that cannot be true: more lost than was sent, answers to what was never asked, values out of range.
    ///
    /// Nothing of them is believed.
    public var implausibleReportCount: UInt64 = 0

    /// Counters at zero.
    public init() {}

    /// The last measured round trip.
    public var roundTrip: Duration? { roundTripNanoseconds.map { .nanoseconds($0) } }
}
