/// What one receiver knows of one source: validity, extended sequence numbers, loss and jitter.
///
/// A new source counts as valid after `probation` packets in sequence, which are then counted, too. A jump of sequence numbers of 3000 or more, or
/// further back than 100, is held to be an error until the next packet continues it: then the source has restarted.
/// Units: jitter and timestamps in units of the clock rate.
/// Source: RFC 3550, sections 6.4.1, A.1 (sequence numbers), A.3 (loss), A.8 (jitter).
public struct ReceiverStatistics: Sendable, BitwiseCopyable {
    /// What became of one packet.
    public enum Verdict: UInt8, Sendable, BitwiseCopyable {
        /// The source is not yet valid.
        case probation
        /// The newest packet so far.
        case inOrder
        /// A packet that comes after a newer one, for the first time.
        case reordered
        /// A packet that came before.
        case duplicate
        /// A sequence number far from all others; not counted.
        case badSequence
        /// The second packet of a new sequence: all counts begin again with it.
        case restarted
    }

    /// Sequence numbers may leap ahead by less than this.
    public static let maximumDropout = 3000
    /// Sequence numbers may fall back by at most this; also the reach of the duplicate check.
    public static let maximumMisorder = 100

    /// Packets in sequence that make a new source valid.
    public let probation: Int
    /// Whether the source has passed its probation.
    public private(set) var isValid = false
    /// Packets counted since the source became valid, duplicates included.
    public private(set) var receivedCount: UInt64 = 0
    /// Packets that came more than once.
    public private(set) var duplicateCount: UInt64 = 0
    /// Packets that came after a newer one.
    public private(set) var reorderedCount: UInt64 = 0
    /// Packets with a sequence number far from all others.
    public private(set) var badSequenceCount: UInt64 = 0
    /// Times that the source began a new sequence.
    public private(set) var restartCount: UInt64 = 0
    /// The highest sequence number so far, with its count of cycles above 16 bits.
    public private(set) var extendedHighest: Int64 = 0

    private var base: Int64 = 0
    private var expectedInOrder: UInt16 = 0
    private var remainingProbation: Int
    private var awaitedAfterJump: UInt16?
    private var lostBeforeRestart: UInt64 = 0
    /// Bit n says that the packet n before the highest has come.
    private var recent: UInt128 = 0

    private var expectedPrior: Int64 = 0
    private var receivedPrior: UInt64 = 0
    private var receivedSinceBase: Int64 = 0
    private var duplicatesSinceBase: UInt64 = 0

    private var arrivalOrigin: MediaTime?
    private var jitterClockRate: UInt32 = 0
    private var lastTransit: Int32?
    /// 16 times the jitter, as in A.8.
    private var scaledJitter: Int64 = 0

    /// The statistics of a source that has sent nothing.
    ///
    /// - Parameter probation: packets in sequence that make it valid, at least 1.
    public init(probation: Int = 2) {
        self.probation = max(probation, 1)
        remainingProbation = max(probation, 1)
    }

