/// What one leg of a call sent and received: counters, read where they are kept.
///
/// Units: ms where the name says so.
public struct LegReport: Sendable, Hashable, Codable {
    /// What was sent.
    public struct Sent: Sendable, Hashable, Codable {
        /// RTP packets.
        public var packets: Int
        /// Bytes of their payloads.
        public var bytes: Int
    }

    /// What was received.
    public struct Received: Sendable, Hashable, Codable {
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
        /// Packets that were no RTP, of a foreign source, of a payload type that was not agreed, empty, or corrupt inside.
        public var rejected: Int
        /// Those of them that were not of the source that is heard, by reason.
        public var refused: Refused
    }

    /// Packets and RTCP datagrams that were not of the source that is heard.
    public struct Refused: Sendable, Hashable, Codable {
        /// RTP from another address.
        public var otherAddress: Int
        /// RTP from hosts that signalling did not name, while the named one had time to begin.
        public var unnamedHost: Int
        /// RTP of an SSRC that had given way to another.
        public var formerSource: Int
        /// RTCP from another address, or about another source.
        public var otherControl: Int
        /// Datagrams that the system dropped before they were looked at: from other addresses than the locked one, or for
        /// want of room.
        public var unread: Int

        /// RTP, whatever the reason.
        var packets: Int { otherAddress + unnamedHost + formerSource + unread }

        init(_ rtp: RTPStatistics, unread: Int) {
            self.unread = unread
            otherAddress = Int(rtp.otherAddressCount)
            unnamedHost = Int(rtp.unnamedHostCount)
            formerSource = Int(rtp.formerSourceCount)
            otherControl = Int(rtp.otherControlCount)
        }
    }

    /// How what is sent is protected against loss.
    public struct Protection: Sendable, Hashable, Codable {
        /// "none", "fec" or "red".
        public var mode: LossProtection.Mode
        /// Why, in one line.
        public var reason: String
        /// Times that the mode changed.
        public var changes: Int
    }

    /// What RTCP told.
    public struct Control: Sendable, Hashable, Codable {
        /// The time to the other side and back; nil before the first report came back.
        public var roundTripMs: Double?
        /// The share of our packets that the other side lost since its report before, 0 to 1; nil before the first.
        public var fractionLost: Double?
        /// The runs of losses in that time; nil while the other side does not tell them (RFC 3611, section 4.1).
        public var lossRuns: LossRuns?
    }

    /// Packets of ours that the other side lost in a row.
    public struct LossRuns: Sendable, Hashable, Codable {
        /// Runs of one or more packets.
        public var count: Int
        /// Packets in a run on average; 0 when there was none.
        public var mean: Double
        /// Packets in the longest run.
        public var longest: Int

        init(_ runs: RTP.LossRuns) {
            count = runs.runCount
            mean = ((runs.meanRun ?? 0) * 100).rounded() / 100
            longest = runs.longestRun
        }
    }

    /// What became of the echo.
    public struct Echo: Sendable, Hashable, Codable {
        /// By how much what is captured is made softer while the far end speaks, over the last seconds.
        public var erleDb: Double
        /// From what is played to its echo; nil until it was found.
        public var delayMs: Double?
        /// How long an echo may last to be cancelled.
        public var tailMs: Double
        /// Times that the reference was moved because a card had lost samples.
        public var realignments: Int

        init(_ statistics: EchoStatistics) {
            erleDb = (statistics.returnLossEnhancement.value * 10).rounded() / 10
            delayMs = statistics.delay.map(LegReport.rounded)
            tailMs = LegReport.rounded(statistics.tail)
            realignments = statistics.realignmentCount
        }
    }

    /// The leg's name.
    public var name: String
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
    /// The level of what was sent last, in dBov.
    public var sentLevel: Double
    /// The level of what was heard last, in dBov.
    public var heardLevel: Double
    /// What became of the echo; nil where none is cancelled.
    public var echo: Echo?
    /// How the leg sounds, as an estimate.
    public var quality: Quality

    init(
        name: String,
        rtp: RTPStatistics,
        unreadCount: Int,
        playout: PlayoutStatistics,
        format: AudioFormat,
        mouthToEar: Duration?,
        voicePath: VoicePath,
        dtmf: String,
        protection: Protection,
        sentLevel: AudioLevel,
        heardLevel: AudioLevel,
        echo: EchoStatistics?
    ) {
        self.name = name
        sent = Sent(packets: Int(rtp.sentPacketCount), bytes: Int(rtp.sentPayloadByteCount))
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
            rejected: Int(rtp.malformedCount &+ rtp.foreignPacketCount &+ rtp.unknownPayloadTypeCount)
                + Int(rtp.malformedREDCount &+ rtp.malformedEventCount &+ rtp.emptyPayloadCount)
                + playout.corruptCount + unreadCount,
            refused: Refused(rtp, unread: unreadCount)
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
        self.sentLevel = (sentLevel.rms.value * 10).rounded() / 10
        self.echo = echo.map(Echo.init)
        self.heardLevel = (heardLevel.rms.value * 10).rounded() / 10
        quality = Quality(rtp: rtp, playoutDelay: playout.meanWait, mouthToEar: mouthToEar, voicePath: voicePath)
    }

    /// Milliseconds to a hundredth.
    static func rounded(_ duration: Duration) -> Double { (duration.milliseconds * 100).rounded() / 100 }
}
