/// Something that happened beside the rows of a trace, and that a playout does not see itself.
struct TraceEvent: Sendable, Hashable {
    /// What happened.
    enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The playback card ran empty; `amount` is what was not heard, in ms.
        case xrun
        /// Sequence numbers showed packets missing; `amount` is how many, and below 0 when some came after all.
        case lost
        /// Another source, or source address, took over; `amount` is its SSRC.
        case sourceChange
        /// The source began a new sequence of numbers; `amount` is how often.
        case restart
        /// Time stamps or numbers jumped, so that playout began a new line; `amount` is how often.
        case jump
        /// The sender changed to another codec; `amount` is how often.
        case codecChange
        /// Packets with the RTP marker were played, the first ones after a silence; `amount` is how many.
        case marker
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
