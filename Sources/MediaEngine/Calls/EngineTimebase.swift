import Logging
import Synchronization

/// Where an engine's time comes from: threads on the monotonic clock, or a manual clock and the caller's hand.
///
/// In real time two threads serve in the background: one for files, and one for cards, whose opening may take
/// seconds and must not keep a file waiting.
final class EngineTimebase: Sendable {
    private enum Kind: Sendable {
        case real(files: ServiceThread, cards: ServiceThread, priority: Int?)
        case virtual(ManualDriver)
    }

    private let kind: Kind
    private let logger: Logger
    private let hasToldScheduling = Atomic(false)

    /// Real time, with media threads of SCHED_FIFO `priority` when it is not nil and permitted.
    init(priority: Int?, logger: Logger) throws(DriverError) {
        self.logger = logger
        let (files, cards) = (ServiceThread(), ServiceThread())
        try files.start()
        try cards.start()
        kind = .real(files: files, cards: cards, priority: priority)
    }

    /// Virtual time from zero.
    init(logger: Logger) {
        self.logger = logger
        kind = .virtual(ManualDriver())
    }

    var isVirtual: Bool {
        if case .virtual = kind { true } else { false }
    }

    var now: MediaTime {
        switch kind {
        case .real: MonotonicClock.current
        case .virtual(let driver): driver.clock.now
        }
    }

    /// Nanoseconds since 1970 at the clock's zero; virtual time begins in 1970.
    var unixNanosecondsAtZero: Int64 {
        isVirtual ? 0 : MonotonicClock.wallOffset.nanoseconds
    }

    /// Moves virtual time; answers false in real time, which moves by itself.
    func advance(by duration: Duration) -> Bool {
        guard case .virtual(let driver) = kind else { return false }
        driver.advance(by: duration)
        return true
    }

    /// Serves what waits once more, after the last tick of virtual time.
    func serve() {
        if case .virtual(let driver) = kind { driver.serve() }
    }

    /// Begins to tick `target`; the answer stops it.
    func drive(
        _ target: any TickTarget,
        tickDuration: Duration,
        pacer: any TickPacer = DeadlinePacer(),
        name: String
    ) throws(DriverError) -> any TickDriver {
        switch kind {
        case .real(_, _, let priority):
            let driver = TimerDriver(target, tickDuration: tickDuration, pacer: pacer, priority: priority, name: name)
            try driver.start()
            tellScheduling(driver)
            return driver
        case .virtual(let driver):
            driver.add(target, tickDuration: tickDuration)
            return driver
        }
    }

    /// Says once that real-time scheduling was refused, and how to get it.
    private func tellScheduling(_ driver: TimerDriver) {
        guard case .refused = driver.scheduling, !hasToldScheduling.exchange(true, ordering: .relaxed) else { return }
        logger.notice("media threads run with \(driver.scheduling.map(\.description) ?? "")")
    }

    /// Stops ticking `target`.
    func stop(_ driver: any TickDriver, _ target: any TickTarget) {
        if case .virtual(let manual) = kind { manual.remove(target) } else { driver.stop() }
    }

    /// Serves `service` in the background: of a card when `isCard` is set, of a file otherwise.
    func add(_ service: any BackgroundService, isCard: Bool = false) {
        switch kind {
        case .real(let files, let cards, _): (isCard ? cards : files).add(service)
        case .virtual(let driver): driver.add(service)
        }
    }

    /// Serves `service` no longer; when it returns, the service does not run.
    func remove(_ service: any BackgroundService) {
        switch kind {
        case .real(let files, let cards, _):
            files.remove(service)
            cards.remove(service)
        case .virtual(let driver): driver.remove(service)
        }
    }

    /// Ends the background threads.
    func shutDown() {
        guard case .real(let files, let cards, _) = kind else { return }
        files.stop()
        cards.stop()
    }
}
