import CallBasics

/// Tells whether packets go on not to arrive.
///
/// The network's answers alone do not say so: the first packets may come before the receiver has begun, the last after it
/// has ended. Answers that go on for a second do.
struct UnreachableWatch {
    private static var enough: Duration { .seconds(1) }
    /// Hosts answer once a second or so, whatever comes.
    private static var longestPause: Duration { .seconds(3) }

    private var count = 0
    private var first = MediaTime.zero
    private var last: MediaTime?
    private var hasTold = false

    /// Takes note that so many answers have come by `now`.
    ///
    /// - Returns: Whether that is to be told: once.
    mutating func isTold(answers: Int, at now: MediaTime) -> Bool {
        guard answers > count, !hasTold else { return false }
        count = answers
        let goesOn = last.map { now - $0 <= Self.longestPause } ?? false
        last = now
        guard goesOn else {
            first = now
            return false
        }
        hasTold = now - first >= Self.enough
        return hasTold
    }
}
