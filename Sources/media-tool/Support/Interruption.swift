internal import Glibc
import MediaEngine
import Synchronization

/// Ctrl-C and SIGTERM, taken as the wish to end cleanly; a second one ends at once.
enum Interruption {
    private static let isWanted = Atomic(false)

    /// Whether a signal came.
    static var hasCome: Bool { isWanted.load(ordering: .relaxed) }

    /// Catches the signals from now on.
    static func catchSignals() {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in Interruption.isWanted.store(true, ordering: .relaxed) }
        action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
        sigaction(SIGINT, &action, nil)
        sigaction(SIGTERM, &action, nil)
        signal(SIGPIPE, SIG_IGN)
        // Whoever started the tool may have left them blocked.
        var wanted = sigset_t()
        sigemptyset(&wanted)
        sigaddset(&wanted, SIGINT)
        sigaddset(&wanted, SIGTERM)
        pthread_sigmask(SIG_UNBLOCK, &wanted, nil)
    }

    /// Waits for a signal without a thread, looked at every 20 ms; for `duration` at most when there is one.
    static func wait(for duration: Duration? = nil) async {
        let end = duration.map { ContinuousClock.now + $0 }
        while !hasCome, !Task.isCancelled {
            if let end, ContinuousClock.now >= end { return }
            try? await Task.sleep(for: min(.milliseconds(20), end.map { $0 - .now } ?? .milliseconds(20)))
        }
    }

    /// Waits until `instant`; answers false when a signal came before.
    static func wait(until instant: MediaTime) -> Bool {
        wait(until: { MonotonicClock.current >= instant }, deadline: instant)
    }

    /// Waits for `duration`; answers false when a signal came before.
    static func wait(_ duration: Duration) -> Bool { wait(until: MonotonicClock.current + duration) }

    /// Waits until `isDone`, looked at every 5 ms; answers false when a signal came before.
    static func wait(until isDone: () -> Bool, deadline: MediaTime? = nil) -> Bool {
        while !isDone() {
            guard !hasCome else { return false }
            var pause = Duration.milliseconds(5)
            if let deadline { pause = min(pause, max(deadline - MonotonicClock.current, .microseconds(50))) }
            usleep(UInt32(pause.nanoseconds / 1000))
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
