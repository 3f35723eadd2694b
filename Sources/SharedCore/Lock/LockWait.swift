internal import CLinux
internal import Glibc
internal import Synchronization

/// One wait for a byte of the lock file, on a thread of its own that a cancellation can wake.
final class LockWait: Sendable {
    private struct State {
        var thread: pthread_t?
        var isCancelled = false
        var hasEnded = false

        mutating func endIfCancelled() -> Bool {
            if isCancelled { hasEnded = true }
            return isCancelled
        }
    }

    private let descriptor: CInt
    private let byte: CoreLock.Byte
    private let path: String
    private let wakeSignal: CInt
    private let state = Mutex(State())

    init(descriptor: CInt, byte: CoreLock.Byte, path: String) throws(LockError) {
        guard let signal = Self.wakeSignal else {
            throw LockError(
                .system,
                "Every real-time signal of this process has a handler; waiting for a lock needs one."
            )
        }
        wakeSignal = signal
        self.descriptor = descriptor
        self.byte = byte
        self.path = path
    }

    /// Starts the thread, which resumes the continuation and keeps the open file until then.
    func start(resuming continuation: CheckedContinuation<Result<Void, any Error>, Never>, keeping lock: CoreLock) {
        let body = Body {
            let result = self.run()
            withExtendedLifetime(lock) {}
            continuation.resume(returning: result)
        }
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        let argument = Unmanaged.passRetained(body)
        let failure = pthread_create(
            &thread,
            &attributes,
            { argument in
                if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            },
            argument.toOpaque()
        )
        guard failure != 0 else { return }
        argument.release()
        state.withLock { $0.hasEnded = true }
        continuation.resume(
            returning: .failure(LockError("Starting a thread to wait for", path: path, errno: failure))
        )
    }

    /// Ends the wait; returns once the thread neither sleeps in the kernel nor will.
    ///
    /// A signal that arrives before the thread has gone to sleep is lost, so it is sent until the thread has answered.
    func cancel() {
        while true {
            let isOver = state.withLock { state in
                state.isCancelled = true
                guard !state.hasEnded, let thread = state.thread else { return true }
                pthread_kill(thread, wakeSignal)
                return false
            }
            if isOver { return }
            usleep(Self.signalInterval)
        }
    }

    private func run() -> Result<Void, any Error> {
        maskSignals()
        state.withLock { $0.thread = pthread_self() }
        while true {
            if state.withLock({ $0.endIfCancelled() }) { return .failure(CancellationError()) }
            let result = linux_lock_byte(descriptor, off_t(byte.rawValue), 1)
            if result == -EINTR { continue }
            let isCancelled = state.withLock { state in
                if state.isCancelled, result == 0 { _ = linux_unlock_byte(descriptor, off_t(byte.rawValue)) }
                state.hasEnded = true
                return state.isCancelled
            }
            if isCancelled { return .failure(CancellationError()) }
            if result != 0 { return .failure(LockError("Waiting for", path: path, errno: -result)) }
            return .success(())
        }
    }

    /// This thread takes the wake signal and leaves those of the program to its other threads.
    private func maskSignals() {
        var all = sigset_t()
        sigfillset(&all)
        sigdelset(&all, wakeSignal)
        pthread_sigmask(SIG_SETMASK, &all, nil)
    }

    /// Units: microseconds.
    private static let signalInterval: UInt32 = 100

    /// The highest real-time signal that the program does not use, with a handler that does nothing: without one the signal would
    /// end the process, and without SA_RESTART it ends the system call.
    private static let wakeSignal: CInt? = {
        for signal in stride(from: __libc_current_sigrtmax(), through: __libc_current_sigrtmin(), by: -1) {
            var present = sigaction()
            guard sigaction(signal, nil, &present) == 0, present.__sigaction_handler.sa_handler == nil else { continue }
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in }
            if sigaction(signal, &action, nil) == 0 { return signal }
        }
        return nil
    }()

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
