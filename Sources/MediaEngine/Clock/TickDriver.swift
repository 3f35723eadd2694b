package import CallBasics

/// Starts the ticks of a target: by a timer, by a card's period, or by hand.
package protocol TickDriver: AnyObject, Sendable {
    /// How punctual the ticks were so far.
    var statistics: TickStatistics { get }
    /// Begins to tick.
    ///
    /// - Throws: `DriverError` when the thread cannot be made.
    func start() throws(DriverError)
    /// Stops ticking; when it returns no tick runs any more.
    func stop()
    /// Has the target obey what it was asked for, at once rather than at its next tick.
    ///
    /// Thread: any.
    func wake()
}

/// What a driver drives.
///
/// Thread: media, but for `isIdle`.
package protocol TickTarget: AnyObject, Sendable {
    /// Runs the tick that is due at `now` and starts `lateness` after that.
    func tick(at now: MediaTime, lateness: Duration)
    /// Obeys what it was asked for, between two ticks.
    func obey()
    /// Whether there is nothing to do: then no tick runs until the driver is woken.
    ///
    /// Thread: any.
    var isIdle: Bool { get }
}

extension TickTarget {
    /// Runs the tick that starts at `now`, in time.
    package func tick(at now: MediaTime) { tick(at: now, lateness: .zero) }
}

/// Waits for the next tick on a driver's thread.
package protocol TickPacer: AnyObject, Sendable {
    /// Waits until the tick that is due at `deadline`, and answers when it was really due: the deadline, or the moment
    /// at which a card asked for it.
    ///
    /// - Parameters:
    ///   - deadline: When the tick is due by the clock.
    ///   - tickDuration: The time between two ticks.
    ///   - sleeper: What sleeps, and does what the thread is woken for.
    /// - Returns: When the tick was really due.
    func wait(until deadline: MediaTime, tickDuration: Duration, _ sleeper: Sleeper) -> MediaTime
}

/// What to do when ticks come late.
///
/// After a stall (a stopped process, a container whose CPU quota is used up) every tick that was due is run, one after the
/// other, so that nothing is left out and the next ones are in time again. Only what the machine could not make up for
/// within `longestBacklog` is skipped, and counted.
package struct LatenessPolicy: Sendable {
    /// Ticks further behind than this are skipped.
    package var longestBacklog: Duration

    /// A policy that makes up for a second.
    package init(longestBacklog: Duration = .seconds(1)) {
        self.longestBacklog = longestBacklog
    }

    /// Ticks of `tickDuration` to skip when the driver is `behind` ticks late.
    package func skippedTicks(behind: Int, tickDuration: Duration) -> Int {
        max(0, behind &- Int(longestBacklog.nanoseconds / tickDuration.nanoseconds))
    }
}
