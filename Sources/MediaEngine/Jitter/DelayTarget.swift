import CallBasics

/// How long packets are to wait: as long as nearly all of them need, and until copies of lost packets have come where there
/// are such (in-band FEC, RED) and they are needed.
///
/// Units: times in nanoseconds; durations and places in units of the time line's rate.
/// Thread: media.
struct DelayTarget: ~Copyable {
    /// At most this much is added to what was needed: where there is jitter there will be more.
    private static var largestMargin: Int64 { 10_000_000 }
    /// The loss from which on copies of lost packets are waited for, and below which no longer.
    private static var notableLoss: Float { 0.01 }
    private static var negligibleLoss: Float { 0.004 }
    /// The share of packets with a copy from which on copies are waited for: silence has none.
    private static var notableCopies: Float { 0.2 }

    private let shortest: Int64
    private let longest: Int64
    private let clock: StreamClock
    private var estimator = DelayEstimator()
    /// The share of packets that are lost, smoothed over about 200 packets.
    private var loss: Float = 0
    /// The share of packets that come with copies of earlier ones, smoothed over about 50 packets.
    private var copies: Float = 0
    /// How far back copies reach, in units.
    private var copyReach: Int64 = 0
    /// The time stamp of the oldest copy since the last packet that was no copy.
    private var oldestCopy: Int64?
    /// Whether the target leaves room for copies.
    private var waitsForCopies = false

    /// A target within `bounds`, before anything is known.
    init(_ bounds: ClosedRange<Duration>, _ clock: StreamClock) {
        shortest = bounds.lowerBound.nanoseconds
        longest = bounds.upperBound.nanoseconds
        self.clock = clock
    }

    /// The transit of the fastest packet, from which delays count.
    var base: Int64 { estimator.base }

    /// How long the packet of that transit is to wait.
    var delay: Int64 {
        let high = estimator.highDelay
        var target = high &+ min(high / 4, Self.largestMargin)
        if waitsForCopies { target = max(target, estimator.commonDelay &+ clock.nanoseconds(copyReach)) }
        return min(max(target, shortest), longest)
    }

    /// Learns from the arrival of a packet at `timestamp`, and from what it holds of others: a copy says nothing of the
    /// network, but how far back copies reach.
    ///
    /// - Returns: How much later than the fastest it came; nil when it says nothing of that.
    mutating func learn(_ header: PacketHeader, _ timestamp: Int64, _ duration: Int) -> Int64? {
        guard !header.isRedundant else {
            oldestCopy = min(oldestCopy ?? timestamp, timestamp)
            return nil
        }
        let oldest = oldestCopy
        oldestCopy = nil
        // Noise has no haste: when it is sent, and with which time stamp, differs from sender to sender.
        guard !header.isComfortNoise || !estimator.hasBase else { return nil }
        let delay = estimator.add(
            arrival: header.arrival.nanoseconds,
            mediaTime: clock.nanoseconds(timestamp),
            length: clock.nanoseconds(Int64(duration))
        )
        let reach = oldest.map { timestamp &- $0 } ?? (header.carriesCopy ? Int64(duration) : 0)
        if reach > 0 { copyReach = reach }
        copies += ((reach > 0 ? 1 : 0) - copies) / 50
        waitsForCopies =
            copies >= Self.notableCopies && loss >= (waitsForCopies ? Self.negligibleLoss : Self.notableLoss)
        return delay
    }

    /// A packet of a number only came: copies before it belong to none that follows.
    mutating func noteNumberOnly() { oldestCopy = nil }

    /// A packet was played.
    mutating func notePlayed() { loss -= loss / 200 }

    /// So many packets were missing.
    mutating func noteMissing(_ count: Int64) {
        loss += Float(min(count, 10)) * (1 - loss) / 200
    }

    /// Another source comes, whose transit is not known.
    mutating func forgetSource() {
        estimator.forgetBase()
        oldestCopy = nil
    }
}
