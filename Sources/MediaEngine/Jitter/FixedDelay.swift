/// Keeps the delay of a jitter buffer with equal bounds: each packet is played that delay after the first packet's
/// arrival plus the distance of their places.
///
/// The line holds as long as packets come in time. It is drawn anew when every packet of a while comes too late (the
/// network's delay grew), and after a second without packets (hold, outage), so that what comes then is neither lost nor
/// played in a burst. A sender that is faster than our clock fills the buffer; when it holds two packets too many for a
/// while, those are thrown away, one at a time.
/// Units: places and durations in units of the time line's rate; the base in nanoseconds.
struct FixedDelay: BitwiseCopyable {
    private static var lateRunLimit: Int { 5 }
    private static var surplusWindow: Int { 250 }
    private static var discardSpacing: Int { 8 }

    /// The transit of the first packet: its arrival less its place.
    var base: Int64 = 0
    private var lateRun = 0
    private var surplusCount = 0
    private var smallestSurplus = Int64.max
    /// Packets that are too many, and those played since one of them was thrown away.
    private var excessCount = 0
    private var playedSinceDiscard = 0

    /// Notes a packet that came too late; answers whether so many have that the line is to be drawn anew.
    mutating func noteLate() -> Bool {
        lateRun &+= 1
        return lateRun >= Self.lateRunLimit
    }

    /// Notes a packet that came in time, `ahead` of the playhead; learns whether the buffer holds too much all the time.
    mutating func note(ahead: Int64, target: Int64, packetDuration: Int64) {
        lateRun = 0
        smallestSurplus = min(smallestSurplus, ahead)
        surplusCount &+= 1
        guard surplusCount >= Self.surplusWindow else { return }
        let excess = (smallestSurplus &- target) / max(packetDuration, 1) &- 1
        excessCount = Int(max(excess, 0))
        surplusCount = 0
        smallestSurplus = .max
    }

    /// Whether the next packet is to be thrown away instead of played.
    mutating func takesDiscard() -> Bool {
        guard excessCount > 0, playedSinceDiscard >= Self.discardSpacing else {
            playedSinceDiscard &+= 1
            return false
        }
        excessCount &-= 1
        playedSinceDiscard = 0
        return true
    }
}
