/// Which way sound goes through a card.
public enum CardDirection: String, Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// From the card: a microphone.
    case capture
    /// To the card: a loudspeaker.
    case playback

    /// "capture" or "playback".
    public var description: String { rawValue }
}