    /// Takes in one packet.
    ///
    /// - Parameters:
    ///   - header: the packet's header; its SSRC is not looked at.
    ///   - clockRate: the clock rate of its payload type in Hz; 0 leaves jitter alone.
    ///   - arrival: when it came.
    /// - Returns: what became of the packet.
    public mutating func receive(_ header: RTPHeader, clockRate: UInt32, arrival: MediaTime) -> Verdict {
        let verdict = updateSequence(header.sequenceNumber)
        switch verdict {
        case .inOrder, .reordered, .restarted:
            if verdict == .restarted { lastTransit = nil }
            updateJitter(timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
        case .probation, .duplicate, .badSequence:
            break
        }
        return verdict
    }

    /// The packet's sequence number, extended beyond 16 bits.
    public func extended(_ sequenceNumber: UInt16) -> Int64 {
        SequenceNumber(sequenceNumber).extended(near: extendedHighest)
    }

    /// Packets that should have come, by the sequence numbers since the last restart.
    public var expectedCount: Int64 { isValid ? extendedHighest &- base &+ 1 : 0 }

    /// Packets that never came: duplicates do not hide them.
    public var lostCount: UInt64 {
        let distinct = Int64(clamping: receivedSinceBase)
        return lostBeforeRestart &+ UInt64(max(expectedCount &- distinct, 0))
    }

    /// Interarrival jitter, in units of the clock rate.
    public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

    /// Interarrival jitter as a time, by the clock rate of the last packet.
    public var jitterDuration: Duration {
        guard jitterClockRate > 0 else { return .zero }
        return Duration(wholeNanoseconds: scaledJitter &* 62_500_000 / Int64(jitterClockRate))
    }

    /// The low 32 bits of the extended highest sequence number, as a report block carries them.
    public var reportedHighest: UInt32 { UInt32(truncatingIfNeeded: extendedHighest) }

    /// Expected less received packets since the last restart, duplicates counted as received, clamped to 24 bits.
    public var cumulativeLost: Int32 {
        let lost = expectedCount &- Int64(clamping: receivedSinceBase &+ Int64(clamping: duplicatesSinceBase))
        return Int32(clamping: min(max(lost, -0x80_0000), 0x7F_FFFF))
    }

    /// The fraction of packets lost since the last call, in 1/256, as a report block carries it.
    public mutating func takeFractionLost() -> UInt8 {
        let expected = expectedCount
        let received = UInt64(clamping: receivedSinceBase) &+ duplicatesSinceBase
        let expectedInterval = expected &- expectedPrior
        let receivedInterval = Int64(clamping: received) &- Int64(clamping: receivedPrior)
        expectedPrior = expected
        receivedPrior = received
        let lostInterval = expectedInterval &- receivedInterval
        guard expectedInterval > 0, lostInterval > 0 else { return 0 }
        return UInt8(clamping: (lostInterval << 8) / expectedInterval)
    }

    private mutating func updateSequence(_ sequenceNumber: UInt16) -> Verdict {
        guard isValid else { return updateProbation(sequenceNumber) }
        let highest = SequenceNumber(UInt16(truncatingIfNeeded: extendedHighest))
        let step = Int(sequenceNumber &- highest.rawValue)
        if step > 0, step < Self.maximumDropout {
            extendedHighest &+= Int64(step)
            recent = step < 128 ? recent << UInt128(step) | 1 : 1
            count()
            return .inOrder
        }
        let age = Int(highest.rawValue &- sequenceNumber)
        if age <= Self.maximumMisorder {
            return updateBehind(age)
        }
        if sequenceNumber == awaitedAfterJump {
            lostBeforeRestart = lostCount
            restartCount &+= 1
            begin(at: sequenceNumber)
            return .restarted
        }
        awaitedAfterJump = sequenceNumber &+ 1
        badSequenceCount &+= 1
        return .badSequence
    }

    private mutating func updateProbation(_ sequenceNumber: UInt16) -> Verdict {
        if remainingProbation < probation, sequenceNumber == expectedInOrder {
            remainingProbation &-= 1
        } else {
            remainingProbation = probation &- 1
        }
        expectedInOrder = sequenceNumber &+ 1
        guard remainingProbation == 0 else { return .probation }
        isValid = true
        begin(at: sequenceNumber)
        // The packets of the probation were in sequence, so they are known to have come.
        base &-= Int64(probation &- 1)
        recent = probation < 128 ? (1 << UInt128(probation)) &- 1 : .max
        receivedSinceBase = Int64(probation)
        receivedCount = UInt64(probation)
        return .inOrder
    }

    private mutating func updateBehind(_ age: Int) -> Verdict {
        let bit = UInt128(1) << UInt128(age)
        guard recent & bit == 0 else {
            duplicateCount &+= 1
            duplicatesSinceBase &+= 1
            receivedCount &+= 1
            return .duplicate
        }
        recent |= bit
        reorderedCount &+= 1
        count()
        base = min(base, extendedHighest &- Int64(age))
        return .reordered
    }

    private mutating func begin(at sequenceNumber: UInt16) {
        // One cycle up, so that a packet from before the first keeps a positive number.
        extendedHighest = 0x1_0000 &+ Int64(sequenceNumber)
        base = extendedHighest
        recent = 1
        awaitedAfterJump = nil
        receivedSinceBase = 0
        duplicatesSinceBase = 0
        expectedPrior = 0
        receivedPrior = 0
        count()
    }

    private mutating func count() {
        receivedCount &+= 1
        receivedSinceBase &+= 1
        awaitedAfterJump = nil
    }

    private mutating func updateJitter(timestamp: UInt32, clockRate: UInt32, arrival: MediaTime) {
        guard clockRate > 0 else { return }
        if clockRate != jitterClockRate {
            scaledJitter = jitterClockRate > 0 ? scaledJitter &* Int64(clockRate) / Int64(jitterClockRate) : 0
            jitterClockRate = clockRate
            lastTransit = nil
        }
        let origin = arrivalOrigin ?? arrival
        arrivalOrigin = origin
        let transit =
            Int32(truncatingIfNeeded: (arrival - origin).clockUnits(at: clockRate)) &- Int32(bitPattern: timestamp)
        defer { lastTransit = transit }
        guard let lastTransit else { return }
        let difference = Int64(transit &- lastTransit).magnitude
        scaledJitter &+= Int64(difference) &- ((scaledJitter &+ 8) >> 4)
    }
}

extension Duration {
    /// The whole units of a clock of `clockRate` Hz in the duration, without overflow for any duration.
    func clockUnits(at clockRate: UInt32) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
    }
}
