import Synchronization

/// What an application uses a card for; the names are those of the devices that the iOS engine has.
public enum CardRole: String, Hashable, Sendable, CaseIterable {
    /// The call card: duplex, small buffers, its flow gated by the audio session.
    case call = "AU: Audio Unit Receiver"
    /// The ringer card: playback only, filled in advance, opened when needed.
    case ringer = "AQ: Audio Queue Device"

    /// "AU" or "AQ".
    public var shortName: String { String(rawValue.prefix(2)) }

    /// The shape in which a card is opened for this role.
    public func configuration(_ format: AudioFormat) -> CardConfiguration {
        switch self {
        case .call: CardConfiguration(format: format)
        case .ringer: CardConfiguration(format: format, buffer: .milliseconds(60), prefill: .milliseconds(20))
        }
    }

    /// "role:AU" or "role:AQ".
    public var id: CardID { CardID("role:\(shortName)") }

    /// Whether `name` means this role: its name or its identity.
    func isNamed(_ name: String) -> Bool { name == rawValue || name == id.description }
}

/// A role as a card: it opens what the role is bound to, and the null card where that does not open.
///
/// So the main job runs on any machine. The fall-back is decided when a direction is opened for the first time; a card
/// that once opened and then went away is waited for.
public final class RoleCard: SoundCard {
    /// The role.
    public let role: CardRole
    /// What playback is bound to.
    public let playbackCard: any SoundCard
    /// What capture is bound to; nil for the ringer.
    public let captureCard: (any SoundCard)?

    private struct State {
        var hasOpened: Set<CardDirection> = []
        var fallback: NullCard?
        var notice: String?
        var hasNoticed = false
    }

    private let state = Mutex(State())

    /// The role `role` over the given cards.
    public init(_ role: CardRole, playback: any SoundCard, capture: (any SoundCard)?) {
        self.role = role
        playbackCard = playback
        captureCard = capture
    }

    /// The role's name and identity, and what its cards can do.
    public var description: CardDescription {
        CardDescription(
            id: role.id,
            name: role.rawValue,
            backend: playbackCard.description.backend,
            capabilities: captureCard == nil ? .playback : .duplex,
            state: playbackCard.description.state
        )
    }

    /// The sentence that says that the null card stands in, once; nil when there is nothing to say.
    ///
    /// The library prints nothing: whoever speaks to the user asks here after opening.
    public func takeNotice() -> String? { state.withLock { $0.notice.take() } }

    /// Opens the card for playback, or the null card.
    ///
    /// - Throws: `CardError` when a card that had opened before does not open again.
    public func openPlayback(
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardPlayback {
        do throws(CardError) {
            let endpoint = try playbackCard.openPlayback(configuration, at: now)
            state.withLock { _ = $0.hasOpened.insert(.playback) }
            return endpoint
        } catch {
            return try fallback(.playback, error).openPlayback(configuration, at: now)
        }
    }

    /// Opens the card for capture, or the null card.
    ///
    /// - Throws: `CardError` when the role has no capture, or a card that had opened before does not open again.
    public func openCapture(
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardCapture {
        guard let captureCard else { throw lacking(.capture) }
        do throws(CardError) {
            let endpoint = try captureCard.openCapture(configuration, at: now)
            state.withLock { _ = $0.hasOpened.insert(.capture) }
            return endpoint
        } catch {
            return try fallback(.capture, error).openCapture(configuration, at: now)
        }
    }

    /// The volume of the card that `direction` is bound to.
    ///
    /// - Throws: `CardError` when its mixer fails.
    public func volume(_ direction: CardDirection) throws(CardError) -> Double? {
        try card(direction).volume(direction)
    }

    /// Sets the volume of the card that `direction` is bound to.
    ///
    /// - Throws: `CardError` when it has no mixer, or the mixer fails.
    public func setVolume(_ volume: Double, _ direction: CardDirection) throws(CardError) {
        try card(direction).setVolume(volume, direction)
    }

    private func card(_ direction: CardDirection) throws(CardError) -> any SoundCard {
        guard direction == .capture else { return playbackCard }
        guard let captureCard else { throw lacking(.capture) }
        return captureCard
    }

    private func fallback(_ direction: CardDirection, _ error: CardError) throws(CardError) -> NullCard {
        let null: NullCard? = state.withLock { state in
            guard !state.hasOpened.contains(direction) else { return nil }
            if !state.hasNoticed {
                state.hasNoticed = true
                state.notice = "\(role.rawValue) uses the built-in null card, which is silent. \(error.message)"
            }
            let null = state.fallback ?? NullCard()
            state.fallback = null
            return null
        }
        guard let null else { throw error }
        return null
    }
}
