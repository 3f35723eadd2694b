/// Runs of packets lost in a row, in one stretch of sequence numbers.
///
/// A run that begins before the stretch, or goes on after it, counts with its packets inside.
/// Pure: packets go in, in the order of their sequence numbers.
package struct LossRuns: Hashable, Sendable, BitwiseCopyable {
    /// Packets in all.
    package private(set) var packetCount = 0
    /// Packets that were lost.
    package private(set) var lostCount = 0
    /// Runs of one or more lost packets.
    package private(set) var runCount = 0
    /// Packets in the longest run.
    package private(set) var longestRun = 0

    /// Packets lost in a row up to the last one.
    private var openRun = 0

    /// Runs among no packets.
    package init() {}

    /// Takes the next `packetCount` packets, all of which came, or all of which were lost.
    package mutating func count(_ packetCount: Int, areLost: Bool) {
        guard packetCount > 0 else { return }
        self.packetCount &+= packetCount
        guard areLost else {
            openRun = 0
            return
        }
        if openRun == 0 { runCount &+= 1 }
        openRun &+= packetCount
        lostCount &+= packetCount
        longestRun = max(longestRun, openRun)
    }

    /// How many packets are lost in a row on average, 1 or more; nil when none was lost.
    package var meanRun: Double? { runCount > 0 ? Double(lostCount) / Double(runCount) : nil }
}
