/// Learns how long packets must be held back, from when they arrive.
///
/// A packet's transit is its arrival less its time stamp. The fastest transit of the last seconds is the base; how much
/// later others come goes into a histogram, whose high quantile is the delay that is needed. The base follows a sender
/// whose clock differs, and a network whose path changes: down at once, up when the last fast packet is 2 to 4 s old,
/// and then what the histogram learnt meanwhile moves down with it.
///
/// Packets that a stall held up come together. They tell of one event and count once, so that a rare spike does not
/// hold everything back for seconds afterwards, while frequent ones do. Where what comes after a stall stays as late as
/// its first packet, nobody can wait for so long: the path, or the sender's clock, is another one, and the base moves at
/// once, with the jitter that was learnt.
/// Units: nanoseconds.
/// Thread: one at a time; nothing allocates after `init`.
struct DelayEstimator: ~Copyable {
    /// The share of packets that must come in time.
    static var highShare: Double { 0.997 }
    /// The share of packets whose predecessor, if lost, must be recoverable from them in time.
    static var commonShare: Double { 0.95 }
    /// Packets after which what was learnt counts e times less.
    static var memory: Int { 400 }
    /// What is expected before anything is known.
    static var prior: Int64 { 40_000_000 }

    private static var windowLength: Int64 { 2_000_000_000 }
    /// A change of the base by less is jitter, not another path.
    private static var notableChange: Int64 { 10_000_000 }
    /// Two packets in a row that are later by more after a silence, the second no faster than the first, have taken another
    /// path.
    private static var longestSpike: Int64 { 500_000_000 }

    private var histogram: DelayHistogram
    private var windowEnd: Int64 = .min
    private var windowMinimum: Int64 = .max
    private var previousMinimum: Int64 = .max
    private var lastArrival: Int64?
    /// The time stamp of the first packet that took the present path, if it overtook others.
    private var pathStart: Int64 = .min
    /// Whether the packets that come now were held up together.
    private var isInBurst = false
    /// Whether nothing came for a while, and all that has come since was later than anybody waits for.
    private var isHeldUp = false
    /// The last packet, when the next one tells whether it has taken another path.
    private var spike: (transit: Int64, delay: Int64)?

    /// Whether a packet has come since the base was forgotten.
    private(set) var hasBase = false
    /// The transit of the fastest packet of late.
    private(set) var base: Int64 = 0

    init() {
        histogram = DelayHistogram(
            memory: Self.memory,
            prior: Self.prior,
            high: Self.highShare,
            common: Self.commonShare
        )
    }

    /// How long after the fastest packets nearly all have come.
    var highDelay: Int64 { histogram.highDelay }
    /// How long after the fastest packets most have come.
    var commonDelay: Int64 { histogram.commonDelay }

    /// Learns from a packet.
    ///
    /// - Parameters:
    ///   - arrival: When it arrived.
    ///   - mediaTime: Its time stamp.
    ///   - length: How long it lasts.
    /// - Returns: Its delay beyond the fastest one.
    mutating func add(arrival: Int64, mediaTime: Int64, length: Int64) -> Int64 {
        let transit = arrival &- mediaTime
        advanceWindow(to: arrival)
        windowMinimum = min(windowMinimum, transit)
        moveBase(to: min(windowMinimum, previousMinimum), by: mediaTime)
        let delay = transit &- base
        // One that a faster path was opened behind tells nothing of the packets to come.
        guard mediaTime >= pathStart else { return delay }
        let spacing = lastArrival.map { arrival &- $0 } ?? length
        lastArrival = arrival
        isHeldUp = delay > Self.longestSpike && (isHeldUp || spacing > Self.longestSpike / 2)
        if let spike {
            self.spike = nil
            if isHeldUp, transit >= spike.transit &- length / 4 {
                return takePath(spike.transit, transit)
            }
            histogram.add(spike.delay)
        }
        // Together: within a quarter of a packet of the one before, which was notably late.
        if spacing >= 0, spacing < length / 4, isInBurst { return delay }
        isInBurst = delay > max(highDelay, 2 &* length)
        if isHeldUp {
            spike = (transit, delay)
        } else {
            histogram.add(delay)
        }
        return delay
    }

    /// Packets of these transits have taken a path that is much longer than the one before, whose windows say nothing of it.
    ///
    /// - Returns: The delay of the second one.
    private mutating func takePath(_ first: Int64, _ second: Int64) -> Int64 {
        base = min(first, second)
        windowMinimum = base
        previousMinimum = base
        isInBurst = false
        isHeldUp = false
        histogram.add(second &- base)
        return second &- base
    }

    /// Forgets the base, not the histogram: the source or its clock is another one, the network the same.
    mutating func forgetBase() {
        hasBase = false
        windowEnd = .min
        windowMinimum = .max
        previousMinimum = .max
        lastArrival = nil
        pathStart = .min
        isInBurst = false
        isHeldUp = false
        spike = nil
    }

    private mutating func advanceWindow(to arrival: Int64) {
        guard arrival >= windowEnd else { return }
        // After a long pause both windows are over.
        if windowEnd != .min, arrival &- windowEnd >= Self.windowLength { forgetBase() }
        previousMinimum = windowMinimum
        windowMinimum = .max
        windowEnd = arrival &+ Self.windowLength
    }

    private mutating func moveBase(to next: Int64, by mediaTime: Int64) {
        if hasBase, next &- base >= Self.notableChange { histogram.shiftDown(next &- base) }
        if hasBase, base &- next >= Self.notableChange { pathStart = mediaTime }
        hasBase = true
        base = next
    }
}
