/// Which way sound goes through a card.
public enum CardDirection: String, Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// From the card: a microphone.
    case capture
    /// To the card: a loudspeaker.
    case playback

    /// "capture" or "playback".
    public var description: String { rawValue }

    /// What a card must be capable of.
    package var capability: CardCapabilities { self == .capture ? .capture : .playback }
}
