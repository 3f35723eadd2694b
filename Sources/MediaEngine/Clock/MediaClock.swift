package import CallBasics
import Glibc
import Synchronization

/// Tells the present time to drivers.
///
/// Pure code never sees a clock; it is given times.
package protocol MediaClock: Sendable {
    /// The present instant.
    var now: MediaTime { get }
}

/// The machine's monotonic clock (CLOCK_MONOTONIC): never set back, not running while the machine sleeps.
package struct MonotonicClock: MediaClock {
    /// A clock.
    package init() {}

    /// The present instant.
    package var now: MediaTime { Self.current }

    /// The present instant.
    package static var current: MediaTime { read(CLOCK_MONOTONIC) }

    /// What to add to an instant of this clock to get the time since 1970-01-01 00:00 UTC.
    package static var wallOffset: Duration { read(CLOCK_REALTIME) - read(CLOCK_MONOTONIC) }

    /// Nanoseconds since 1970-01-01 00:00 UTC.
    static var wallNow: Int64 { read(CLOCK_REALTIME).nanoseconds }

    private static func read(_ clock: clockid_t) -> MediaTime {
        var time = timespec()
        clock_gettime(clock, &time)
        return MediaTime(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }
}

/// A clock that stands still until it is moved: virtual time for tests, simulations and offline rendering.
package final class ManualClock: MediaClock {
    private let nanoseconds: Atomic<Int64>

    /// A clock that stands at `start`.
    package init(at start: MediaTime = .zero) {
        nanoseconds = Atomic(start.nanoseconds)
    }

    /// Where the clock stands.
    package var now: MediaTime { MediaTime(nanoseconds: nanoseconds.load(ordering: .acquiring)) }

    /// Moves the clock on by `duration`.
    package func advance(by duration: Duration) {
        nanoseconds.wrappingAdd(duration.nanoseconds, ordering: .acquiringAndReleasing)
    }
}
