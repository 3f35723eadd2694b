import CallBasics
import Logging
import Synchronization

/// Where an engine's time comes from: threads on the monotonic clock, or a manual clock and the caller's hand.
///
/// In real time two threads serve in the background: one for files, and one that brings events and receipts from the
/// media threads.
final class EngineTimebase: Sendable {
    private enum Kind: Sendable {
        case real(files: ServiceThread, events: WorkThread, priority: Int?)
        case virtual(ManualDriver)
    }

    /// What the thread of events serves.
    private final class Loops: Sendable {
        let all = Mutex<[any BackgroundService]>([])

        func serve() {
            for loop in all.withLock({ $0 }) { loop.serve() }
        }
    }

    private let kind: Kind
    private let loops = Loops()
    private let logger: Logger
    private let hasToldScheduling = Atomic(false)

    /// Real time, with media threads of SCHED_FIFO `priority` when it is not nil and permitted.
    init(priority: Int?, logger: Logger) throws(DriverError) {
        self.logger = logger
        let files = ServiceThread()
        let events = WorkThread { [loops] in loops.serve() }
        try files.start()
        do throws(DriverError) {
            try events.start(name: "media-events")
        } catch {
            files.stop()
            throw error
        }
        kind = .real(files: files, events: events, priority: priority)
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
        driver.serve()
        return true
    }

    // MARK: Ticks

    /// Begins to tick `target`; the answer stops it.
    func drive(
        _ target: any TickTarget,
        tickDuration: Duration,
        pacer: any TickPacer,
        name: String
    ) throws(DriverError) -> any TickDriver {
        switch kind {
        case .real(_, _, let priority):
            let driver = TimerDriver(
                target,
                tickDuration: tickDuration,
                pacer: pacer,
                policy: LatenessPolicy(),
                priority: priority,
                name: name
            )
            try driver.start()
            return driver
        case .virtual(let driver):
            driver.add(target, tickDuration: tickDuration)
            return driver
        }
    }

    /// Says once that real-time scheduling was refused, and how to get it.
    func tellScheduling(_ driver: any TickDriver) {
        guard let driver = driver as? TimerDriver, case .refused = driver.scheduling else { return }
        guard !hasToldScheduling.exchange(true, ordering: .relaxed) else { return }
        logger.notice("media threads run with \(driver.scheduling.map(\.description) ?? "")")
    }

    /// Says that so many events of the media thread `name` were lost, and more may be.
    func tellLostEvents(_ count: Int, of name: String) {
        logger.warning(
            """
            The media thread \(name) lost \(count) events, for nobody took those before them: keys, goodbyes or stalls may \
            be among them. See whether the process was stopped. Reports count further losses.
            """
        )
    }

    /// Stops ticking `target`; when it returns no tick runs.
    func stop(_ driver: any TickDriver, _ target: any TickTarget) {
        if case .virtual(let manual) = kind { manual.remove(target) } else { driver.stop() }
    }

    // MARK: Background

    /// Serves a file's `service` in the background.
    func add(_ service: any BackgroundService) {
        switch kind {
        case .real(let files, _, _): files.add(service)
        case .virtual(let driver): driver.add(service)
        }
    }

    /// Serves `service` no longer; when it returns, the service does not run, unless it waits for another program.
    func remove(_ service: any BackgroundService) {
        switch kind {
        case .real(let files, _, _): files.remove(service)
        case .virtual(let driver): driver.remove(service)
        }
    }

    /// Does what waits to be done before a tick of virtual time.
    ///
    /// Thread: the one that moves time.
    func serve() {
        if case .virtual(let driver) = kind { driver.serve() }
    }

    /// Serves `loop` whenever a media thread has news.
    func addLoop(_ loop: any BackgroundService) {
        switch kind {
        case .real: loops.all.withLock { $0.append(loop) }
        case .virtual(let driver): driver.add(loop)
        }
    }

    func removeLoop(_ loop: any BackgroundService) {
        switch kind {
        case .real: loops.all.withLock { loops in loops.removeAll { $0 === loop } }
        case .virtual(let driver): driver.remove(loop)
        }
    }

    /// A media thread has news.
    ///
    /// Thread: media.
    func tellNews() {
        if case .real(_, let events, _) = kind { events.wake() }
    }

    /// Ends the background threads.
    ///
    /// Thread: any but theirs.
    func shutDown() {
        guard case .real(let files, let events, _) = kind else { return }
        files.stop()
        events.stop()
    }
}
