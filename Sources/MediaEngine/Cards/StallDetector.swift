import CallBasics

/// Finds out that a card has stopped moving without saying so: a suspended sound server, a hung USB bus.
///
/// Pure: the present time is an argument.
struct StallDetector: Sendable {
    /// What a look at the card has found.
    enum Finding: Equatable, Sendable {
        case nothing
        /// The card has stood for as long as is tolerated. Said once.
        case stalled
        /// The card has stood for so long that only opening it again can help. Said once.
        case hopeless
    }

    private let tolerance: Duration
    private let patience: Duration
    private var lastMove: MediaTime?
    private var isStalled = false
    private var isHopeless = false

    init(tolerance: Duration = .milliseconds(100), patience: Duration = .seconds(3)) {
        self.tolerance = tolerance
        self.patience = patience
    }

    /// Looks at the card at `now`, when it `moved` or stood since the last look.
    mutating func look(moved: Bool, at now: MediaTime) -> Finding {
        let start = lastMove ?? now
        if moved || lastMove == nil { lastMove = now }
        if moved {
            isStalled = false
            isHopeless = false
            return .nothing
        }
        if isStalled, !isHopeless, now - start >= patience {
            isHopeless = true
            return .hopeless
        }
        guard !isStalled, now - start >= tolerance else { return .nothing }
        isStalled = true
        return .stalled
    }

    /// Begins anew, with another card.
    mutating func reset() {
        lastMove = nil
        isStalled = false
        isHopeless = false
    }
}
