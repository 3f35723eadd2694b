package import CallBasics

/// What the playout knows of its jitter buffer and of the sound it plays, handed to the session for extended reports.
package struct PlayoutQuality: Hashable, Sendable, BitwiseCopyable {
    /// Packets played so far.
    package var playedCount = 0
    /// The sum of their waits, from arrival to sound.
    package var totalWaitNanoseconds: Int64 = 0
    /// When sound of the present source had to be invented.
    package var interruptions = PlayoutInterruptions()
    /// The delay of the earliest packet that would still be taken.
    package var maximumDelay = Duration.zero
    /// The largest `maximumDelay` that the buffer can take on.
    package var absoluteMaximumDelay = Duration.zero
    /// Whether the buffer adapts its delay.
    package var isAdaptive = false
    /// The level of speech, in dBov of a sine; nil until some was heard.
    package var speechLevel: Decibels?
    /// The level in its pauses, in dBov of a sine; nil until some were heard.
    package var noiseLevel: Decibels?

    /// Nothing played yet.
    package init() {}

    /// The mean wait of the packets played since `earlier`, or of all when none was.
    package func meanWait(since earlier: PlayoutQuality) -> Duration {
        let count = playedCount &- earlier.playedCount
        guard count <= 0 else {
            return .nanoseconds((totalWaitNanoseconds &- earlier.totalWaitNanoseconds) / Int64(count))
        }
        return playedCount > 0 ? .nanoseconds(totalWaitNanoseconds / Int64(playedCount)) : .zero
    }
}
