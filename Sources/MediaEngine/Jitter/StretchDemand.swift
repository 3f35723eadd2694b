import CallBasics

/// By how much the sound that waits is to be lengthened or shortened, so that its delay comes to the target.
///
/// Whether the delay is too short shows when a packet is played; whether it is too long, at any time. Between the target
/// and `slack` above it nothing is done.
/// Units: times in nanoseconds.
/// Thread: media.
struct StretchDemand {
    /// The delay is right between the target and so much more.
    static var slack: Int64 { 18_000_000 }
    /// Shortening stops so far above the target: a tick is 10 ms, and a packet must be there when the tick begins.
    private static var guardInterval: Int64 { 10_000_000 }

    /// How much earlier than needed the last packet would have had to come; below 0 when the delay is too short.
    private var margin: Int64 = 0

    /// A packet was played with a delay that is longer than the target by `surplus`.
    mutating func played(surplus: Int64) { margin = surplus }

    /// The sound was lengthened by `time`.
    mutating func lengthened(by time: Int64) { margin &+= time }

    /// How much the sound is to grow (above 0) or shrink (below 0) when the delay is longer than the target by `surplus`.
    func wish(surplus: Int64) -> Int64 {
        if margin < 0 { return -margin }
        return surplus > Self.slack ? Self.guardInterval &- surplus : 0
    }
}
