import Glibc

/// The one place in which tests look again and again: for what cannot tell, as a table of the kernel, a database or a
/// lock file that another process writes, or a call that is to be repeated until it is answered otherwise.
///
/// What can tell is awaited: a line or the end of a process (`ProgramRun`), a file (`FileWatch`), a value (`Watched`).
public enum Polling {
    /// How long a test waits for what comes at once on a machine that is idle.
    public static let limit = Duration.seconds(30)

    /// Looks until `isDone`, for `limit` at most; whether it was.
    ///
    /// Thread: blocks the caller's.
    @discardableResult
    public static func wait(_ limit: Duration = limit, until isDone: () throws -> Bool) rethrows -> Bool {
        let end = ContinuousClock.now + limit
        while try !isDone() {
            guard .now < end else { return false }
            usleep(1000)
        }
        return true
    }

    /// As `wait`, and lets others run meanwhile.
    @discardableResult
    public static func eventually(
        _ limit: Duration = limit,
        isolation: isolated (any Actor)? = #isolation,
        until isDone: () async throws -> Bool
    ) async rethrows -> Bool {
        let end = ContinuousClock.now + limit
        while try await !isDone() {
            guard .now < end, !Task.isCancelled else { return false }
            try? await Task.sleep(for: .milliseconds(1))
        }
        return true
    }
}

/// Lets time go by.
///
/// Only where time itself is what a test needs: the pace of what it sends, or the length of what it measures. Never to
/// hear of something.
///
/// Thread: blocks the caller's.
public func pass(_ duration: Duration) {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let parts = duration.components
    end.tv_sec += Int(parts.seconds)
    end.tv_nsec += Int(parts.attoseconds / 1_000_000_000)
    end.tv_sec += end.tv_nsec / 1_000_000_000
    end.tv_nsec %= 1_000_000_000
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nil) == EINTR {}
}
