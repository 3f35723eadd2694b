import Synchronization

/// A thread that does a piece of work whenever it is woken, from any thread, the media thread included.
final class WorkThread: @unchecked Sendable {
    private let sleeper: Sleeper
    private let isStopping = Atomic(false)
    private let thread = Mutex<MediaThread?>(nil)

    /// A thread that calls `body` once for one wake or several in a row; `start` starts it.
    init(_ body: @escaping @Sendable () -> Void) {
        sleeper = Sleeper(onWake: body)
    }

    /// Starts the thread.
    ///
    /// - Throws: `DriverError` when the thread cannot be made.
    func start(name: String) throws(DriverError) {
        try thread.withLock { thread throws(DriverError) in
            guard thread == nil else { return }
            thread = try MediaThread(name: name, priority: nil) { [self] _ in
                while !isStopping.load(ordering: .acquiring) { sleeper.rest() }
            }
        }
    }

    /// Has the thread do its work.
    func wake() { sleeper.wake() }

    /// Ends the thread after a last piece of work; when it returns, the work is not running.
    ///
    /// Thread: any but this one.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        sleeper.wake()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }
}
