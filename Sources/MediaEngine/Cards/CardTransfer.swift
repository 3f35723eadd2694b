/// How one write or read went.
public struct CardTransfer: Hashable, Sendable, BitwiseCopyable {
    /// The state that the transfer found the card in.
    public enum Condition: Hashable, Sendable, BitwiseCopyable {
        /// As it should be.
        case running
        /// The card ran empty (playback) or over (capture); it has been started again.
        case xrun
        /// The machine slept; the card has been started again, or will be at one of the next transfers.
        case suspended
        /// The card is gone; this endpoint is of no further use.
        case gone
    }

    /// Frames that went through.
    package var frameCount: Int
    /// What the card was found in.
    package var condition: Condition
    /// Frames that were not heard or not recorded because of the condition.
    package var lostFrameCount: Int

    /// A transfer of `frameCount` frames.
    ///
    /// - Parameters:
    ///   - frameCount: Frames that went through, from 0 to as many as were offered or asked for.
    ///   - condition: What the card was found in.
    ///   - lostFrameCount: Frames that were not heard or not recorded because of the condition, from 0.
    public init(frameCount: Int, condition: Condition = .running, lostFrameCount: Int = 0) {
        self.frameCount = frameCount
        self.condition = condition
        self.lostFrameCount = lostFrameCount
    }
}
