internal import Dispatch
internal import Glibc
import MediaEngine
import Synchronization

/// Ctrl-C, SIGTERM and SIGHUP, taken as the wish to end cleanly; a second Ctrl-C or SIGTERM ends at once, unless the first one
/// was answered.
enum Interruption {
    private static let isWanted = Atomic(false)
    /// The end of a pipe to which the handler writes: all that a handler may do to wake somebody.
    private static let writeEnd = Atomic<CInt>(-1)
    private static let waiters = Mutex(Waiters())

    private struct Waiters {
        var continuations: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastID = 0
        /// Reads the other end; there once signals are caught.
        var source: (any DispatchSourceRead)?
    }

    /// Whether a signal came.
    static var hasCome: Bool { isWanted.load(ordering: .relaxed) }

    /// Catches the signals from now on; without a descriptor for that they end the process, as they do by default.
    static func catchSignals() {
        guard listen() else { return }
        ReadingEnd.isGivenUp = hasCome
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in
            let code = errno
            Interruption.end()
            errno = code
        }
        // Whoever started the tool may have left them blocked.
        var wanted = sigset_t()
        sigemptyset(&wanted)
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // nohup has one ignored, and that is to stay so.
            guard signal != SIGHUP || !isIgnored(signal) else { continue }
            // A terminal that is closed tells it twice, by the shell and by the kernel.
            action.sa_flags = signal == SIGHUP ? 0 : Int32(bitPattern: UInt32(SA_RESETHAND))
            sigaction(signal, &action, nil)
            sigaddset(&wanted, signal)
        }
        pthread_sigmask(SIG_UNBLOCK, &wanted, nil)
    }

    /// Ends the command as a signal does.
    ///
    /// Thread: any; a signal's handler may call it.
    static func end() {
        isWanted.store(true, ordering: .relaxed)
        ReadingEnd.isGivenUp = true
        var byte: UInt8 = 0
        _ = write(writeEnd.load(ordering: .relaxed), &byte, 1)
    }

    /// Takes the signal that came as answered: the command goes on with what it has, and the next signal ends it.
    static func answer() {
        isWanted.store(false, ordering: .relaxed)
        catchSignals()
    }

    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Has those who wait without a thread woken when a signal comes; answers false when there is no pipe to be had.
    private static func listen() -> Bool {
        waiters.withLock { waiters in
            guard waiters.source == nil else { return true }
            var ends: [CInt] = [-1, -1]
            guard pipe(&ends) == 0 else { return false }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            writeEnd.store(ends[1], ordering: .relaxed)
            let readEnd = ends[0]
            let source = DispatchSource.makeReadSource(fileDescriptor: readEnd)
            source.setEventHandler {
                // Another signal may follow one that was answered.
                var byte: UInt8 = 0
                _ = read(readEnd, &byte, 1)
                let woken = Interruption.waiters.withLock { waiters in
                    defer { waiters.continuations = [:] }
                    return waiters.continuations.values
                }
                for waiter in woken { waiter.resume() }
            }
            source.resume()
            waiters.source = source
            return true
        }
    }

    /// Waits for a signal without a thread, asleep until it comes; for `duration` at most when there is one.
    static func wait(for duration: Duration? = nil) async {
        guard let duration else { return await waitForSignal() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await waitForSignal() }
            group.addTask { try? await Task.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Waits for a signal, or for the task's cancellation.
    private static func waitForSignal() async {
        let id = waiters.withLock { waiters in
            waiters.lastID += 1
            return waiters.lastID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = waiters.withLock { waiters in
                    guard !hasCome, !Task.isCancelled else { return true }
                    waiters.continuations[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            waiters.withLock { $0.continuations.removeValue(forKey: id) }?.resume()
        }
    }

    /// Waits until `instant`; answers false when a signal came before.
    static func wait(until instant: MediaTime) async -> Bool {
        await wait(until: { MonotonicClock.current >= instant }, deadline: instant)
    }

    /// Waits for `duration`; answers false when a signal came before.
    static func wait(_ duration: Duration) async -> Bool { await wait(until: MonotonicClock.current + duration) }

    /// Waits until `isDone`, looked at every 5 ms; answers false when a signal came before.
    static func wait(until isDone: () -> Bool, deadline: MediaTime? = nil) async -> Bool {
        while !isDone() {
            guard !hasCome else { return false }
            var pause = Duration.milliseconds(5)
            if let deadline { pause = min(pause, max(deadline - MonotonicClock.current, .microseconds(50))) }
            // The commands' own task is never cancelled; if it were, this would look more often.
            try? await Task.sleep(for: pause)
        }
        return !hasCome
    }

    /// Works until it is done or a signal comes; then the work is cancelled, and there is no value.
    static func orValue<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await work() }
            group.addTask {
                await wait()
                return nil
            }
            return try await group.next() ?? nil
        }
    }
}
