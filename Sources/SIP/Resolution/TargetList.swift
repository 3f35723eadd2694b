package import CallBasics

/// Why a request came to nothing at a target.
package enum TargetFailure: Hashable, Sendable {
    /// It answered 503; for how long it wants to be left alone, when it says so.
    case unavailable(retryAfter: Duration?)
    /// Nothing came back in time.
    case timeout
    /// It could not be sent there.
    case unreachable
    /// It was not tried, for it had asked to be left alone until then.
    case closed(until: MediaTime)
}

/// A target with what became of the request there.
package struct TriedTarget: Hashable, Sendable {
    package var target: Target
    package var failure: TargetFailure
}

/// The targets of a request, one after the other: each that fails gives way to the next.
///
///     next ──► target ──► sent with a branch of its own
///       ▲                   │ 503, timeout, transport error
///       └────── fail ───────┘
///
/// Any other answer is the answer. The table of closed targets is shared by all requests.
/// Source: RFC 3263, section 4.3
package struct TargetList: Sendable {
    private var left: ArraySlice<Target>
    /// Where the request is now.
    package private(set) var current: Target?
    /// Where it came to nothing, in that order, and why; those not tried because they were closed, too.
    package private(set) var tried: [TriedTarget] = []

    /// The targets in their order, but `first` before all, if it is one of them: the one that knows the account.
    package init(_ targets: [Target], first: Target? = nil) {
        let isThere = first.map(targets.contains) ?? false
        left = (isThere ? [first].compactMap(\.self) + targets.filter { $0 != first } : targets)[...]
    }

    /// Whether there is a target that was not tried; it may be closed.
    package var hasNext: Bool { !left.isEmpty }

    /// The last failure, once there is no other target; that one was closed counts only when all were.
    package var outcome: TargetFailure? {
        guard left.isEmpty, current == nil else { return nil }
        return tried.last { if case .closed = $0.failure { false } else { true } }?.failure ?? tried.last?.failure
    }

    /// The next target that may be used; nil when there is none, which `outcome` explains.
    ///
    /// A target that had not failed is left without a failure.
    package mutating func next(_ closed: ClosedTargets, at now: MediaTime) -> Target? {
        current = nil
        while let target = left.popFirst() {
            guard let end = closed.end(of: target, at: now) else {
                current = target
                return target
            }
            tried.append(TriedTarget(target: target, failure: .closed(until: end)))
        }
        return nil
    }

    /// Notes that the request came to nothing where it is now; `next` gives another target.
    package mutating func fail(_ failure: TargetFailure, _ closed: inout ClosedTargets, at now: MediaTime) {
        guard let target = current else { return }
        current = nil
        tried.append(TriedTarget(target: target, failure: failure))
        if case .unavailable(let time?) = failure { closed.close(target, for: time, at: now) }
    }
}

extension TargetFailure {
    /// What a response says about its target; nil when it is an answer that another target would not better.
    package init?(_ response: SIPMessage) {
        guard response.statusCode == 503 else { return nil }
        let wish = try? response.value(.retryAfter, as: RetryAfter.self)
        self = .unavailable(retryAfter: wish.map { .seconds($0.seconds) })
    }

    package init(_ failure: TransactionFailure) {
        switch failure {
        case .timeout: self = .timeout
        case .unreachable: self = .unreachable
        }
    }
}
