package import CallBasics

/// Targets that asked to be left alone for a time, by the Retry-After of a 503.
///
/// Source: RFC 3261, section 21.5.4
package struct ClosedTargets: Sendable {
    /// How many are kept at once, and how long one may close itself.
    package static let (targetCount, ceiling) = (256, Duration.seconds(3600))

    private var ends: [Target: MediaTime] = [:]

    package init() {}

    /// How many are closed.
    package var count: Int { ends.count }

    /// Until when a target is closed; nil when it may be used.
    package func end(of target: Target, at now: MediaTime) -> MediaTime? {
        guard let end = ends[target], now < end else { return nil }
        return end
    }

    mutating func close(_ target: Target, for time: Duration, at now: MediaTime) {
        removeEnded(at: now)
        if ends.count >= Self.targetCount, ends[target] == nil, let first = ends.min(by: { $0.value < $1.value }) {
            ends[first.key] = nil
        }
        ends[target] = now + min(time, Self.ceiling)
    }

    /// Forgets those whose time is over.
    package mutating func removeEnded(at now: MediaTime) { ends = ends.filter { now < $0.value } }
}
