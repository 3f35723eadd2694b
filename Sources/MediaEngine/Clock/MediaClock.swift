public import CallBasics
import Glibc
import Synchronization

/// Tells the present time to drivers.
///
/// Pure code never sees a clock; it is given times.
public protocol MediaClock: Sendable {
    /// The present instant.
    var now: MediaTime { get }
}

/// The machine's monotonic clock (CLOCK_MONOTONIC): never set back, not running while the machine sleeps.
public struct MonotonicClock: MediaClock {
    /// A clock.
    public init() {}

    /// The present instant.
    public var now: MediaTime { Self.current }

    /// The present instant.
    public static var current: MediaTime { read(CLOCK_MONOTONIC) }

    /// What to add to an instant of this clock to get the time since 1970-01-01 00:00 UTC.
    public static var wallOffset: Duration { read(CLOCK_REALTIME) - read(CLOCK_MONOTONIC) }

    /// Nanoseconds since 1970-01-01 00:00 UTC.
    static var wallNow: Int64 { read(CLOCK_REALTIME).nanoseconds }

    private static func read(_ clock: clockid_t) -> MediaTime {
        var time = timespec()
        clock_gettime(clock, &time)
        return MediaTime(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }
}

/// A clock that stands still until it is moved: virtual time for tests, simulations and offline rendering.
public final class ManualClock: MediaClock {
    private let nanoseconds: Atomic<Int64>

    /// A clock that stands at `start`.
    public init(at start: MediaTime = .zero) {
        nanoseconds = Atomic(start.nanoseconds)
    }

    /// Where the clock stands.
    public var now: MediaTime { MediaTime(nanoseconds: nanoseconds.load(ordering: .acquiring)) }

    /// Moves the clock on by `duration`.
    public func advance(by duration: Duration) {
        nanoseconds.wrappingAdd(duration.nanoseconds, ordering: .acquiringAndReleasing)
    }
}
