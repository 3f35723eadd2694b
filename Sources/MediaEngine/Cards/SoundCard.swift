/// A sound card: it describes itself, and opens for playback and for capture.
///
/// Thread: control. Opening may take long (a sound server, a USB card waking up) and never happens on the media
/// thread, which is handed what was opened.
public protocol SoundCard: AnyObject, Sendable {
    /// Identity, name, capabilities and state.
    var description: CardDescription { get }

    /// Opens the card to play.
    ///
    /// - Parameters:
    ///   - configuration: What is asked of the card.
    ///   - now: The time of the opening; the cards that live in virtual time know no other.
    /// - Returns: What the media thread uses; freeing it closes the card.
    /// - Throws: `CardError` when the card is absent, busy or cannot do what is asked.
    func openPlayback(_ configuration: CardConfiguration, at now: MediaTime) throws(CardError) -> any CardPlayback

    /// Opens the card to record.
    ///
    /// - Parameters:
    ///   - configuration: What is asked of the card.
    ///   - now: The time of the opening; the cards that live in virtual time know no other.
    /// - Returns: What the media thread uses; freeing it closes the card.
    /// - Throws: `CardError` when the card is absent, busy or cannot do what is asked.
    func openCapture(_ configuration: CardConfiguration, at now: MediaTime) throws(CardError) -> any CardCapture

    /// The volume of `direction`, 0 to 1, or nil where the card has no mixer.
    ///
    /// - Throws: `CardError` when the mixer is there but fails.
    func volume(_ direction: CardDirection) throws(CardError) -> Double?

    /// Sets the volume of `direction`, 0 to 1.
    ///
    /// - Throws: `CardError` when the card has no mixer, or the mixer fails.
    func setVolume(_ volume: Double, _ direction: CardDirection) throws(CardError)
}

extension SoundCard {
    /// No mixer.
    public func volume(_ direction: CardDirection) throws(CardError) -> Double? { nil }

    /// Refuses: there is no mixer.
    public func setVolume(_ volume: Double, _ direction: CardDirection) throws(CardError) {
        throw CardError(
            .unsupported,
            "\(description.name) has no volume control. Change the volume of the stream instead."
        )
    }

    /// The error of a card that lacks `direction`.
    func lacking(_ direction: CardDirection) -> CardError {
        CardError(.unsupported, "\(description.name) has no \(direction). Choose a card that lists \(direction).")
    }
}

/// Which way sound goes through a card.
public enum CardDirection: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
    /// From the card: a microphone.
    case capture
    /// To the card: a loudspeaker.
    case playback

    /// "capture" or "playback".
    public var description: String { rawValue }
}

/// What is asked of a card when it is opened.
public struct CardConfiguration: Hashable, Sendable {
    /// The samples that go through.
    ///
    /// The rate must be one the card takes; one or two channels are mapped.
    public var format: AudioFormat
    /// Audio that the card moves at once.
    ///
    /// The card may choose another.
    public var period: Duration
    /// Audio that the card's buffer holds.
    ///
    /// The card may choose another.
    public var buffer: Duration
    /// Silence put in front of the first block of playback, and after each xrun: what a late tick may cost.
    public var prefill: Duration

    /// The low-latency shape of a call: 10 ms periods, a buffer of three, one of them filled in advance.
    public init(
        format: AudioFormat,
        period: Duration = .milliseconds(10),
        buffer: Duration = .milliseconds(30),
        prefill: Duration = .milliseconds(10)
    ) {
        self.format = format
        self.period = period
        self.buffer = buffer
        self.prefill = prefill
    }
}
