/// Finds out which packets the redundant blocks of a packet stand for, and which of them are missing.
///
/// A block tells only how much older it is than the packet. With the spacing of packets, which consecutive ones show,
/// that gives its sequence number. What does not fit, because a silence or a key lies between, is left out: a block in
/// the wrong place would be worse than a loss.
/// Shape: remembers the last 64 sequence numbers.
/// Thread: media; no method allocates.
/// Source: RFC 2198, section 3
package struct REDReceiver: Sendable, BitwiseCopyable {
    /// A block may be so many packets older than the one that carries it.
    private static var maximumDistance: Int { REDPayload.maximumRedundantCount }
    private static var memory: Int { 64 }

    private var newestSequence = SequenceNumber(0)
    private var newestTimestamp: UInt32 = 0
    /// Clock-rate units between packets; 0 while unknown.
    private var spacing = 0
    /// Bit n stands for the packet n before the newest: whether it, or a copy of it, has been handed on.
    private var handedOn: UInt64 = 0
    private var hasAudio = false

    /// A receiver that has seen no packet.
    package init() {}

    /// Takes note of a packet whose own content is handed on.
    ///
    /// - Parameters:
    ///   - header: The packet's header.
    ///   - isAudio: Whether it is the codec's: timestamps of keys stand still and tell no spacing.
    package mutating func note(_ header: RTPHeader, isAudio: Bool) {
        let sequence = SequenceNumber(header.sequenceNumber)
        let distance = sequence.distance(from: newestSequence)
        guard handedOn != 0, abs(distance) < Self.memory else {
            self = REDReceiver()
            take(header, sequence, isAudio: isAudio)
            handedOn = 1
            return
        }
        guard distance > 0 else {
            handedOn |= 1 << UInt64(-distance)
            return
        }
        let units = Int(Int32(bitPattern: header.timestamp &- newestTimestamp))
        if isAudio, hasAudio, distance == 1, !header.isMarked, units > 0 { spacing = units }
        handedOn = handedOn << UInt64(distance) | 1
        take(header, sequence, isAudio: isAudio)
    }

    /// The sequence number of a block of audio that is to be handed on; it counts as handed on from now.
    ///
    /// - Parameters:
    ///   - timestampOffset: By how much the block is older than the packet that carries it.
    ///   - header: That packet's header; `note` has not seen it yet.
    /// - Returns: nil when the packet is known already, or cannot be told.
    package mutating func claim(timestampOffset: UInt16, before header: RTPHeader) -> UInt16? {
        let age = Int(timestampOffset)
        guard handedOn != 0, spacing > 0, age > 0, age % spacing == 0 else { return nil }
        let steps = age / spacing
        guard steps <= Self.maximumDistance else { return nil }
        let sequence = SequenceNumber(header.sequenceNumber &- UInt16(truncatingIfNeeded: steps))
        let distance = sequence.distance(from: newestSequence)
        guard abs(distance) < Self.memory else { return nil }
        let timestamp = header.timestamp &- UInt32(timestampOffset)
        let units = Int(Int32(bitPattern: timestamp &- newestTimestamp))
        // Number and time must agree with the newest audio packet, but a silence may lie after it.
        guard distance <= 0 else {
            guard !hasAudio || units >= distance &* spacing else { return nil }
            handedOn = handedOn << UInt64(distance) | 1
            (newestSequence, newestTimestamp, hasAudio) = (sequence, timestamp, true)
            return sequence.rawValue
        }
        let bit: UInt64 = 1 << UInt64(-distance)
        guard hasAudio, units == distance &* spacing, handedOn & bit == 0 else { return nil }
        handedOn |= bit
        return sequence.rawValue
    }

    private mutating func take(_ header: RTPHeader, _ sequence: SequenceNumber, isAudio: Bool) {
        newestSequence = sequence
        newestTimestamp = header.timestamp
        hasAudio = isAudio
    }
}
