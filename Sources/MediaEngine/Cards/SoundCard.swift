public import CallBasics

/// A sound card: it describes itself, and opens in either direction.
///
/// Thread: opening may take long (a sound server, a USB card waking up); the engine does it on a thread of its own. The
/// rest control.
public protocol SoundCard: AnyObject, Sendable {
    /// Identity, name, directions and state.
    var description: CardDescription { get }

    /// Opens the card in one direction.
    ///
    /// - Parameters:
    ///   - direction: Whether it is to play or to record.
    ///   - configuration: What is asked of the card.
    ///   - now: The time of the opening; the cards that live in virtual time know no other.
    /// - Returns: What the media thread uses; freeing it closes the card.
    /// - Throws: `CardError` when the card is absent, busy or cannot do what is asked.
    func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint

    /// The volume of `direction`, or nil where the card has no mixer.
    ///
    /// 0 to 1 over the range of the card's own control, in its steps: neither dB nor a factor of amplitude.
    /// - Throws: `CardError` when the mixer is there but fails.
    func volume(_ direction: CardDirection) throws(CardError) -> Double?

    /// Sets the volume of `direction`, 0 to 1 as `volume` tells it; what is outside is brought to the nearer end.
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
    package func lacking(_ direction: CardDirection) -> CardError {
        CardError(.unsupported, "\(description.name) has no \(direction). Choose a card that lists \(direction).")
    }
}
