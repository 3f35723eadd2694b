import CallBasics

/// Ticks by hand, on the caller's thread, in virtual time.
///
/// Several targets with ticks of different lengths share the clock; their ticks run in the order of their times.
/// Thread: one at a time; the caller is the media thread while `advance` runs.
package final class ManualDriver: TickDriver, @unchecked Sendable {
    private struct Entry {
        let target: any TickTarget
        let tickDuration: Duration
        var next: MediaTime
        var statistics = TickStatistics()
    }

    /// The clock that `advance` moves.
    package let clock: ManualClock
    private var entries: [Entry] = []
    private var services: [any BackgroundService] = []

    /// A driver of `clock` without targets.
    package init(clock: ManualClock = ManualClock()) {
        self.clock = clock
    }

    /// A driver of one target.
    package convenience init(
        _ target: any TickTarget,
        clock: ManualClock = ManualClock(),
        tickDuration: Duration = .milliseconds(10)
    ) {
        self.init(clock: clock)
        add(target, tickDuration: tickDuration)
    }

    /// The ticks of the target that was added first; by hand none is late.
    package var statistics: TickStatistics { entries.first?.statistics ?? TickStatistics() }

    /// Ticks `target` every `tickDuration`, from the present instant on.
    package func add(_ target: any TickTarget, tickDuration: Duration = .milliseconds(10)) {
        entries.append(Entry(target: target, tickDuration: tickDuration, next: clock.now))
    }

    /// Ticks `target` no longer.
    package func remove(_ target: any TickTarget) {
        entries.removeAll { $0.target === target }
    }

    /// Serves `service` before each tick.
    package func add(_ service: any BackgroundService) {
        services.append(service)
    }

    /// Stops serving `service`.
    package func remove(_ service: any BackgroundService) {
        services.removeAll { $0 === service }
    }

    /// Serves every service once, outside a tick: after the last one, it brings what waits to its file.
    package func serve() {
        for service in services { service.serve() }
    }

    /// Runs the ticks of the next `duration`.
    package func advance(by duration: Duration) {
        let end = clock.now + duration
        while let time = entries.map(\.next).min(), time < end {
            clock.advance(by: time - clock.now)
            serve()
            for index in entries.indices where entries[index].next == time {
                entries[index].target.tick(at: time)
                entries[index].statistics.record(lateness: .zero, tickDuration: entries[index].tickDuration)
                entries[index].next += entries[index].tickDuration
            }
        }
        clock.advance(by: end - clock.now)
    }

    /// Runs as much time as `count` ticks of the first target last.
    package func run(ticks count: Int) {
        guard let first = entries.first else { return }
        advance(by: first.tickDuration * count)
    }

    /// Does nothing: `advance` ticks.
    package func start() {}

    /// Does nothing: no tick runs outside `advance`.
    package func stop() {}

    /// Has every target obey now: no tick runs outside `advance`.
    package func wake() {
        for entry in entries { entry.target.obey() }
    }
}
