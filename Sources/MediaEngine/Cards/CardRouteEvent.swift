public import CallBasics

/// What happened to a card that somebody uses.
public struct CardRouteEvent: Sendable, Hashable {
    /// Who uses the card.
    public enum Role: Sendable, Hashable {
        /// The calls on the engine's call card.
        case call
        /// One call, which has a card of its own.
        case own
        /// Rings and key tones.
        case ringer
    }

    /// What happened.
    public enum Kind: Sendable, Hashable {
        /// The card is open.
        case cardOpened
        /// The card went away, or stood for so long that it was given up. Silence takes its place until there is another.
        case cardLost
        /// The card that was wanted is open after all, or again.
        case cardBack
        /// The card stands in for the one that was wanted.
        case fallback(wanted: String)
        /// The card does not open now: another program has it, or it is not there. It is tried again and again; until then
        /// a card that stands in is used, or silence.
        case busy(CardError)
        /// The card ran empty or over, which has cost so many frames.
        case xrun(lostFrameCount: Int)
        /// Nobody uses the card any more, and it is closed.
        case cardClosed
        /// The card has taken over from another, and what that did to the latency is known.
        case changed(RouteChange)
    }

    /// What happened.
    public let kind: Kind
    /// Who uses the card.
    public let role: Role
    /// Whether it plays or records.
    public let direction: CardDirection
    /// The card's name.
    public let card: String
    /// When, on the engine's clock.
    public let time: MediaTime

    package init(kind: Kind, role: Role, direction: CardDirection, card: String, time: MediaTime) {
        self.kind = kind
        self.role = role
        self.direction = direction
        self.card = card
        self.time = time
    }
}
