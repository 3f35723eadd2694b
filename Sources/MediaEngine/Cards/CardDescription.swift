/// Identity of a card that survives reboots and tells two equal cards apart.
///
/// For hardware it is made of the USB serial number or the place on the bus ("alsa:usb-0d8c:0014-A1B2",
/// "alsa:pci-0000:00:1b.0"), for other ALSA PCMs of the PCM's name ("alsa:default"), for built-in cards of theirs.
public struct CardID: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// The identity as text, as it is typed and stored.
    public let description: String

    /// The identity that is written `text`.
    public init(_ text: String) { description = text }

    /// The identity that is written `value`.
    public init(stringLiteral value: String) { description = value }
}

extension Set<CardDirection> {
    /// Of a card that records and plays.
    package static var duplex: Self { [.capture, .playback] }

    /// "duplex", "capture", "playback" or "none".
    package var text: String { count > 1 ? "duplex" : first?.rawValue ?? "none" }
}

/// Whether a card can be used now, as far as one can tell without opening it.
public enum CardState: String, Hashable, Sendable {
    /// Nothing speaks against it.
    case available
    /// Some program has it open.
    case inUse
    /// It is not there.
    case absent
}

/// What a card says of itself without being opened.
public struct CardDescription: Hashable, Sendable {
    /// The identity.
    public let id: CardID
    /// What people call it.
    public let name: String
    /// Who drives it: "alsa", "built-in" or "application".
    public let backend: String
    /// Which ways sound goes through it.
    public let directions: Set<CardDirection>
    /// Whether it can be used now.
    public let state: CardState

    /// A description with the given parts.
    ///
    /// - Parameters:
    ///   - id: The identity, which no other card has.
    ///   - name: What people call it; `CardList.card(named:)` finds it by this too.
    ///   - backend: Who drives it, in one word.
    ///   - directions: Whether it records, plays, or both.
    ///   - state: Whether it can be used now.
    public init(
        id: CardID,
        name: String,
        backend: String = "application",
        directions: Set<CardDirection>,
        state: CardState = .available
    ) {
        self.id = id
        self.name = name
        self.backend = backend
        self.directions = directions
        self.state = state
    }
}
