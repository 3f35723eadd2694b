internal import Synchronization

/// What is shown of calls, and what is to be shown as soon as the desktop has said its number.
final class CallTable: Sendable {
    /// Where a notification is.
    struct Place: Hashable {
        let number: UInt32
        /// Who gave the number.
        let owner: String
    }

    /// Counts what is to be shown.
    typealias Turn = UInt64

    private struct Shown {
        /// What is to be shown last.
        var turn: Turn
        /// Nil until something is shown.
        var place: Place?
    }

    private struct State {
        var calls: [String: Shown] = [:]
        var turnCount: Turn = 0
    }

    private let state = Mutex(State())

    func call(of place: Place) -> String? { state.withLock { $0.calls.first { $0.value.place == place }?.key } }

    func place(of call: String) -> Place? { state.withLock { $0.calls[call]?.place } }

    /// A call is to be shown, or shown anew.
    func begin(_ call: String) -> Turn {
        state.withLock {
            $0.turnCount += 1
            $0.calls[call, default: Shown(turn: 0)].turn = $0.turnCount
            return $0.turnCount
        }
    }

    /// The desktop shows it; false where that is to be closed: it was withdrawn meanwhile, or shown anew elsewhere.
    func note(_ place: Place, of call: String, _ turn: Turn) -> Bool {
        state.withLock {
            guard let shown = $0.calls[call] else { return false }
            if shown.turn == turn { $0.calls[call]?.place = place }
            return shown.turn == turn || shown.place == place
        }
    }

    /// The desktop does not show it; what it shows of the call from before stays.
    func forget(_ call: String, _ turn: Turn) {
        state.withLock {
            if let shown = $0.calls[call], shown.turn == turn, shown.place == nil { $0.calls[call] = nil }
        }
    }

    /// A call is to be shown no more; gives what is to be closed.
    func remove(_ call: String) -> Place? { state.withLock { $0.calls.removeValue(forKey: call)?.place } }
}
