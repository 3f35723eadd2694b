/// How long to wait before the next attempt: twice as long each time, from 10 ms to 1 s.
struct Backoff {
    private var delay = Self.shortest

    /// The wait before the next attempt.
    mutating func next() -> Duration {
        defer { delay = min(delay * 2, Self.longest) }
        return delay
    }

    /// Begins anew, after a connection that led to something.
    mutating func reset() {
        delay = Self.shortest
    }

    private static var shortest: Duration { .milliseconds(10) }
    static var longest: Duration { .seconds(1) }
}
