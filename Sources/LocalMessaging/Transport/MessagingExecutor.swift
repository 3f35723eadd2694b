package import NIOCore

/// Runs tasks on the thread that moves the bytes of all connections of this process.
///
/// An answer from there is two thread switches faster than one from the concurrency pool, and after a request or an answer
/// the thread stays awake for up to 50 us, for what may come next. But while a task computes or
/// waits in a system call on it, no connection of the process reads or writes: it is for handlers that take microseconds.
///
/// Thread: any.
public final class MessagingExecutor: TaskExecutor {
    /// That of all connections of this process.
    public static let shared = MessagingExecutor(SocketTransport.eventLoop)

    private let eventLoop: any EventLoop

    package init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Whether it is the thread of `eventLoop`.
    func isThread(of eventLoop: any EventLoop) -> Bool { self.eventLoop === eventLoop }

    /// Runs `job` on the thread, after those that were there before.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
