/// How packets were lost: in bursts, where many are missing, or alone, in the gaps between.
///
/// A burst begins and ends with a packet that did not serve, and holds no `gapThreshold` packets in a row that did; a
/// packet alone among so many belongs to the gap. Lost and discarded packets count alike here.
/// Pure: packets go in one by one, in the order of their sequence numbers.
/// Source: RFC 3611, section 4.7.2; burst ratio: ITU-T G.107, section 7.5
package struct BurstGapStatistics: Hashable, Sendable, BitwiseCopyable {
    /// What became of one packet.
    package enum Fate: UInt8, Sendable, BitwiseCopyable {
        /// It came in time.
        case received
        /// It never came.
        case lost
        /// It came, and was thrown away: late, mostly.
        case discarded
    }

    /// Received packets in a row that end a burst: Gmin of RFC 3611.
    package static var gapThreshold: Int { 16 }

    /// Packets in all.
    package private(set) var packetCount = 0
    /// Packets that never came.
    package private(set) var lostCount = 0
    /// Packets that were thrown away.
    package private(set) var discardedCount = 0
    /// Times that a packet served and the next did not: runs of packets that did not.
    package private(set) var runCount = 0

    private var closedBurstCount = 0
    private var closedBurstPackets = 0
    private var closedBurstLosses = 0
    private var closedGapLosses = 0
    /// From the first packet to the last of what is going to be a burst or a loss alone; 0 in a gap.
    private var openPackets = 0
    private var openLosses = 0
    /// Packets that served since the last that did not.
    private var servedInRow = 0

    /// Statistics of no packets.
    package init() {}

    /// Takes the next packet.
    package mutating func count(_ fate: Fate) {
        packetCount &+= 1
        guard fate != .received else {
            servedInRow &+= 1
            if openLosses > 0, servedInRow >= Self.gapThreshold { close() }
            return
        }
        if fate == .lost { lostCount &+= 1 } else { discardedCount &+= 1 }
        if openLosses == 0 {
            openPackets = 1
        } else {
            openPackets &+= servedInRow &+ 1
        }
        if servedInRow > 0 || packetCount == 1 { runCount &+= 1 }
        openLosses &+= 1
        servedInRow = 0
    }

    /// One of the packets that were taken for received has been thrown away since: too late to tell of which run.
    package mutating func discardReceived() {
        guard lostCount &+ discardedCount < packetCount else { return }
        discardedCount &+= 1
        closedGapLosses &+= 1
        runCount &+= 1
    }

    private mutating func close() {
        if openLosses > 1 {
            closedBurstCount &+= 1
            closedBurstPackets &+= openPackets
            closedBurstLosses &+= openLosses
        } else {
            closedGapLosses &+= 1
        }
        openLosses = 0
    }

    private var isOpenBurst: Bool { openLosses > 1 }

    /// Bursts, the one that may last included.
    package var burstCount: Int { closedBurstCount &+ (isOpenBurst ? 1 : 0) }
    /// Packets in bursts.
    package var burstPacketCount: Int { closedBurstPackets &+ (isOpenBurst ? openPackets : 0) }
    /// Packets in gaps.
    package var gapPacketCount: Int { packetCount &- burstPacketCount }
    /// Packets in bursts that did not serve.
    package var burstLossCount: Int { closedBurstLosses &+ (isOpenBurst ? openLosses : 0) }
    /// Packets in gaps that did not serve.
    package var gapLossCount: Int { closedGapLosses &+ (openLosses == 1 ? 1 : 0) }

    /// The share of packets that never came, 0 to 1.
    package var lossFraction: Double { Self.fraction(lostCount, of: packetCount) }
    /// The share of packets that were thrown away, 0 to 1.
    package var discardFraction: Double { Self.fraction(discardedCount, of: packetCount) }
    /// The share of packets within bursts that did not serve, 0 to 1.
    package var burstDensity: Double { Self.fraction(burstLossCount, of: burstPacketCount) }
    /// The share of packets within gaps that did not serve, 0 to 1.
    package var gapDensity: Double { min(Self.fraction(gapLossCount, of: gapPacketCount), 1) }

    /// The mean length of bursts, in packets; 0 without any.
    package var meanBurstPacketCount: Double { Self.fraction(burstPacketCount, of: burstCount) }
    /// Packets in gaps for each burst, or all of them when there was none.
    package var meanGapPacketCount: Double { Self.fraction(gapPacketCount, of: max(burstCount, 1)) }

    /// The mean run of packets that did not serve, by what it would be if each were lost for itself; at least 1.
    ///
    /// Source: ITU-T G.107, section 7.5: BurstR
    package var burstRatio: Double {
        let losses = lostCount &+ discardedCount
        guard runCount > 0, losses < packetCount else { return 1 }
        let meanRun = Double(losses) / Double(runCount)
        return max(meanRun * (1 - Double(losses) / Double(packetCount)), 1)
    }

    private static func fraction(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}
