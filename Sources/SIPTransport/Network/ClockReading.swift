internal import CLinux
package import CallBasics

/// The time by two clocks that differ only in that one stands still while the machine sleeps.
///
/// Source: clock_gettime(2)
package struct ClockReading: Hashable, Sendable {
    /// The clock of timers, `SIPEndpoint.now`: it does not count sleep.
    package let monotonic: MediaTime
    /// The time since the machine was started, sleep included.
    package let boot: MediaTime

    package init(monotonic: MediaTime, boot: MediaTime) { (self.monotonic, self.boot) = (monotonic, boot) }

    /// What both clocks say now.
    package static var now: ClockReading {
        // A thread that stands still between two clocks makes a difference that is none: it looks again.
        for _ in 0..<8 {
            let (before, boot, after) = (monotonicTime, bootTime, monotonicTime)
            if after - before < .milliseconds(1) { return ClockReading(monotonic: before, boot: boot) }
        }
        return ClockReading(monotonic: monotonicTime, boot: bootTime)
    }

    private static var monotonicTime: MediaTime { MediaTime(nanoseconds: Int64(linux_monotonic_nanoseconds())) }
    private static var bootTime: MediaTime { MediaTime(nanoseconds: Int64(linux_boot_nanoseconds())) }
}
