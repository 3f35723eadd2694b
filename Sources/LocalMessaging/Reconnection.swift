/// When a client connects again after it has lost its server.
///
/// The first try comes at once, and each pause after it is twice as long as the one before. A connection that lasts for
/// `maximumDelay` ends that: the next loss begins at the first try again.
public struct Reconnection: Sendable {
    /// The first pause, of at least 1 ms; each further one is twice as long.
    public var firstDelay: Duration
    /// The longest pause.
    public var maximumDelay: Duration

    /// Without it a server that drops its clients would be asked as fast as the processor allows.
    private static var shortest: Duration { .milliseconds(1) }

    /// Connects again for as long as it takes, with growing pauses.
    public static var backingOff: Reconnection {
        Reconnection(firstDelay: .milliseconds(10), maximumDelay: .seconds(1))
    }

    /// Pauses from `firstDelay` to `maximumDelay`.
    public init(firstDelay: Duration, maximumDelay: Duration) {
        self.firstDelay = firstDelay
        self.maximumDelay = maximumDelay
    }

    /// The pause before try number `attempt`, from 0.
    func delay(before attempt: Int) -> Duration {
        min(max(firstDelay, Self.shortest) * (1 << min(attempt, 20)), max(maximumDelay, Self.shortest))
    }
}
