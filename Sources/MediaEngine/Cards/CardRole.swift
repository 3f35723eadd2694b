package import CallBasics

/// What an application uses a card for; the names are those of the devices that the iOS engine has.
package enum CardRole: String, Hashable, Sendable, CaseIterable {
    /// The call card: duplex, small buffers.
    case call = "AU: Audio Unit Receiver"
    /// The ringer card: playback only, filled in advance, opened when needed.
    case ringer = "AQ: Audio Queue Device"

    /// "AU" or "AQ".
    package var shortName: String { String(rawValue.prefix(2)) }

    /// The shape in which a card is opened for this role.
    package func configuration(_ format: AudioFormat) -> CardConfiguration {
        switch self {
        case .call: CardConfiguration(format: format)
        case .ringer: CardConfiguration(format: format, buffer: .milliseconds(60), prefill: .milliseconds(20))
        }
    }

    /// "role:AU" or "role:AQ".
    package var id: CardID { CardID("role:\(shortName)") }

    /// Whether `name` means this role: its name or its identity.
    func isNamed(_ name: String) -> Bool { name == rawValue || name == id.description }
}

/// A role as a card: it opens what the role is bound to.
package final class RoleCard: SoundCard {
    /// The role.
    package let role: CardRole
    /// What playback is bound to.
    package let playbackCard: any SoundCard
    /// What capture is bound to; nil for the ringer.
    package let captureCard: (any SoundCard)?
    /// The directions of which somebody has said what they stand for, so that they must open.
    package let boundByHand: Set<CardDirection>

    /// The role `role` over the given cards.
    package init(
        _ role: CardRole,
        playback: any SoundCard,
        capture: (any SoundCard)?,
        boundByHand: Set<CardDirection> = []
    ) {
        self.role = role
        self.boundByHand = boundByHand
        playbackCard = playback
        captureCard = capture
    }

    /// The role's name and identity, and what its cards can do.
    package var description: CardDescription {
        CardDescription(
            id: role.id,
            name: role.rawValue,
            backend: playbackCard.description.backend,
            directions: captureCard == nil ? [.playback] : .duplex,
            state: playbackCard.description.state
        )
    }

    /// Opens the card that `direction` is bound to.
    ///
    /// - Throws: `CardError` when the role has no such direction, or its card does not open.
    package func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        try card(direction).open(direction, configuration, at: now)
    }

    /// The volume of the card that `direction` is bound to.
    ///
    /// - Throws: `CardError` when its mixer fails.
    package func volume(_ direction: CardDirection) throws(CardError) -> Double? {
        try card(direction).volume(direction)
    }

    /// Sets the volume of the card that `direction` is bound to.
    ///
    /// - Throws: `CardError` when it has no mixer, or the mixer fails.
    package func setVolume(_ volume: Double, _ direction: CardDirection) throws(CardError) {
        try card(direction).setVolume(volume, direction)
    }

    private func card(_ direction: CardDirection) throws(CardError) -> any SoundCard {
        guard direction == .capture else { return playbackCard }
        guard let captureCard else { throw lacking(.capture) }
        return captureCard
    }
}
