package import CallBasics

/// What one receiver knows of one source: validity, extended sequence numbers, loss and jitter.
///
/// A new source counts as valid after `probation` packets in sequence, which are then counted, too. A jump of sequence
/// numbers of 3000 or more, or further back than 100, or for which there was no time, is held to be an error until the next
/// packet continues it: then the source has restarted, and both count.
/// Units: jitter and timestamps in units of the clock rate.
/// Source: RFC 3550, sections 6.4.1, A.1 (sequence numbers), A.3 (loss), A.8 (jitter).
package struct ReceiverStatistics: Sendable, BitwiseCopyable {
    /// What became of one packet.
    package enum Verdict: UInt8, Sendable, BitwiseCopyable {
        /// The source is not yet valid.
        case probation
        /// The newest packet so far.
        case inOrder
        /// A packet that comes after a newer one, for the first time.
        case reordered
        /// A packet that came before.
        case duplicate
        /// A sequence number far from all others; not counted unless the next packet continues it.
        case badSequence
        /// The second packet of a new sequence: all counts begin again with it and the one before.
        case restarted
    }

    /// Sequence numbers may leap ahead by less than this.
    package static var maximumDropout: Int { 3000 }
    /// Sequence numbers may fall back by at most this; also the reach of the duplicate check.
    package static var maximumMisorder: Int { 100 }

    /// Packets in sequence that make a new source valid.
    private let probation: Int
    /// Whether the source has passed its probation.
    package private(set) var isValid = false
    /// Packets counted since the source became valid, duplicates included.
    package private(set) var receivedCount: UInt64 = 0
    /// Packets that came more than once.
    package private(set) var duplicateCount: UInt64 = 0
    /// Packets that came after a newer one.
    package private(set) var reorderedCount: UInt64 = 0
    /// Packets with a sequence number far from all others.
    package private(set) var badSequenceCount: UInt64 = 0
    /// Times that the source began a new sequence.
    package private(set) var restartCount: UInt64 = 0
    /// The highest sequence number so far, with its count of cycles above 16 bits; the first cycle is 0.
    package private(set) var extendedHighest: Int64 = 0
    /// Which packets came.
    package var record = ReceptionRecord()

    private var base: Int64 = 0
    private var remainingProbation: Int
    private var awaitedAfterJump: UInt16?
    private var check = SequenceCheck()
    private var lostBeforeRestart: UInt64 = 0

    private var expectedPrior: Int64 = 0
    private var receivedPrior: UInt64 = 0
    private var receivedSinceBase: Int64 = 0
    private var duplicatesSinceBase: UInt64 = 0

    private var arrivalOrigin: MediaTime?
    private var jitterClockRate: UInt32 = 0
    private var lastTransit: Int32?
    /// 16 times the jitter, as in A.8.
    private var scaledJitter: Int64 = 0

    private var lastTimestamp: UInt32?
    private var lastStep: UInt32 = 0
    private var packetUnits: UInt32 = 0
    private var unitRate: UInt32 = 0

    /// The statistics of a source that has sent nothing.
    ///
    /// - Parameter probation: Packets in sequence that make it valid, at least 1.
    package init(probation: Int = 2) {
        self.probation = max(probation, 1)
        remainingProbation = max(probation, 1)
    }

    /// Takes in one packet.
    ///
    /// - Parameters:
    ///   - header: The packet's header; its SSRC is not looked at.
    ///   - clockRate: The clock rate of its time stamps in Hz; 0 where they do not tell when the content was made.
    ///   - arrival: When it came.
    /// - Returns: What became of the packet.
    package mutating func receive(_ header: RTPHeader, clockRate: UInt32, arrival: MediaTime) -> Verdict {
        let previous = record.isEmpty ? nil : record.highest
        let isNext = header.sequenceNumber == previous.map { $0 &+ 1 }
        let isJump =
            !isNext
            && check.isJump(header, clockRate: clockRate, arrival: arrival, packetNanoseconds: packetNanoseconds)
        let verdict = updateSequence(header.sequenceNumber, isJump: isJump)
        switch verdict {
        case .duplicate, .badSequence:
            return verdict
        case .restarted:
            lastTransit = nil
            lastTimestamp = nil
        case .probation where record.highest != previous.map({ $0 &+ 1 }):
            lastTimestamp = nil
        case .probation, .inOrder, .reordered:
            break
        }
        if verdict != .probation {
            updateJitter(timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
        }
        guard verdict != .reordered else { return verdict }
        check.note(header, clockRate: clockRate, arrival: arrival)
        measure(header, isNext: isNext, clockRate: clockRate)
        return verdict
    }

    /// The packet's sequence number, extended beyond 16 bits.
    package func extended(_ sequenceNumber: UInt16) -> Int64 {
        SequenceNumber(sequenceNumber).extended(near: extendedHighest)
    }

    /// Packets that should have come, by the sequence numbers since the last restart.
    package var expectedCount: Int64 { isValid ? extendedHighest &- base &+ 1 : 0 }

    /// Packets that never came: duplicates do not hide them.
    package var lostCount: UInt64 {
        let distinct = Int64(clamping: receivedSinceBase)
        return lostBeforeRestart &+ UInt64(max(expectedCount &- distinct, 0))
    }

    /// What a packet of the source lasts, in nanoseconds; 0 until two steps of the time stamp were equal.
    package var packetNanoseconds: Int64 {
        unitRate > 0 ? Int64(packetUnits) &* 1_000_000_000 / Int64(unitRate) : 0
    }

    /// Interarrival jitter, in units of the clock rate.
    package var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

    /// Interarrival jitter as a time, by the clock rate of the last packet.
    package var jitterDuration: Duration {
        guard jitterClockRate > 0 else { return .zero }
        return Duration(wholeNanoseconds: scaledJitter &* 62_500_000 / Int64(jitterClockRate))
    }

    /// The low 32 bits of the extended highest sequence number, as a report block carries them.
    package var reportedHighest: UInt32 { UInt32(truncatingIfNeeded: extendedHighest) }

    /// Expected less received packets since the last restart, duplicates counted as received, clamped to 24 bits.
    package var cumulativeLost: Int32 {
        let lost = expectedCount &- Int64(clamping: receivedSinceBase &+ Int64(clamping: duplicatesSinceBase))
        return Int32(clamping: min(max(lost, -0x80_0000), 0x7F_FFFF))
    }

    /// The fraction of packets lost since the last call, in 1/256, as a report block carries it.
    package mutating func takeFractionLost() -> UInt8 {
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

    // MARK: Sequence numbers

    private mutating func updateSequence(_ sequenceNumber: UInt16, isJump: Bool) -> Verdict {
        guard isValid else { return updateProbation(sequenceNumber) }
        if sequenceNumber == awaitedAfterJump {
            restart(at: sequenceNumber)
            return .restarted
        }
        let step = Int(sequenceNumber &- record.highest)
        if step > 0, step < Self.maximumDropout, !isJump {
            extendedHighest &+= Int64(step)
            record.advance(by: step)
            count()
            return .inOrder
        }
        let age = Int(record.highest &- sequenceNumber)
        if age <= Self.maximumMisorder, !isJump { return updateBehind(age) }
        awaitedAfterJump = sequenceNumber &+ 1
        badSequenceCount &+= 1
        return .badSequence
    }

    /// The packet continues the one before, which was no stray then.
    private mutating func restart(at sequenceNumber: UInt16) {
        lostBeforeRestart = lostCount
        restartCount &+= 1
        badSequenceCount &-= 1
        record.begin(at: sequenceNumber &- 1)
        record.advance(by: 1)
        begin(at: sequenceNumber)
        base &-= 1
        count()
    }

    private mutating func updateProbation(_ sequenceNumber: UInt16) -> Verdict {
        if remainingProbation < probation, sequenceNumber == record.highest &+ 1 {
            remainingProbation &-= 1
            record.advance(by: 1)
        } else {
            remainingProbation = probation &- 1
            // What came before was a stray.
            record = ReceptionRecord()
            record.begin(at: sequenceNumber)
        }
        guard remainingProbation == 0 else { return .probation }
        isValid = true
        begin(at: sequenceNumber)
        // The packets of the probation were in sequence, so they are known to have come.
        base &-= Int64(probation &- 1)
        receivedSinceBase = Int64(probation)
        receivedCount = UInt64(probation)
        return .inOrder
    }

    private mutating func updateBehind(_ age: Int) -> Verdict {
        guard record.fill(age: age) else {
            duplicateCount &+= 1
            duplicatesSinceBase &+= 1
            receivedCount &+= 1
            return .duplicate
        }
        reorderedCount &+= 1
        count()
        base = min(base, extendedHighest &- Int64(age))
        return .reordered
    }

    private mutating func begin(at sequenceNumber: UInt16) {
        extendedHighest = Int64(sequenceNumber)
        base = extendedHighest
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

    // MARK: Time stamps

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

    /// Learns the length of packets from time stamps: what two steps in a row agree on, 200 ms at most.
    ///
    /// Longer ones are silence that was left out, where Opus sends a packet every 400 ms.
    /// Source: RFC 3551, section 4.2, for the longest packet.
    private mutating func measure(_ header: RTPHeader, isNext: Bool, clockRate: UInt32) {
        defer { lastTimestamp = clockRate > 0 ? header.timestamp : nil }
        guard isNext, clockRate > 0, let lastTimestamp else { return }
        let units = header.timestamp &- lastTimestamp
        if units == lastStep, units > 0, units <= clockRate / 5 {
            packetUnits = units
            unitRate = clockRate
        }
        lastStep = units
    }
}
