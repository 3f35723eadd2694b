package import CallBasics
import Glibc
import Synchronization

/// Ticks from a thread of its own: by absolute deadlines on the monotonic clock, or when its pacer says.
///
/// Deadlines do not drift: each is the one before plus one tick. With a `CardPacer` the ticks follow a card's period
/// instead, for as long as the card runs. While its target is idle it does not tick. SCHED_FIFO is used when permitted;
/// when it is refused, `scheduling` says so once the driver runs.
package final class TimerDriver: TickDriver, @unchecked Sendable {
    /// The SCHED_FIFO priority that drivers ask for.
    package static let defaultPriority = 10

    private let target: any TickTarget
    private let tickDuration: Duration
    private let policy: LatenessPolicy
    private let pacer: any TickPacer
    private let priority: Int?
    private let name: String
    private let sleeper: Sleeper
    private let isStopping = Atomic<Bool>(false)
    private let thread = Mutex<MediaThread?>(nil)
    private let schedulingResult = Mutex<SchedulingResult?>(nil)
    private let published = LatestValue(TickStatistics())

    /// A driver of `target` by the clock.
    ///
    /// - Parameters:
    ///   - target: What runs the ticks, on the driver's thread.
    ///   - tickDuration: The time between two ticks.
    ///   - priority: The SCHED_FIFO priority to ask for; nil asks for none.
    ///   - name: The thread's name.
    package convenience init(
        _ target: any TickTarget,
        tickDuration: Duration = .milliseconds(10),
        priority: Int? = TimerDriver.defaultPriority,
        name: String = "media"
    ) {
        self.init(
            target,
            tickDuration: tickDuration,
            pacer: DeadlinePacer(),
            policy: LatenessPolicy(),
            priority: priority,
            name: name
        )
    }

    /// A driver of `target`.
    ///
    /// - Parameters:
    ///   - target: What runs the ticks, on the driver's thread.
    ///   - tickDuration: The time between two ticks.
    ///   - pacer: What waits for the next tick.
    ///   - policy: What to do after a stall.
    ///   - priority: The SCHED_FIFO priority to ask for; nil asks for none.
    ///   - name: The thread's name.
    package init(
        _ target: any TickTarget,
        tickDuration: Duration,
        pacer: any TickPacer,
        policy: LatenessPolicy,
        priority: Int?,
        name: String
    ) {
        self.target = target
        self.tickDuration = tickDuration
        self.pacer = pacer
        self.policy = policy
        self.priority = priority
        self.name = name
        sleeper = Sleeper { target.obey() }
    }

    /// How punctual the ticks were so far.
    package var statistics: TickStatistics { published.value }

    /// How the thread is scheduled; nil before it runs.
    package var scheduling: SchedulingResult? { schedulingResult.withLock { $0 } }

    /// Begins to tick, at once; when it returns, `scheduling` is known.
    package func start() throws(DriverError) {
        try thread.withLock { thread throws(DriverError) in
            guard thread == nil else { return }
            isStopping.store(false, ordering: .releasing)
            let started = Sleeper()
            thread = try MediaThread(name: name, priority: priority) { [unowned self] result in
                schedulingResult.withLock { $0 = result }
                started.wake()
                run()
            }
            started.rest()
        }
    }

    /// Stops ticking; returns when the last tick is over.
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        sleeper.wake()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    /// Has the target obey at once, and tick again if it was idle.
    package func wake() { sleeper.wake() }

    private func run() {
        var statistics = TickStatistics()
        var deadline = MonotonicClock.current
        let period = tickDuration.nanoseconds
        while !isStopping.load(ordering: .acquiring) {
            if target.isIdle {
                sleeper.rest()
                deadline = MonotonicClock.current
                continue
            }
            let now = MonotonicClock.current
            let behind = Int((now.nanoseconds &- deadline.nanoseconds) / period)
            let skipped = policy.skippedTicks(behind: behind, tickDuration: tickDuration)
            if skipped > 0 {
                statistics.skippedCount &+= skipped
                deadline.nanoseconds &+= Int64(skipped) &* period
            }
            statistics.record(lateness: now - deadline, tickDuration: tickDuration)
            target.tick(at: deadline, lateness: now - deadline)
            published.publish(statistics)
            deadline = pacer.wait(until: deadline + tickDuration, tickDuration: tickDuration, sleeper)
        }
    }
}

/// Waits for absolute deadlines.
package final class DeadlinePacer: TickPacer {
    /// A pacer.
    package init() {}

    /// Sleeps until `deadline`, and answers it.
    package func wait(until deadline: MediaTime, tickDuration: Duration, _ sleeper: Sleeper) -> MediaTime {
        sleeper.sleep(until: deadline)
        return deadline
    }
}
