import RTP

/// Where packets stand in their stream: numbers and time stamps that never wrap, and which numbers were played.
///
/// Units: timestamps in clock-rate units.
struct PacketTimeline: BitwiseCopyable {
    private var highestSequence: Int64?
    /// What is added to numbers, since the source began new ones.
    private var shift: UInt16 = 0
    private var highestTimestamp: Int64 = 0
    /// Where the packet of the highest number ends.
    private var highestEnd: Int64 = 0
    /// The number of the packet played last, or that before the first.
    private(set) var playedSequence: Int64 = 0
    /// Whether a packet has been played or thrown away.
    private(set) var hasPlayed = false
    /// Packets of a number only that were passed behind a gap since the last packet was played.
    private var passedNumbers: Int64 = 0
    /// Packets that nothing here decodes, which had their turn since the last packet was played.
    private(set) var undecodableCount: Int64 = 0
    /// Whether the packet passed last was comfort noise, or of another kind than sound with none missing before it:
    /// the sender goes on, but not with sound.
    private(set) var isSoundPaused = false

    /// The extended number and time stamp of a packet that comes when `position` is played, or would be.
    ///
    /// Some senders repeat the time stamp of the last sound in packets of comfort noise: such noise is moved behind what came
    /// before it, and does not begin before it can be played.
    func place(
        of header: PacketHeader,
        position: @autoclosure () -> Int64
    ) -> (sequence: Int64, timestamp: Int64, isMoved: Bool) {
        guard let highestSequence else {
            return (Int64(header.sequenceNumber &+ shift) &+ 1 << 16, Int64(header.position) &+ 1 << 32, false)
        }
        let sequence = SequenceNumber(header.sequenceNumber &+ shift).extended(near: highestSequence)
        let step = Int32(bitPattern: header.position &- UInt32(truncatingIfNeeded: highestTimestamp))
        let timestamp = highestTimestamp &+ Int64(step)
        guard header.isComfortNoise, sequence > highestSequence, timestamp < highestEnd else {
            return (sequence, timestamp, false)
        }
        return (sequence, max(highestEnd, position()), true)
    }

    /// The place of a packet of a number only, which becomes known; nil before the first packet.
    mutating func placeOfNumber(_ number: UInt16) -> (sequence: Int64, timestamp: Int64)? {
        guard let highest = highestSequence else { return nil }
        let sequence = SequenceNumber(number &+ shift).extended(near: highest)
        highestSequence = max(highest, sequence)
        return (sequence, highestTimestamp)
    }

    /// A packet was taken.
    mutating func note(sequence: Int64, timestamp: Int64, duration: Int64) {
        guard sequence >= highestSequence ?? .min else { return }
        highestSequence = sequence
        highestTimestamp = timestamp
        highestEnd = timestamp &+ duration
    }

    /// The packet numbered `sequence` has been played or thrown away; comfort noise pauses the sound.
    mutating func pass(_ sequence: Int64, isComfortNoise: Bool) {
        playedSequence = sequence
        hasPlayed = true
        passedNumbers = 0
        undecodableCount = 0
        isSoundPaused = isComfortNoise
    }

    /// The packet numbered `sequence` is next, whatever is missing before it.
    mutating func skip(to sequence: Int64) {
        playedSequence = sequence &- 1
        passedNumbers = 0
        undecodableCount = 0
        isSoundPaused = false
    }

    /// A packet of a number only has had its turn.
    mutating func passNumber(_ sequence: Int64, isUndecodable: Bool) {
        if isUndecodable { undecodableCount &+= 1 }
        guard sequence == playedSequence &+ 1 else {
            passedNumbers &+= 1
            return
        }
        playedSequence = sequence
        if !isUndecodable { isSoundPaused = true }
    }

    /// Numbers between the packet played last and `sequence` that belong to no packet that came.
    func missingCount(before sequence: Int64) -> Int64 { sequence &- playedSequence &- 1 &- passedNumbers }

    /// The packet numbered `number` follows the newest, whatever number that had.
    mutating func beginNumbers(at number: UInt16) {
        guard let highestSequence else { return }
        shift = UInt16(truncatingIfNeeded: highestSequence &+ 1) &- number
    }

    /// Forgets everything.
    mutating func reset() { self = PacketTimeline() }
}
