package import CallBasics

/// Says whether the machine slept, or the process was stopped, between two looks.
///
/// Both leave connections that look open and are not: servers and address translators have forgotten them.
///
/// - The machine slept when the clock that counts sleep went on further than the one that does not.
/// - The process was stopped (SIGSTOP, a debugger, a frozen container) when it comes late to a deadline.
package struct SleepWatch: Sendable {
    /// What is no longer than this is no sleep: a processor that is busy, or clocks that were not read at one instant.
    package static let limit = Duration.seconds(1)

    private var last: ClockReading

    /// Watches from this reading on.
    package init(from first: ClockReading) { last = first }

    /// Looks at the clocks; how long the machine slept since the last look and the process was stopped, else nil.
    ///
    /// Each of the two counts when it took more than 1 s.
    ///
    /// - Parameters:
    ///   - reading: What the clocks say.
    ///   - due: For when the look was planned, on the clock of timers; nil when it comes by something else.
    /// - Returns: Their sum, or nil.
    package mutating func absence(at reading: ClockReading, due: MediaTime? = nil) -> Duration? {
        let awake = reading.monotonic - last.monotonic
        let slept = (reading.boot - last.boot) - awake
        let late = due.map { reading.monotonic - max($0, last.monotonic) } ?? .zero
        last = reading
        let counted = [slept, late].filter { $0 > Self.limit }
        return counted.isEmpty ? nil : counted.reduce(.zero, +)
    }
}
