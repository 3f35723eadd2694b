import CallBasics

/// Bounds what is read of a socket's error queue (ip(7), IP_RECVERR).
///
/// Whoever guesses a port can send errors in the name of any router, from an address of his own, tens of thousands a second.
/// Each makes a call fail, and those that wait take up the room of datagrams. So `limit` are read in a tick at most; with that
/// many, the socket is to take none for `pause`.
/// Pure: counts and times in, answers out.
struct ErrorQueueLimit: BitwiseCopyable {
    /// Errors that are read in one tick.
    static var limit: Int { 64 }
    /// How long none are taken after a tick with so many.
    static var pause: Duration { .seconds(5) }

    private var tick: MediaTime?
    private var readCount = 0
    private var pauseEnd: MediaTime?

    /// Errors that may still be read in the tick at `now`.
    mutating func room(at now: MediaTime) -> Int {
        if tick != now { (tick, readCount) = (now, 0) }
        return Self.limit &- readCount
    }

    /// Takes the number of errors that were read at `now`, no more than `room`; answers whether a pause begins.
    mutating func beginsPause(_ count: Int, at now: MediaTime) -> Bool {
        readCount &+= count
        guard count > 0, readCount >= Self.limit else { return false }
        pauseEnd = now + Self.pause
        return true
    }

    /// Whether a pause ends at `now`; asked once more, it has ended.
    mutating func endsPause(at now: MediaTime) -> Bool {
        guard let pauseEnd, now >= pauseEnd else { return false }
        self.pauseEnd = nil
        return true
    }
}
