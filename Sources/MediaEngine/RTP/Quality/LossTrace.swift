/// Which packets came since the last report and which did not, one bit for each sequence number.
///
/// What is repaired later, by FEC or RED, stays lost here: this is what the network does.
/// Shape: the newest 1024 numbers; of a longer interval, or a longer gap, the oldest are forgotten.
/// Thread: media.
/// Source: RFC 3611, section 4.1; repaired losses are not part of it (RFC 5725, section 1)
public struct LossTrace: Sendable, BitwiseCopyable {
    /// Numbers that the trace holds at most: 10 s of packets of 10 ms.
    public static var capacity: Int { 1024 }

    /// Numbers in the trace.
    public private(set) var count = 0
    private var highest: UInt16 = 0
    private var hasBegun = false
    /// The bit of a number is at the number modulo `capacity`; it is set when the packet came.
    private var words = InlineArray<16, UInt64>(repeating: 0)

    /// A trace of no packets.
    public init() {}

    /// The first number of the trace.
    public var beginSequence: UInt16 { endSequence &- UInt16(truncatingIfNeeded: count) }

    /// The number after the last one of the trace.
    public var endSequence: UInt16 { highest &+ 1 }

    /// Whether the packet came that is `index` places after the first, less than `count`.
    public func hasCome(_ index: Int) -> Bool {
        let (word, bit) = Self.place(beginSequence &+ UInt16(truncatingIfNeeded: index))
        return words[word] & bit != 0
    }

    /// Takes a packet, of which the statistics of the source made `verdict`.
    mutating func receive(_ sequenceNumber: UInt16, verdict: ReceiverStatistics.Verdict) {
        let step = Int(Int16(bitPattern: sequenceNumber &- highest))
        switch verdict {
        case .duplicate, .badSequence: return
        case .restarted: begin(at: sequenceNumber)
        // What came before was a stray.
        case .probation where step != 1: begin(at: sequenceNumber)
        case .probation, .inOrder, .reordered:
            guard hasBegun else {
                begin(at: sequenceNumber)
                return
            }
            if step > 0 {
                advance(by: step)
            } else if -step < count {
                set(sequenceNumber)
            }
        }
    }

    /// Forgets what has been reported: the trace begins with the next number.
    mutating func beginInterval() { count = 0 }

    private mutating func begin(at sequenceNumber: UInt16) {
        hasBegun = true
        highest = sequenceNumber
        count = 1
        set(sequenceNumber)
    }

    /// Adds `step` numbers, of which only the last has come.
    private mutating func advance(by step: Int) {
        for _ in 0..<step {
            highest &+= 1
            let (word, bit) = Self.place(highest)
            words[word] &= ~bit
        }
        count = min(count &+ step, Self.capacity)
        set(highest)
    }

    private mutating func set(_ sequenceNumber: UInt16) {
        let (word, bit) = Self.place(sequenceNumber)
        words[word] |= bit
    }

    private static func place(_ sequenceNumber: UInt16) -> (word: Int, bit: UInt64) {
        let index = Int(sequenceNumber) & (capacity &- 1)
        return (index >> 6, 1 << UInt64(index & 63))
    }
}
