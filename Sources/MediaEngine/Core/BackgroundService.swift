/// Work that the media thread needs done but must not do itself: refilling a ring from a file, opening a card again.
///
/// A `ServiceThread` calls `serve` about every 20 ms; a driver that runs in virtual time calls it before each tick,
/// so that results do not depend on the machine's pace.
/// Thread: `serve` is called from one thread at a time, never the media thread. It does a bounded amount of work.
public protocol BackgroundService: AnyObject, Sendable {
    /// Does what has become due.
    func serve()
}
