import CallBasics

/// Turns the kernel's time stamps, which are in wall time, into instants of the monotonic clock.
///
/// The two are compared anew in each tick, once for all sockets of a media thread, so that a wall clock that is set moves
/// no arrival.
/// Thread: media.
final class ArrivalClock: @unchecked Sendable {
    private var tick = MediaTime(nanoseconds: .min)
    private var now = MediaTime.zero
    /// What to take from wall time.
    private var offset: Int64 = 0

    /// A datagram may arrive so much later than the tick's first look at a clock.
    private static var slack: Int64 { 20_000_000 }

    /// The instant of a stamp, in nanoseconds since 1970, that is read in the tick that is due at `tick`.
    ///
    /// - Parameters:
    ///   - stamp: When the datagram arrived.
    ///   - tick: The tick's time.
    ///   - lastEmpty: When the socket was last seen to be empty: nothing arrived before that.
    /// - Returns: The instant of the monotonic clock.
    func arrival(_ stamp: Int64, in tick: MediaTime, after lastEmpty: MediaTime) -> MediaTime {
        if tick != self.tick {
            self.tick = tick
            now = MonotonicClock.current
            offset = MonotonicClock.wallNow &- now.nanoseconds
        }
        let arrival = min(stamp &- offset, now.nanoseconds &+ Self.slack)
        return MediaTime(nanoseconds: max(arrival, min(lastEmpty.nanoseconds, now.nanoseconds)))
    }
}
