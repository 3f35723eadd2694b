internal import CallBasics
internal import CLinux
internal import Glibc
internal import Synchronization

/// One wait for a byte of the lock file, on a thread of its own that a cancellation can wake.
///
/// The thread runs C alone, so that it can be cancelled in the kernel (pthread_cancel(3)): nothing of the process that
/// hosts the core is used for it, no signal and no handler, and no thread stays behind.
final class LockWait: Sendable {
    typealias Outcome = Result<Void, any Error>

    private struct State {
        var isCancelled = false
        /// The thread exists, and the end of the wait has not been told.
        var isRunning = false
        var continuation: CheckedContinuation<Outcome, Never>?
    }

    /// Keeps the open file until the end of the wait.
    private let lock: CoreLock
    private let state = Mutex(State())
    /// Written before the thread starts, and read by it and under the lock of `state`.
    nonisolated(unsafe) private let wait = UnsafeMutablePointer<linux_lock_wait>.allocate(capacity: 1)

    /// A wait for a byte of `lock`, whose open file is `descriptor`.
    init(for byte: CoreLock.Byte, of lock: CoreLock, descriptor: CInt) {
        self.lock = lock
        wait.initialize(
            to: linux_lock_wait(
                descriptor: descriptor,
                offset: byte.rawValue,
                context: nil,
                ended: { context, result in
                    guard let context else { return }
                    Unmanaged<LockWait>.fromOpaque(context).takeRetainedValue().ended(result)
                },
                thread: 0
            )
        )
    }

    deinit {
        wait.deallocate()
    }

    /// Starts the thread, which resumes the continuation.
    func start(resuming continuation: CheckedContinuation<Outcome, Never>) {
        // The thread gives it back at its end.
        let context = Unmanaged.passRetained(self)
        let failure = state.withLock { state -> (any Error)? in
            if state.isCancelled { return CancellationError() }
            wait.pointee.context = context.toOpaque()
            // Its end waits for this lock, so it is not told before the continuation is there.
            let code = linux_start_lock_wait(wait)
            guard code == 0 else { return LockError("Starting a thread to wait for", path: lock.path, errno: -code) }
            state.isRunning = true
            state.continuation = continuation
            return nil
        }
        guard let failure else { return }
        context.release()
        continuation.resume(returning: .failure(failure))
    }

    /// Ends the wait soon, unless it has ended; the continuation says how.
    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if state.isRunning { linux_cancel_lock_wait(wait) }
        }
    }

    private func ended(_ result: CInt) {
        let continuation = state.withLock { state in
            state.isRunning = false
            return state.continuation.take()
        }
        let outcome: Outcome =
            switch result {
            case 0: .success(())
            case -ECANCELED: .failure(CancellationError())
            default: .failure(LockError("Waiting for", path: lock.path, errno: -result))
            }
        continuation?.resume(returning: outcome)
    }
}
