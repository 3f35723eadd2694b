/// What one leg of a call sent and received: counters, read where they are kept.
///
/// Units: ms where the name says so.
public struct LegReport: Sendable, Hashable {
    /// What was sent.
    public struct Sent: Sendable, Hashable {
        /// RTP packets.
        public var packets: Int
        /// Bytes of their payloads.
        public var bytes: Int
        /// Answers from the network that a packet did not arrive (ICMP), as that nobody listens on its port; and packets that
        /// have no way from this machine.
        public var unreachable: Int
    }

    /// What was received.
    public struct Received: Sendable, Hashable {
        /// RTP packets of the source that was heard, duplicates not among them.
        public var packets: Int
        /// Packets that never came.
        public var lost: Int
        /// Packets that came after their time.
        public var late: Int
        /// Packets that came twice.
        public var duplicate: Int
        /// Packets that came after one sent later.
        public var reordered: Int
        /// Sound invented in place of packets that were lost, late or corrupt.
        public var concealedMs: Double
        /// Packets rebuilt from the copy in their successor.
        public var fecRecovered: Int
        /// Packets that had not come when a later one brought a copy (RED).
        public var redundant: Int
        /// Times that the other side changed to another codec that is accepted.
        public var codecChanges: Int
        /// Packets of comfort noise, sent in place of sound (RFC 3389).
        public var comfortNoise: Int
        /// Packets thrown away because too many waited.
        public var discarded: Int
        /// Packets that were no RTP, of a foreign source or with this side's SSRC, of a payload type that was not agreed,
        /// empty, or corrupt inside.
        public var rejected: Int
        /// Datagrams that were not of the source that is heard or not of RTP, by reason.
        public var refused: Refused
        /// Datagrams that RTP's socket dropped before they were read: for want of room, as when this side overslept, or,
        /// while a flood of strangers lasts, because they were of others than the source that is heard.
        ///
        /// Whose they were is not known; those of the source are among `lost`.
        public var socketDrops: Int
    }

    /// Datagrams that were not of the source that is heard, or not of RTP.
    public struct Refused: Sendable, Hashable {
        /// RTP from another address.
        public var otherAddress: Int
        /// RTP from hosts that signalling did not name, while the named one had time to begin.
        public var unnamedHost: Int
        /// RTP of an SSRC that had given way to another.
        public var formerSource: Int
        /// RTCP from another address, or about another source.
        public var otherControl: Int
        /// STUN and DTLS, whoever sent them.
        public var otherProtocol: Int

        /// RTP, whatever the reason.
        var packets: Int { otherAddress + unnamedHost + formerSource }

        init(_ rtp: RTPStatistics) {
            otherAddress = Int(rtp.otherAddressCount)
            unnamedHost = Int(rtp.unnamedHostCount)
            formerSource = Int(rtp.formerSourceCount)
            otherControl = Int(rtp.otherControlCount)
            otherProtocol = Int(rtp.otherProtocolCount)
        }
    }

    /// How what is sent is protected against loss.
    public struct Protection: Sendable, Hashable {
        /// "none", "fec" or "red".
        public var mode: LossProtection.Mode
        /// Why, in one line.
        public var reason: String
        /// Times that the mode changed.
        package var changes: Int
    }

    /// What RTCP told.
    public struct Control: Sendable, Hashable {
        /// The time to the other side and back; nil before the first report came back.
        public var roundTripMs: Double?
        /// The share of our packets that the other side lost since its report before, 0 to 1; nil before the first.
        public var fractionLost: Double?
        /// The runs of losses in that time; nil while the other side does not tell them (RFC 3611, section 4.1).
        package var lossRuns: LossRuns?
    }

    /// Packets of ours that the other side lost in a row.
    package struct LossRuns: Sendable, Hashable {
        /// Runs of one or more packets.
        package var count: Int
        /// Packets in a run on average; 0 when there was none.
        package var mean: Double
        /// Packets in the longest run.
        package var longest: Int

        init(_ runs: RTP.LossRuns) {
            count = runs.runCount
            mean = ((runs.meanRun ?? 0) * 100).rounded() / 100
            longest = runs.longestRun
        }
    }

    /// What became of the echo.
    public struct Echo: Sendable, Hashable {
        /// By how much what is captured is made softer while the far end speaks, over the last seconds.
        public var erleDb: Double
        /// From what is played to its echo; nil until it was found.
        public var delayMs: Double?
        /// How long an echo may last to be cancelled.
        public var tailMs: Double
        /// Times that the reference was moved because a card had lost samples.
        package var realignments: Int

        init(_ statistics: EchoStatistics) {
            erleDb = (statistics.returnLossEnhancement.value * 10).rounded() / 10
            delayMs = statistics.delay.map(LegReport.rounded)
            tailMs = LegReport.rounded(statistics.tail)
            realignments = statistics.realignmentCount
        }
    }

