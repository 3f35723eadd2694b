/// Which packets of one source came: the one record from which duplicates, bursts of loss and Loss RLE are told.
///
/// Each of the newest 1024 sequence numbers has a bit that says whether its packet came. The newest 128 have two bits
/// more, side by side, which readers on other threads get: whether it came, and whether it met the less likely fate, that
/// it came and was thrown away by the playout, or did not come and was rebuilt from another. A number that is older than
/// that has its fate settled: until then a reordered packet still counts as received, one that the jitter buffer finds
/// late as discarded, and one rebuilt from its successor as not lost.
/// Thread: media.
/// Source: RFC 3611, sections 4.1 and 4.7; what was rebuilt stays lost in Loss RLE (RFC 5725, section 1).
package struct ReceptionRecord: Sendable, BitwiseCopyable {
    /// Numbers whose coming is remembered: 10 s of packets of 10 ms.
    package static var capacity: Int { 1024 }
    /// Numbers whose fate is still open.
    package static var openCapacity: Int { 128 }

    /// The bit of a number is at the number modulo `capacity`; it is set when the packet came.
    private var came = InlineArray<16, UInt64>(repeating: 0)
    /// The same of the newest: bit n belongs to the number n before the highest.
    private var recentlyCame: UInt128 = 0
    /// Likewise: discarded when it came, rebuilt when it did not.
    private var marked: UInt128 = 0
    private var settled = BurstGapStatistics()
    /// Numbers since the record began, up to `openCapacity`.
    private var openCount = 0
    /// Numbers that the next Loss RLE block reports on, up to `capacity`.
    package private(set) var unreportedCount = 0
    package private(set) var highest: UInt16 = 0

    /// A record of no packets.
    package init() {}

    /// Whether a packet has come.
    package var isEmpty: Bool { openCount == 0 }

    /// Begins with `sequenceNumber`, which came; what was open before is settled.
    package mutating func begin(at sequenceNumber: UInt16) {
        settled = recent.statistics
        // Nothing of other numbers may be taken for a duplicate.
        came = InlineArray(repeating: 0)
        recentlyCame = 0
        openCount = 1
        unreportedCount = 1
        marked = 0
        highest = sequenceNumber
        setHighest()
    }

    /// Takes a packet that is `step` numbers beyond the highest, at least 1; those between have not come.
    package mutating func advance(by step: Int) {
        for _ in 0..<step {
            if openCount == Self.openCapacity {
                settled.count(RecentReception.fate(recentlyCame, marked, age: Self.openCapacity &- 1))
            } else {
                openCount &+= 1
            }
            recentlyCame <<= 1
            marked <<= 1
            highest &+= 1
            let (word, bit) = Self.place(highest)
            came[word] &= ~bit
        }
        unreportedCount = min(unreportedCount &+ step, Self.capacity)
        setHighest()
    }

    /// Takes a packet that is `age` numbers behind the highest; answers false when it came before.
    package mutating func fill(age: Int) -> Bool {
        let (word, bit) = Self.place(highest &- UInt16(truncatingIfNeeded: age))
        guard came[word] & bit == 0 else { return false }
        came[word] |= bit
        if age < openCount {
            recentlyCame |= Self.bit(age)
            marked &= ~Self.bit(age)
        }
        return true
    }

    /// The playout threw the packet away.
    package mutating func discard(_ sequenceNumber: UInt16) {
        let age = Int(highest &- sequenceNumber)
        guard age < openCount else {
            let (word, bit) = Self.place(sequenceNumber)
            if age < Self.capacity, came[word] & bit != 0 { settled.discardReceived() }
            return
        }
        guard recentlyCame & Self.bit(age) != 0 else { return }
        marked |= Self.bit(age)
    }

    /// The packet, which did not come, was rebuilt from another one.
    package mutating func rebuild(_ sequenceNumber: UInt16) {
        let age = Int(highest &- sequenceNumber)
        guard age < openCount, recentlyCame & Self.bit(age) == 0 else { return }
        marked |= Self.bit(age)
    }

    /// Begins a new interval of Loss RLE: the next block reports on the numbers from the next one on.
    package mutating func beginInterval() { unreportedCount = 0 }

    /// The numbers that the next Loss RLE block reports on.
    package var unreported: LossTrace {
        LossTrace(end: highest &+ 1, count: unreportedCount, came: came)
    }

    /// What burst statistics are made of, for readers on other threads.
    package var recent: RecentReception {
        RecentReception(settled: settled, openCount: openCount, came: recentlyCame, marked: marked)
    }

    /// The highest number came.
    private mutating func setHighest() {
        let (word, bit) = Self.place(highest)
        came[word] |= bit
        recentlyCame |= 1
    }

    /// The bit of the number `age` before the highest.
    fileprivate static func bit(_ age: Int) -> UInt128 { 1 << UInt128(age) }

    fileprivate static func place(_ sequenceNumber: UInt16) -> (word: Int, bit: UInt64) {
        let index = Int(sequenceNumber & 1023)
        return (index >> 6, 1 << UInt64(index & 63))
    }
}

/// The newest packets of a source and the fate of all before them: what a report computes burst statistics from.
///
/// It is a copy that is made for each packet, so the walk over its bits is left to whoever reads.
package struct RecentReception: Hashable, Sendable, BitwiseCopyable {
    private let settled: BurstGapStatistics
    private let openCount: Int
    private let came: UInt128
    private let marked: UInt128

    /// Nothing received.
    package init() {
        self.init(settled: BurstGapStatistics(), openCount: 0, came: 0, marked: 0)
    }

    fileprivate init(settled: BurstGapStatistics, openCount: Int, came: UInt128, marked: UInt128) {
        self.settled = settled
        self.openCount = openCount
        self.came = came
        self.marked = marked
    }

    /// What became of all packets so far, those whose fate is open included.
    package var statistics: BurstGapStatistics {
        var result = settled
        // A loop over a reversed range allocates where nothing is optimised.
        var age = openCount
        while age > 0 {
            age &-= 1
            result.count(Self.fate(came, marked, age: age))
        }
        return result
    }

    fileprivate static func fate(_ came: UInt128, _ marked: UInt128, age: Int) -> BurstGapStatistics.Fate {
        let bit = ReceptionRecord.bit(age)
        let isMarked = marked & bit != 0
        guard came & bit != 0 else { return isMarked ? .received : .lost }
        return isMarked ? .discarded : .received
    }
}

/// Which of a range of packets came, as a Loss RLE block tells it.
///
/// Source: RFC 3611, section 4.1
package struct LossTrace: Sendable, BitwiseCopyable {
    /// The number after the last one of the trace.
    package let endSequence: UInt16
    /// Numbers in the trace.
    package let count: Int
    private let came: InlineArray<16, UInt64>

    fileprivate init(end: UInt16, count: Int, came: InlineArray<16, UInt64>) {
        endSequence = end
        self.count = count
        self.came = came
    }

    /// The first number of the trace.
    package var beginSequence: UInt16 { endSequence &- UInt16(truncatingIfNeeded: count) }

    /// Whether the packet came that is `index` places after the first, less than `count`.
    package func hasCome(_ index: Int) -> Bool {
        let (word, bit) = ReceptionRecord.place(beginSequence &+ UInt16(truncatingIfNeeded: index))
        return came[word] & bit != 0
    }
}
