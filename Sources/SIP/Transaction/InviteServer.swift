package import CallBasics

/// The state of an INVITE that was received.
///
///     proceeding ──300-699──► completed ──ACK──► confirmed ──I──► terminated
///         └──2xx──► accepted ──L──► terminated
///
/// Whoever makes one sends a 100 at once.
/// Source: RFC 3261, section 17.2.1; RFC 6026, section 7.1
package struct InviteServer: Sendable {
    package enum State: Hashable, Sendable { case proceeding, completed, confirmed, accepted, terminated }

    package private(set) var state = State.proceeding
    private let timers: TransactionTimers
    private let isReliable: Bool
    /// Timer G, and how long it runs.
    private var repeatAt: MediaTime?
    private var interval: Duration
    /// Timer H, I or L.
    private var endAt: MediaTime?

    package init(_ timers: TransactionTimers, isReliable: Bool) {
        (self.timers, self.isReliable, interval) = (timers, isReliable, timers.t1)
    }

    package var deadline: MediaTime? { earlier(repeatAt, endAt) }

    /// The INVITE came again.
    package func receiveRepeat() -> [TransactionAction] {
        state == .proceeding || state == .completed ? [.send] : []
    }

    package mutating func receiveAck(at now: MediaTime) -> [TransactionAction] {
        switch state {
        case .completed:
            if isReliable { enter(.terminated, until: nil) } else { enter(.confirmed, until: now + timers.t4) }
            return []
        case .accepted: return [.deliver]
        case .proceeding, .confirmed, .terminated: return []
        }
    }

    /// The user's response; what comes too late is not sent.
    package mutating func respond(status: Int, at now: MediaTime) -> [TransactionAction] {
        switch (state, status) {
        case (.proceeding, ..<200): return [.sendNew]
        case (.proceeding, ..<300):
            enter(.accepted, until: now + timers.patience)
            return [.sendNew]
        case (.proceeding, _):
            enter(.completed, until: now + timers.patience)
            if !isReliable { repeatAt = now + timers.t1 }
            return [.sendNew]
        case (.accepted, 200..<300): return [.sendNew]
        default: return []
        }
    }

    package mutating func handleTimeout(at now: MediaTime) -> [TransactionAction] {
        if let endAt, endAt <= now {
            let isWaiting = state == .completed
            enter(.terminated, until: nil)
            return isWaiting ? [.fail(.timeout)] : []
        }
        guard let repeatAt, repeatAt <= now else { return [] }
        interval = min(interval * 2, timers.t2)
        self.repeatAt = now + interval
        return [.send]
    }

    /// The flow is gone; an accepted call is not, since its ACK may come by another.
    package mutating func handleTransportError() -> [TransactionAction] {
        switch state {
        case .terminated: return []
        case .accepted: return [.fail(.unreachable)]
        case .confirmed:
            enter(.terminated, until: nil)
            return []
        case .proceeding, .completed:
            enter(.terminated, until: nil)
            return [.fail(.unreachable)]
        }
    }

    private mutating func enter(_ state: State, until end: MediaTime?) {
        (self.state, repeatAt, endAt) = (state, nil, end)
    }
}
