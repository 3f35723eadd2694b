import Synchronization

/// A lock whose waiters suspend: what is done under it may itself suspend.
///
/// Waiters get it in the order in which they asked.
final class AsyncLock: Sendable {
    private struct State {
        var isHeld = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    init() {}

    /// Runs `body` when everybody who asked before is done.
    func withLock<Result>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> sending Result
    ) async rethrows -> sending Result {
        await acquire()
        defer { release() }
        return try await body()
    }

    private func acquire() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.isHeld else {
                    state.isHeld = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
        // What the last one did is seen from here on. The thread sanitizer would not know it by a continuation that is
        // resumed before its task is suspended.
        state.withLock { _ in }
    }

    private func release() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.isHeld = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
