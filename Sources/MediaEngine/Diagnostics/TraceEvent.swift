/// Something that happened beside the rows of a trace, and that a playout does not see itself.
public struct TraceEvent: Sendable, Hashable, Codable {
    /// What happened.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        /// The playback card ran empty; `amount` is what was not heard, in ms.
        case xrun
        /// Sequence numbers showed packets missing; `amount` is how many, and below 0 when some came after all.
        case lost
    }

    /// When it was seen, in ms after the first row began.
    public var timeMs: Double
    /// What happened.
    public var kind: Kind
    /// How much of it.
    public var amount: Int

    /// An event.
    public init(timeMs: Double, kind: Kind, amount: Int) {
        self.timeMs = timeMs
        self.kind = kind
        self.amount = amount
    }
}
