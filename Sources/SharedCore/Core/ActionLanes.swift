internal import CallBasics

/// Which queued actions may be tried now: one at a time of those that wait for each other, as replies to one receiver do.
///
///     free ──► busy ──► performed, or refused for good ──► free
///                └────► failed ──► rests, twice as long each time ──► free
///
/// It owns no clock.
struct ActionLanes: Sendable {
    /// The first rest, which doubles each time, and the longest.
    static let (rest, longestRest) = (Duration.seconds(15), Duration.seconds(900))
    /// Those that are tried at the same time.
    static let limit = 16

    private var busy: Set<String> = []
    private var resting: [String: MediaTime] = [:]

    var isBusy: Bool { !busy.isEmpty }
    var isFull: Bool { busy.count >= Self.limit }
    /// Those that nothing is to be taken from.
    var closed: Set<String> { busy.union(resting.keys) }

    /// When the next has rested.
    var deadline: MediaTime? { resting.values.min() }

    mutating func begin(_ lane: String) { busy.insert(lane) }

    /// What was tried is over; or failed, so often by now.
    mutating func end(_ lane: String, failures: Int?, at now: MediaTime) {
        busy.remove(lane)
        guard let failures else { return }
        let rest = Self.rest * (1 << min(max(failures, 1) - 1, 8))
        resting[lane] = now + min(rest, Self.longestRest)
    }

    /// Nothing rests any more.
    mutating func hurry() { resting = [:] }

    /// Those that have rested are free.
    mutating func handleTimeout(at now: MediaTime) { resting = resting.filter { $0.value > now } }
}
