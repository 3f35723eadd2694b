/// Something that happened beside the rows of a trace, and that a playout does not see itself.
struct TraceEvent: Sendable, Hashable {
    /// What happened.
    enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The playback card ran empty; `amount` is what was not heard, in ms.
        case xrun
        /// Sequence numbers showed packets missing; `amount` is how many, and below 0 when some came after all.
        case lost
    }

    /// When it was seen, in ms after the first row began.
    var timeMs: Double
    /// What happened.
    var kind: Kind
    /// How much of it.
    var amount: Int

    /// An event.
    init(timeMs: Double, kind: Kind, amount: Int) {
        self.timeMs = timeMs
        self.kind = kind
        self.amount = amount
    }
}
