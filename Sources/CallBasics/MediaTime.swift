/// An instant on a media clock.
///
/// Units: nanoseconds since the origin of the clock that gave it. Instants of two clocks do not compare.
/// Every pure type takes the present time as an argument of this type and never reads a clock.
public struct MediaTime: Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// Nanoseconds since the clock's origin.
    public var nanoseconds: Int64

    /// The instant `nanoseconds` after the clock's origin.
    @inlinable public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The origin of the clock.
    @inlinable public static var zero: MediaTime { MediaTime(nanoseconds: 0) }

    /// Whether `left` is earlier than `right`.
    @inlinable public static func < (left: MediaTime, right: MediaTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant `duration` after `time`.
    @inlinable public static func + (time: MediaTime, duration: Duration) -> MediaTime {
        MediaTime(nanoseconds: time.nanoseconds &+ duration.nanoseconds)
    }

    /// The instant `duration` before `time`.
    @inlinable public static func - (time: MediaTime, duration: Duration) -> MediaTime {
        MediaTime(nanoseconds: time.nanoseconds &- duration.nanoseconds)
    }

    /// The time from `right` to `left`.
    @inlinable public static func - (left: MediaTime, right: MediaTime) -> Duration {
        Duration(wholeNanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    /// The nanoseconds from `earlier` to here; a `Duration` counts in 128 bits and would be divided to tell them.
    @inlinable @inline(__always)
    package func nanoseconds(since earlier: MediaTime) -> Int64 { nanoseconds &- earlier.nanoseconds }

    /// Moves the instant on by `duration`.
    @inlinable public static func += (time: inout MediaTime, duration: Duration) { time = time + duration }

    /// The instant in seconds after the origin.
    public var description: String { "\(Double(nanoseconds) / 1_000_000_000) s" }
}
