internal import CallBasics

/// The times that all timers of transactions are made from.
///
/// Source: RFC 3261, section 17.1.1.1 and table 4
package struct TransactionTimers: Hashable, Sendable {
    /// How long a round trip takes; the first interval between repeats.
    package let t1: Duration
    /// The longest interval between repeats, but of an INVITE.
    package let t2: Duration
    /// How long the network may keep a message.
    package let t4: Duration

    /// A time that is not above zero is a mistake of the caller.
    package init(t1: Duration = .milliseconds(500), t2: Duration = .seconds(4), t4: Duration = .seconds(5)) {
        precondition(t1 > .zero && t2 >= t1 && t4 > .zero)
        (self.t1, self.t2, self.t4) = (t1, t2, t4)
    }

    /// How long an answer is waited for: timers B, F, H, J, L and M.
    var patience: Duration { t1 * 64 }
    /// How long a refused INVITE is remembered: timer D, at least 32 s.
    var d: Duration { max(patience, .seconds(32)) }

    /// When a request other than INVITE gets its 100: once its client repeats no sooner than each T2, 3.5 s.
    ///
    /// Source: RFC 4320, section 4.1
    var tryingDelay: Duration {
        var (sum, interval) = (Duration.zero, t1)
        while interval < t2 {
            sum += interval
            interval = interval * 2
        }
        return sum
    }
}

/// What a state machine asks its table to do; what ends is told by the state.
package enum TransactionAction: Hashable, Sendable {
    /// The message that is kept, once more: the request, its ACK, or the last response.
    case send
    /// The response at hand, kept from now on.
    case sendNew
    /// A 100, kept from now on.
    case sendTrying
    /// An ACK to the response at hand, kept from now on.
    case sendAck
    /// A CANCEL, which is a transaction of its own.
    case sendCancel
    /// The message at hand goes up.
    case deliver
    case fail(TransactionFailure)
}

/// Why a transaction came to no good end.
package enum TransactionFailure: Hashable, Sendable {
    /// Nothing came within 64 times T1: no response, or no ACK.
    case timeout
    /// The flow does not carry messages.
    case unreachable
}

/// The earlier one of two times, of which each may be missing.
func earlier(_ one: MediaTime?, _ other: MediaTime?) -> MediaTime? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
}
