package import CallBasics

/// Decides when a leg's socket is worth a look, so that a calm stream costs one system call a packet.
///
/// A packet that follows its predecessor in number, time stamp and time is calm: nothing else waits behind it, and the
/// next one is looked for when its own length has passed. So every packet is still read at the latest one packet's
/// length after its predecessor, which is in time if the predecessor was. Whatever is not calm (a late packet, a gap,
/// one that had waited for longer than a tick, RTCP, a key) makes every tick look until nothing waits, and for a while
/// after that: a packet that was overtaken is still to come, and is needed first.
/// Time stamps of arrival are the kernel's, so that looking later spoils no measurement.
package struct ReceptionPacing {
    /// Nanoseconds that a packet may come later than its predecessor's pace and still be calm.
    private static var tolerance: Int64 { 5_000_000 }
    /// The longest time without a look, in nanoseconds: RTCP, and packets after a pause, wait no longer.
    private static var longestPause: Int64 { 20_000_000 }

    /// Packets that must be calm before looks are spared.
    private static var calmRun: Int { 10 }

    private var nextLook = MediaTime.zero
    private var calmCount = 0
    private var previous: (sequence: UInt16, timestamp: UInt32, arrival: MediaTime)?
    /// Whether more may wait in this tick.
    package private(set) var looksAgain = true

    /// A pacing that has seen no packet.
    package init() {}

    /// Whether this tick is to look.
    package func isDue(at now: MediaTime) -> Bool { now >= nextLook }

    /// A tick begins to look.
    package mutating func begin() { looksAgain = true }

    /// A datagram of somebody else was taken: more of them may wait before the next packet.
    package mutating func tookForeign() { calmCount = 0 }

    /// A packet was taken in the tick at `now`, which lasts `tick`.
    package mutating func took(
        _ header: RTPHeader,
        clockRate: UInt32,
        arrival: MediaTime,
        at now: MediaTime,
        tick: Duration
    ) {
        defer { previous = (header.sequenceNumber, header.timestamp, arrival) }
        calmCount &+= 1
        guard let previous, header.sequenceNumber == previous.sequence &+ 1, clockRate > 0 else { return calmCount = 0 }
        let units = Int64(Int32(bitPattern: header.timestamp &- previous.timestamp))
        let pace = units &* 1_000_000_000 / Int64(clockRate)
        let spacing = arrival.nanoseconds(since: previous.arrival)
        let tick = tick.nanoseconds
        let wait = now.nanoseconds(since: arrival)
        guard pace > 0, spacing <= pace &+ Self.tolerance, wait <= tick &+ Self.tolerance else {
            return calmCount = 0
        }
        guard calmCount >= Self.calmRun else { return }
        looksAgain = false
        // One that could have been read a tick ago says that the looks come late in the packets' rhythm.
        let early = wait > tick ? tick : 0
        nextLook = MediaTime(nanoseconds: now.nanoseconds &+ min(pace, Self.longestPause) &- early)
    }
}
