internal import Synchronization

/// Wakes those who wait for something to change; several notifications are one.
///
/// Who waits takes `count` before it looks at what may change: a notification after that ends its wait, also when it came before
/// the wait began and woke others.
package final class Notifier: Sendable {
    private struct State {
        var count = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastID = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// How often it notified.
    package var count: Int { state.withLock { $0.count } }

    package func notify() {
        let waiters = state.withLock { state in
            state.count += 1
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for a notification after the first `count`, until `deadline` or the task's cancellation at the latest.
    package func wait(after count: Int, until deadline: ContinuousClock.Instant) async {
        guard !Task.isCancelled else { return }
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let timer = Task {
            try? await Task.sleep(until: deadline, clock: .continuous)
            release(id)
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.count == count, !Task.isCancelled, .now < deadline else { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            release(id)
        }
        timer.cancel()
    }

    private func release(_ id: Int) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
        waiter?.resume()
    }
}
