import CallBasics
import MediaEngine
import Synchronization

/// Says on standard error when a card goes and when it is back, and knows afterwards how much sound that has cost.
///
/// Thread: any.
final class CardWatch: Sendable {
    /// One direction of what somebody uses a card for.
    private struct Place: Hashable {
        let role: CardRouteEvent.Role
        let direction: CardDirection
    }

    private struct State {
        /// Where a card is missing, since when, and what it is called.
        var missing: [Place: (since: MediaTime, card: String)] = [:]
        var missed = Duration.zero
        /// The card that went first.
        var firstLost: String?
    }

    private let state = Mutex(State())
    private let tell: @Sendable (String) -> Void

    /// A watch that hands lines to `tell`: usually standard error.
    init(_ tell: @escaping @Sendable (String) -> Void = { StandardError.write($0) }) {
        self.tell = tell
    }

    /// Takes in what happened to a card.
    func note(_ event: CardRouteEvent) {
        let place = Place(role: event.role, direction: event.direction)
        let line: String? = state.withLock { state in
            switch event.kind {
            case .cardLost:
                state.firstLost = state.firstLost ?? event.card
                state.missing[place] = (event.time, event.card)
                return "\(event.card) is gone: silence takes its place until it is back.\n"
            case .cardBack, .cardOpened:
                guard let gap = state.missing.removeValue(forKey: place) else { return nil }
                state.missed += event.time - gap.since
                return "\(event.card) is back after \((event.time - gap.since).roundedSeconds) s.\n"
            case .fallback, .busy, .xrun, .changed: return nil
            case .cardClosed:
                guard let gap = state.missing.removeValue(forKey: place) else { return nil }
                state.missed += event.time - gap.since
                return nil
            }
        }
        if let line { tell(line.printableLines) }
    }

    /// Why what a command did is not whole at `now`; nil when no card went.
    func failure(at now: MediaTime) -> ToolFailure? {
        state.withLock { state in
            guard let card = state.firstLost else { return nil }
            let missed = state.missing.values.reduce(state.missed) { $0 + (now - $1.since) }
            return ToolFailure(
                "\(card) went away while it was used: \(missed.roundedSeconds) s are silent. "
                    + "See whether it is plugged in and its sound server runs, and try again."
            )
        }
    }
}
