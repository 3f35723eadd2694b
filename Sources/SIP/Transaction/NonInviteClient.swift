package import CallBasics

/// The state of a request other than INVITE and ACK that was sent.
///
///     trying ──1xx──► proceeding ──200-699──► completed ──K──► terminated
///
/// Source: RFC 3261, section 17.1.2
package struct NonInviteClient: Sendable {
    package enum State: Hashable, Sendable { case trying, proceeding, completed, terminated }

    package private(set) var state = State.trying
    private let timers: TransactionTimers
    private let isReliable: Bool
    /// Timer E, and how long it runs.
    private var repeatAt: MediaTime?
    private var interval: Duration
    /// Timer F or K.
    private var endAt: MediaTime?

    /// A request that is sent now.
    package init(_ timers: TransactionTimers, isReliable: Bool, at now: MediaTime) {
        (self.timers, self.isReliable, interval) = (timers, isReliable, timers.t1)
        repeatAt = isReliable ? nil : now + timers.t1
        endAt = now + timers.patience
    }

    package var deadline: MediaTime? { earlier(repeatAt, endAt) }

    package mutating func receive(status: Int, at now: MediaTime) -> [TransactionAction] {
        guard state == .trying || state == .proceeding else { return [] }
        if status >= 200 {
            if isReliable { enter(.terminated, until: nil) } else { enter(.completed, until: now + timers.t4) }
        } else if state == .trying {
            state = .proceeding
            interval = timers.t2
            if !isReliable { repeatAt = now + timers.t2 }
        }
        return [.deliver]
    }

    package mutating func handleTimeout(at now: MediaTime) -> [TransactionAction] {
        if let endAt, endAt <= now {
            let isWaiting = state != .completed
            enter(.terminated, until: nil)
            return isWaiting ? [.fail(.timeout)] : []
        }
        guard let repeatAt, repeatAt <= now else { return [] }
        interval = min(interval * 2, timers.t2)
        self.repeatAt = now + interval
        return [.send]
    }

    package mutating func handleTransportError() -> [TransactionAction] {
        guard state == .trying || state == .proceeding else { return [] }
        enter(.terminated, until: nil)
        return [.fail(.unreachable)]
    }

    private mutating func enter(_ state: State, until end: MediaTime?) {
        (self.state, repeatAt, endAt) = (state, nil, end)
    }
}
