package import CallBasics

/// Repeats the 2xx to an INVITE until its ACK comes, whatever carries it; without one the call ends.
///
/// Source: RFC 3261, section 13.3.1.4
package struct AnswerRepeater: Sendable {
    package enum Action: Hashable, Sendable {
        /// The response is to be sent once more, to its transaction.
        case send
        /// No ACK came: BYE is to be sent.
        case giveUp
    }

    private let timers: TransactionTimers
    private var interval: Duration
    private var repeatAt: MediaTime
    private let endAt: MediaTime
    package private(set) var isOver = false

    /// The response was sent for the first time at `now`.
    package init(_ timers: TransactionTimers, at now: MediaTime) {
        self.timers = timers
        (interval, repeatAt, endAt) = (timers.t1, now + timers.t1, now + timers.patience)
    }

    package var deadline: MediaTime? { isOver ? nil : min(repeatAt, endAt) }

    /// The ACK came.
    package mutating func receiveAck() { isOver = true }

    /// Does what is due; before `deadline` that is nothing.
    package mutating func handleTimeout(at now: MediaTime) -> Action? {
        guard !isOver else { return nil }
        guard now < endAt else {
            isOver = true
            return .giveUp
        }
        guard now >= repeatAt else { return nil }
        interval = min(interval * 2, timers.t2)
        repeatAt = now + interval
        return .send
    }
}
