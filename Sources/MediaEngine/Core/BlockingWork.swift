import Glibc
import Synchronization

/// Runs work that may block (opening a file on a network, a pipe whose other end is closed) on a thread of its own, so that
/// the concurrency pool never waits for it.
package enum BlockingWork {
    private final class Job: Sendable {
        let body: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void) {
            self.body = body
        }
    }

    /// What has come of it.
    ///
    /// Who waits makes it, and it is filled under a lock: the thread sanitizer knows no order by a continuation that is
    /// resumed before its task is suspended.
    private final class Outcome<Value: Sendable>: Sendable {
        private let result = Mutex<Result<Value, any Error>?>(nil)

        func set(_ value: Result<Value, any Error>) { result.withLock { $0 = value } }

        func get() throws -> Value {
            guard let done = result.withLock({ $0 }) else { preconditionFailure("Nothing has come of it yet.") }
            return try done.get()
        }
    }

    /// Answers what `body` does, off the pool.
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        let outcome = Outcome<Value>()
        await run { outcome.set(Result { try body() }) }
        return try outcome.get()
    }

    /// Does `body`, off the pool.
    package static func run(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            start {
                body()
                continuation.resume()
            }
        }
    }

    /// Starts `body` and does not wait for it, unless there is no room for a thread: late is better than never.
    static func start(_ body: @escaping @Sendable () -> Void) {
        if !startThread(body) { body() }
    }

    /// Starts `body` on a thread of its own; answers false where there is no room for one.
    package static func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        let job = Unmanaged.passRetained(Job(body))
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        defer { pthread_attr_destroy(&attributes) }
        let code = pthread_create(
            &thread,
            &attributes,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            },
            job.toOpaque()
        )
        if code != 0 { job.release() }
        return code == 0
    }
}
