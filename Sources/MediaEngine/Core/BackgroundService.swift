/// Work for a tick that the media thread must not do: reading and writing files, freeing memory.
///
/// Thread: in real time the engine calls `serve` on a thread for such work, every few milliseconds; in virtual time before
/// each tick, on the thread that moves time, which keeps results the same on every run. Never on both.
public protocol BackgroundService: AnyObject, Sendable {
    /// Does a bounded piece of work: fills a ring from a file, or empties one into a file.
    func serve()
}

/// A service that may wait for another program, as at a pipe: nobody else is to wait for it.
package protocol WaitingService: BackgroundService {
    /// Whether it does.
    var waitsForOthers: Bool { get }
}
