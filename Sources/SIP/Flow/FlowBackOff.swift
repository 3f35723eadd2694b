package import CallBasics

/// How long to wait before a flow that failed is tried again: longer with each failure, and drawn.
///
/// Source: RFC 5626, section 4.5
package struct FlowBackOff: Hashable, Sendable {
    /// The waits grow up to this.
    package static let longest = Duration.seconds(1800)

    /// How often it failed since it last worked.
    package private(set) var failureCount = 0

    package init() {}

    /// Notes a failure and gives how long to wait; not less than `retryAfter`, which may be an hour at most.
    package mutating func fail(
        hasOtherFlow: Bool,
        retryAfter: Duration = .zero,
        _ generator: inout SeededGenerator
    ) -> Duration {
        failureCount += 1
        let base = Duration.seconds(hasOtherFlow ? 90 : 30)
        let wait = min(Self.longest, base * (1 << min(failureCount, 10)))
        return max(wait * (0.5 + generator.nextUnit() / 2), min(retryAfter, ClosedTargets.ceiling))
    }

    /// Notes that it works: the next failure is the first again.
    package mutating func succeed() { failureCount = 0 }
}
