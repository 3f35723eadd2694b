/// Ticks by hand, on the caller's thread, in virtual time.
///
/// Thread: one at a time; the caller is the media thread while `advance` runs.
public final class ManualDriver: TickDriver, @unchecked Sendable {
    /// The clock that `advance` moves.
    public let clock: ManualClock
    /// The length of one tick.
    public let tickDuration: Duration
    private let target: any TickTarget
    private var services: [any BackgroundService] = []

    /// How many ticks ran; by hand none is late.
    public private(set) var statistics = TickStatistics()

    /// A driver of `target` on `clock`.
    public init(
        _ target: any TickTarget,
        clock: ManualClock = ManualClock(),
        tickDuration: Duration = .milliseconds(10)
    ) {
        self.target = target
        self.clock = clock
        self.tickDuration = tickDuration
    }

    /// Serves `service` before each tick.
    public func add(_ service: any BackgroundService) {
        services.append(service)
    }

    /// Stops serving `service`.
    public func remove(_ service: any BackgroundService) {
        services.removeAll { $0 === service }
    }

    /// Runs `count` ticks.
    public func run(ticks count: Int) {
        for _ in 0..<max(count, 0) {
            for service in services { service.serve() }
            target.tick(at: clock.now)
            statistics.record(lateness: .zero, tickDuration: tickDuration)
            clock.advance(by: tickDuration)
        }
    }

    /// Runs the ticks that fit in `duration`.
    public func advance(by duration: Duration) {
        run(ticks: Int(duration.nanoseconds / tickDuration.nanoseconds))
    }

    /// Does nothing: `run` and `advance` tick.
    public func start() {}

    /// Does nothing: no tick runs outside `run` and `advance`.
    public func stop() {}
}
