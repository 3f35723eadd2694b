package import CallBasics

/// The state of an INVITE that was sent.
///
///     calling ──1xx──► proceeding ──300-699──► completed ──D──► terminated
///        └──2xx─────────────┴──► accepted ──M──► terminated
///
/// Source: RFC 3261, section 17.1.1 and 9.1; RFC 6026, section 7.2
package struct InviteClient: Sendable {
    package enum State: Hashable, Sendable { case calling, proceeding, completed, accepted, terminated }

    package private(set) var state = State.calling
    private let timers: TransactionTimers
    private let isReliable: Bool
    /// Timer A, and how long it runs.
    private var repeatAt: MediaTime?
    private var interval: Duration
    /// Timer B, D or M; in `proceeding` the end of the wait behind a CANCEL.
    private var endAt: MediaTime?
    /// Whether the INVITE is to be taken back.
    private var isCancelled = false

    /// An INVITE that is sent now.
    package init(_ timers: TransactionTimers, isReliable: Bool, at now: MediaTime) {
        (self.timers, self.isReliable, interval) = (timers, isReliable, timers.t1)
        repeatAt = isReliable ? nil : now + timers.t1
        endAt = now + timers.patience
    }

    package var deadline: MediaTime? { earlier(repeatAt, endAt) }

    package mutating func receive(status: Int, at now: MediaTime) -> [TransactionAction] {
        switch (state, status) {
        case (.calling, ..<200):
            enter(.proceeding, until: isCancelled ? now + timers.patience : nil)
            return isCancelled ? [.deliver, .sendCancel] : [.deliver]
        case (.proceeding, ..<200): return [.deliver]
        case (.calling, ..<300), (.proceeding, ..<300):
            enter(.accepted, until: now + timers.patience)
            return [.deliver]
        case (.calling, _), (.proceeding, _):
            if isReliable { enter(.terminated, until: nil) } else { enter(.completed, until: now + timers.d) }
            return [.sendAck, .deliver]
        case (.completed, 300...): return [.send]
        case (.accepted, 200..<300): return [.deliver]
        default: return []
        }
    }

    /// Takes the INVITE back: at once after a provisional response, else when one comes.
    package mutating func cancel(at now: MediaTime) -> [TransactionAction] {
        guard !isCancelled, state == .calling || state == .proceeding else { return [] }
        isCancelled = true
        guard state == .proceeding else { return [] }
        endAt = now + timers.patience
        return [.sendCancel]
    }

    package mutating func handleTimeout(at now: MediaTime) -> [TransactionAction] {
        if let endAt, endAt <= now {
            let isWaiting = state == .calling || state == .proceeding
            enter(.terminated, until: nil)
            return isWaiting ? [.fail(.timeout)] : []
        }
        guard let repeatAt, repeatAt <= now else { return [] }
        interval = interval * 2
        self.repeatAt = now + interval
        return [.send]
    }

    package mutating func handleTransportError() -> [TransactionAction] {
        guard state != .accepted, state != .terminated else { return [] }
        enter(.terminated, until: nil)
        return [.fail(.unreachable)]
    }

    private mutating func enter(_ state: State, until end: MediaTime?) {
        (self.state, repeatAt, endAt) = (state, nil, end)
    }
}
