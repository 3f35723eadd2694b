/// What the playout knows of its jitter buffer and of the sound it plays, handed to the session for extended reports.
public struct PlayoutQuality: Hashable, Sendable, BitwiseCopyable {
    /// Packets played so far.
    public var playedCount = 0
    /// The sum of their waits, from arrival to sound.
    public var totalWaitNanoseconds: Int64 = 0
    /// The delay of the earliest packet that would still be taken.
    public var maximumDelay = Duration.zero
    /// The largest `maximumDelay` that the buffer can take on.
    public var absoluteMaximumDelay = Duration.zero
    /// Whether the buffer adapts its delay.
    public var isAdaptive = false
    /// The level of speech, in dBov of a sine; nil until some was heard.
    public var speechLevel: Decibels?
    /// The level in its pauses, in dBov of a sine; nil until some were heard.
    public var noiseLevel: Decibels?

    /// Nothing played yet.
    public init() {}

    /// The mean wait of the packets played since `earlier`, or of all when none was.
    public func meanWait(since earlier: PlayoutQuality) -> Duration {
        let count = playedCount &- earlier.playedCount
        guard count <= 0 else {
            return .nanoseconds((totalWaitNanoseconds &- earlier.totalWaitNanoseconds) / Int64(count))
        }
        return playedCount > 0 ? .nanoseconds(totalWaitNanoseconds / Int64(playedCount)) : .zero
    }
}
