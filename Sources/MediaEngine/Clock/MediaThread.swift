import CProcessor
import CallBasics
import Glibc
import Synchronization

/// Whether a media thread got real-time scheduling.
public enum SchedulingResult: Sendable, Equatable, CustomStringConvertible {
    /// SCHED_FIFO with this priority.
    case realTime(priority: Int)
    /// The normal scheduler, because real time was not asked for.
    case normal
    /// The normal scheduler, because the system refused.
    case refused(String)

    /// The result in words, with the remedy when real time was refused.
    public var description: String {
        switch self {
        case .realTime(let priority): "SCHED_FIFO, priority \(priority)"
        case .normal: "normal scheduling"
        case .refused(let reason):
            "normal scheduling: SCHED_FIFO was refused (\(reason)). Allow it with `ulimit -r 20`, a line "
                + "`@audio - rtprio 20` in /etc/security/limits.d, or the capability CAP_SYS_NICE."
        }
    }
}

/// A POSIX thread for media: its own stack, a name, and SCHED_FIFO when permitted; denormal numbers are zero there.
///
/// Neither the concurrency pool nor Dispatch will do: a busy pool starves a tick for seconds.
final class MediaThread: @unchecked Sendable {
    private final class Start {
        let name: String
        let priority: Int?
        let body: @Sendable (SchedulingResult) -> Void

        init(name: String, priority: Int?, body: @escaping @Sendable (SchedulingResult) -> Void) {
            self.name = name
            self.priority = priority
            self.body = body
        }
    }

    private let thread: pthread_t

    /// Starts a thread that runs `body` with what became of its scheduling.
    ///
    /// - Parameters:
    ///   - name: The name that `ps` and debuggers show, cut to 15 bytes.
    ///   - priority: The SCHED_FIFO priority, or nil for normal scheduling.
    ///   - body: What the thread does until it ends.
    /// - Throws: `DriverError` when the system has no room for another thread.
    init(
        name: String,
        priority: Int?,
        body: @escaping @Sendable (SchedulingResult) -> Void
    ) throws(DriverError) {
        let start = Unmanaged.passRetained(Start(name: String(name.prefix(15)), priority: priority, body: body))
        var thread = pthread_t()
        let code = pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                MediaThread.setName(start.name)
                flush_denormals()
                start.body(MediaThread.schedule(priority: start.priority))
                return nil
            },
            start.toOpaque()
        )
        guard code == 0 else {
            start.release()
            throw DriverError(
                .noThread,
                "The thread \(name) cannot be started: \(String(cString: strerror(code))). End others."
            )
        }
        self.thread = thread
    }

    /// Waits until the thread has ended.
    ///
    /// Call it once.
    func join() {
        pthread_join(thread, nil)
    }

    /// Names the calling thread.
    ///
    /// Glibc's own call is hidden from Swift; the file does the same.
    private static func setName(_ name: String) {
        let file = open("/proc/thread-self/comm", O_WRONLY)
        guard file >= 0 else { return }
        _ = write(file, name, name.utf8.count)
        close(file)
    }

    private static func schedule(priority: Int?) -> SchedulingResult {
        guard let priority else { return .normal }
        var parameters = sched_param(sched_priority: Int32(clamping: priority))
        let code = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters)
        return code == 0 ? .realTime(priority: priority) : .refused(String(cString: strerror(code)))
    }
}
