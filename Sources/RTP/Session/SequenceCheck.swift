internal import CallBasics

/// Tells numbers that jumped from packets that were lost: so many packets cannot be missing for which there was no time, by
/// the sender's time stamps or by the clock here, and none can be older than its time stamp says.
///
/// A gateway that swaps the source behind it keeps its SSRC, while numbers and time stamps jump as they like.
/// Units: times in nanoseconds.
/// Thread: media.
struct SequenceCheck: BitwiseCopyable, Sendable {
    /// The newest packet whose time stamp tells when its content was made.
    private struct Reference: BitwiseCopyable {
        let sequenceNumber: UInt16
        let timestamp: UInt32
        let clockRate: UInt32
        let arrival: MediaTime
    }

    private var reference: Reference?

    /// Numbers may be ahead of the time that passed by so much: packets of other lengths, and losses that the network made
    /// good.
    private static var tolerance: Int64 { 400_000_000 }
    /// Packets may come behind so many later ones whatever their time stamps say.
    private static var reordering: Int64 { 20 }

    /// Whether the number of a packet cannot be one of the sequence so far.
    ///
    /// - Parameters:
    ///   - header: The packet's header.
    ///   - clockRate: That of its time stamp in Hz; 0 where that tells nothing.
    ///   - arrival: When it came.
    ///   - packetNanoseconds: What a packet lasts; 0 while that is not known.
    /// - Returns: Whether the sequence has jumped.
    func isJump(_ header: RTPHeader, clockRate: UInt32, arrival: MediaTime, packetNanoseconds: Int64) -> Bool {
        guard let reference, clockRate > 0, reference.clockRate == clockRate, packetNanoseconds > 0 else {
            return false
        }
        let step = Int64(Int16(bitPattern: header.sequenceNumber &- reference.sequenceNumber))
        let numbered = step &* packetNanoseconds
        let units = Int64(Int32(bitPattern: header.timestamp &- reference.timestamp))
        let told = units &* 1_000_000_000 / Int64(clockRate)
        if step > 0 {
            return numbered &- max(told, arrival.nanoseconds(since: reference.arrival)) > Self.tolerance
        }
        return step < -Self.reordering && told &- numbered > Self.tolerance
    }

    /// Takes the newest packet.
    mutating func note(_ header: RTPHeader, clockRate: UInt32, arrival: MediaTime) {
        guard clockRate > 0 else { return }
        reference = Reference(
            sequenceNumber: header.sequenceNumber,
            timestamp: header.timestamp,
            clockRate: clockRate,
            arrival: arrival
        )
    }
}
