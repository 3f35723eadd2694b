/// Brings packets into the order of their numbers, and holds each back until its fate is settled: lost, late, or played.
///
/// The newest 128 packets wait, so that a reordered one still counts as received, one that the jitter buffer finds late
/// as discarded, and one rebuilt from its successor as not lost.
/// Thread: media writes; a copy may be read anywhere.
public struct ReceptionHistory: Hashable, Sendable, BitwiseCopyable {
    private static var capacity: Int { 128 }
    private static var oldest: UInt128 { 1 << 127 }

    private var settled = BurstGapStatistics()
    private var waitingCount = 0
    private var highest: UInt16 = 0
    /// Bit n says that the packet n before the highest came, or was rebuilt.
    private var came: UInt128 = 0
    /// Bit n says that the packet n before the highest was thrown away.
    private var thrownAway: UInt128 = 0

    private var lastTimestamp: UInt32?
    private var lastStep: UInt32 = 0
    private var packetUnits: UInt32 = 0
    private var unitRate: UInt32 = 0

    /// A history of no packets.
    public init() {}

    /// What became of all packets so far, those that wait included.
    public var statistics: BurstGapStatistics {
        var result = settled
        var bit = UInt128(1) << UInt128(max(waitingCount - 1, 0))
        for _ in 0..<waitingCount {
            result.count(fate(bit))
            bit >>= 1
        }
        return result
    }

    /// What a packet of the source lasts, in nanoseconds; 0 until two steps of the time stamp were equal.
    public var packetNanoseconds: Int64 {
        unitRate > 0 ? Int64(packetUnits) &* 1_000_000_000 / Int64(unitRate) : 0
    }

    /// Takes a packet that came for the first time.
    ///
    /// - Parameters:
    ///   - header: the packet's header.
    ///   - clockRate: of its time stamps in Hz; 0 where they say nothing of the packet's length.
    ///   - verdict: what the statistics of the source made of it.
    mutating func receive(_ header: RTPHeader, clockRate: UInt32, verdict: ReceiverStatistics.Verdict) {
        let step = Int(Int16(bitPattern: header.sequenceNumber &- highest))
        switch verdict {
        case .duplicate, .badSequence:
            return
        case .restarted:
            settled = statistics
            begin(at: header)
        case .probation where waitingCount > 0 && step != 1:
            // What came before was a stray.
            self = ReceptionHistory()
            begin(at: header)
        case .probation, .inOrder, .reordered:
            guard waitingCount > 0 else {
                begin(at: header)
                break
            }
            guard step > 0 else {
                if let bit = bit(of: header.sequenceNumber) { came |= bit }
                return
            }
            measure(header, step: step, clockRate: clockRate)
            for _ in 0..<step { shift() }
            came |= 1
            highest = header.sequenceNumber
        }
        lastTimestamp = clockRate > 0 ? header.timestamp : nil
    }

    /// The jitter buffer threw the packet away.
    mutating func discard(_ sequenceNumber: UInt16) {
        if let bit = bit(of: sequenceNumber) { thrownAway |= bit }
    }

    /// The packet, which is lost, was rebuilt from its successor.
    mutating func recover(_ sequenceNumber: UInt16) {
        if let bit = bit(of: sequenceNumber) { came |= bit }
    }

    private mutating func begin(at header: RTPHeader) {
        waitingCount = 1
        highest = header.sequenceNumber
        came = 1
        thrownAway = 0
        lastStep = 0
    }

    /// Makes room for the next number, and settles the fate of the oldest when there is none.
    private mutating func shift() {
        if waitingCount == Self.capacity {
            settled.count(fate(Self.oldest))
        } else {
            waitingCount &+= 1
        }
        came <<= 1
        thrownAway <<= 1
    }

    private func fate(_ bit: UInt128) -> BurstGapStatistics.Fate {
        guard came & bit != 0 else { return .lost }
        return thrownAway & bit == 0 ? .received : .discarded
    }

    private func bit(of sequenceNumber: UInt16) -> UInt128? {
        let age = Int(highest &- sequenceNumber)
        return age < waitingCount ? UInt128(1) << UInt128(age) : nil
    }

    /// Learns the length of packets from time stamps: what two steps in a row agree on.
    private mutating func measure(_ header: RTPHeader, step: Int, clockRate: UInt32) {
        guard step == 1, clockRate > 0, let lastTimestamp else { return }
        let units = header.timestamp &- lastTimestamp
        if units == lastStep, units > 0, units <= clockRate {
            packetUnits = units
            unitRate = clockRate
        }
        lastStep = units
    }
}
