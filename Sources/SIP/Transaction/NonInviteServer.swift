package import CallBasics

/// The state of a request other than INVITE and ACK that was received.
///
///     trying ──100──► proceeding ──200-699──► completed ──J──► terminated
///
/// It sends no provisional response but 100, that one not before 3.5 s over UDP, and never a 408: the client has given
/// up by then, and a late answer only makes others take a server for dead.
/// Source: RFC 3261, section 17.2.2; RFC 4320, section 4
package struct NonInviteServer: Sendable {
    package enum State: Hashable, Sendable { case trying, proceeding, completed, terminated }

    package private(set) var state = State.trying
    private let timers: TransactionTimers
    private let isReliable: Bool
    /// From when on a 100 may be sent over UDP.
    private let tryingAt: MediaTime
    /// The time of the 100, or timer J.
    package private(set) var deadline: MediaTime?
    /// Whether it ended with what must not be sent.
    private var isSilent = false

    package init(_ timers: TransactionTimers, isReliable: Bool, at now: MediaTime) {
        (self.timers, self.isReliable) = (timers, isReliable)
        tryingAt = now + timers.tryingDelay
        deadline = tryingAt
    }

    /// The request came again.
    package func receiveRepeat() -> [TransactionAction] {
        switch state {
        case .proceeding: [.send]
        case .completed: isSilent ? [] : [.send]
        case .trying, .terminated: []
        }
    }

    /// The user's response; one that must not be sent is not, and a 408 ends the transaction without a word.
    package mutating func respond(status: Int, at now: MediaTime) -> [TransactionAction] {
        guard state == .trying || state == .proceeding else { return [] }
        guard status >= 200 else {
            guard status == 100, isReliable || now >= tryingAt else { return [] }
            (state, deadline) = (.proceeding, nil)
            return [.sendNew]
        }
        isSilent = status == 408
        (state, deadline) = isReliable ? (.terminated, nil) : (.completed, now + timers.patience)
        return isSilent ? [] : [.sendNew]
    }

    package mutating func handleTimeout(at now: MediaTime) -> [TransactionAction] {
        guard let deadline, deadline <= now else { return [] }
        self.deadline = nil
        guard state == .trying else {
            state = .terminated
            return []
        }
        state = .proceeding
        return [.sendTrying]
    }

    package mutating func handleTransportError() -> [TransactionAction] {
        guard state != .terminated else { return [] }
        let isWaiting = state != .completed
        (state, deadline) = (.terminated, nil)
        return isWaiting ? [.fail(.unreachable)] : []
    }
}