    /// Between whom a leg is.
    public struct Endpoints: Sendable, Hashable {
        /// Where this side receives RTP, as "192.0.2.7:5004".
        public var localAddress: String?
        /// Where the RTP that is heard comes from, or is to be sent before any has come; nil while nobody has said.
        public var remoteAddress: String?
        /// The SSRC that is sent.
        public var localSSRC: UInt32?
        /// The SSRC that is heard; nil before the first packet.
        public var remoteSSRC: UInt32?

        /// Nothing is known.
        package init() {}
    }

    /// The leg's name.
    public var name: String
    /// Between whom it is.
    public var endpoints = Endpoints()
    /// What was sent.
    public var sent: Sent
    /// What was received.
    public var received: Received
    /// Interarrival jitter (RFC 3550, section 6.4.1).
    public var jitterMs: Double
    /// The mean time that packets waited from arrival to sound.
    public var playoutDelayMs: Double
    /// How long the fastest packet is meant to wait now; nil with a fixed delay.
    public var targetDelayMs: Double?
    /// Sound left out and sound added to follow the network.
    public var stretchedMs: Double
    /// From the moment a sample enters the other side's sender to the moment it is played here, the codec's own delay
    /// included; nil when the sender is not in this process.
    public var mouthToEarMs: Double?
    /// Keys received.
    public var dtmf: String
    /// How what is sent is protected against loss.
    public var lossProtection: Protection
    /// What RTCP told.
    public var rtcp: Control
    /// The level of the speech that was sent, as the mean of its last 5 s, in dBov; of what was sent last while there was
    /// too little speech to tell.
    public var sentLevel: Double
    /// The level of the speech that was heard, in the same way.
    public var heardLevel: Double
    /// What became of the echo; nil where none is cancelled.
    public var echo: Echo?
    /// How the leg sounds, as an estimate.
    public var quality: Quality

    init(
        name: String,
        rtp: RTPStatistics,
        socketDropCount: Int,
        unreachableCount: Int,
        playout: PlayoutStatistics,
        format: AudioFormat,
        mouthToEar: Duration?,
        voicePath: VoicePath,
        dtmf: String,
        protection: Protection,
        sentLevel: Decibels,
        heardLevel: Decibels,
        echo: EchoStatistics?
    ) {
        self.name = name
        sent = Sent(
            packets: Int(rtp.sentPacketCount),
            bytes: Int(rtp.sentPayloadByteCount),
            unreachable: unreachableCount
        )
        let concealed = format.duration(ofFrames: playout.concealedFrameCount)
        received = Received(
            packets: Int(rtp.receivedPacketCount),
            lost: Int(rtp.lostCount),
            late: playout.buffer.lateCount,
            duplicate: Int(rtp.duplicateCount),
            reordered: Int(rtp.reorderedCount),
            concealedMs: Self.rounded(concealed),
            fecRecovered: playout.recoveredCount,
            redundant: Int(rtp.redundantCount),
            codecChanges: playout.codecChangeCount,
            comfortNoise: playout.comfortNoiseCount,
            discarded: playout.buffer.discardedCount,
            rejected: Int(rtp.malformedCount &+ rtp.otherProtocolCount &+ rtp.foreignPacketCount)
                + Int(rtp.loopedCount &+ rtp.collisionCount)
                + Int(rtp.unknownPayloadTypeCount &+ rtp.malformedREDCount &+ rtp.malformedEventCount)
                + Int(rtp.emptyPayloadCount) + playout.corruptCount,
            refused: Refused(rtp),
            socketDrops: socketDropCount
        )
        jitterMs = Self.rounded(.nanoseconds(rtp.jitterNanoseconds))
        playoutDelayMs = Self.rounded(playout.meanWait)
        let target = playout.buffer.targetDelayNanoseconds
        targetDelayMs = target > 0 ? Self.rounded(.nanoseconds(target)) : nil
        let stretched = playout.shortenedFrameCount + playout.lengthenedFrameCount
        stretchedMs = Self.rounded(format.duration(ofFrames: stretched))
        mouthToEarMs = mouthToEar.map(Self.rounded)
        self.dtmf = dtmf
        lossProtection = protection
        rtcp = Control(
            roundTripMs: rtp.roundTrip.map(Self.rounded),
            fractionLost: rtp.hasRemoteReport ? rtp.remoteFractionLost : nil,
            lossRuns: rtp.remoteLossRuns.map(LossRuns.init)
        )
        self.sentLevel = (sentLevel.value * 10).rounded() / 10
        self.echo = echo.map(Echo.init)
        self.heardLevel = (heardLevel.value * 10).rounded() / 10
        quality = Quality(rtp: rtp, playout: playout, mouthToEar: mouthToEar, voicePath: voicePath)
    }

    /// Milliseconds to a hundredth.
    static func rounded(_ duration: Duration) -> Double { (duration.milliseconds * 100).rounded() / 100 }
}
