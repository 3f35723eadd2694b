/// Starts the ticks of a runner: by a timer, by a card's period, or by hand.
public protocol TickDriver: AnyObject, Sendable {
    /// How punctual the ticks were so far.
    var statistics: TickStatistics { get }
    /// Begins to tick.
    ///
    /// - Throws: `DriverError` when the thread cannot be made.
    func start() throws(DriverError)
    /// Stops ticking; when it returns no tick runs any more.
    func stop()
}

/// What a driver drives.
///
/// Thread: media.
public protocol TickTarget: AnyObject, Sendable {
    /// Runs the tick that is due at `now` and starts `lateness` after that.
    func tick(at now: MediaTime, lateness: Duration)
}

extension TickTarget {
    /// Runs the tick that starts at `now`, in time.
    public func tick(at now: MediaTime) { tick(at: now, lateness: .zero) }
}

extension GraphRunner: TickTarget {}

/// Why a driver could not start.
public struct DriverError: Error, Sendable, CustomStringConvertible {
    /// What failed and the remedy.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Waits for the next tick on a driver's thread.
public protocol TickPacer: AnyObject, Sendable {
    /// Waits until the tick that is due at `deadline`, and answers when it was really due: the deadline, or the moment
    /// at which a card asked for it.
    func wait(until deadline: MediaTime, tickDuration: Duration) -> MediaTime
}

/// What to do when ticks come late.
///
/// After a stall of k ticks the driver runs at most `maximumCatchUp` of them back to back and skips the others, so that
/// a long stall does not end in a burst that makes the next ticks late, too. Skipped ticks are counted.
public struct LatenessPolicy: Sendable {
    /// Missed ticks that are run after a stall.
    public var maximumCatchUp: Int

    /// A policy that makes up for at most `maximumCatchUp` ticks.
    public init(maximumCatchUp: Int = 4) {
        self.maximumCatchUp = maximumCatchUp
    }

    /// Ticks to skip when the driver is `behind` ticks late.
    public func skippedTicks(behind: Int) -> Int { max(0, behind &- maximumCatchUp) }
}
