internal import Synchronization

/// Wakes those who wait for something to change: a ring that comes before a wait is not lost, several are one.
final class Bell: Sendable {
    private struct State {
        var isRung = false
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastID = 0
    }

    private let state = Mutex(State())

    func ring() {
        let waiters = state.withLock { state in
            state.isRung = state.waiters.isEmpty
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for a ring, until `deadline` or the task's cancellation at the latest.
    func wait(until deadline: ContinuousClock.Instant) async {
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
                    guard !state.isRung, !Task.isCancelled, .now < deadline else {
                        state.isRung = false
                        return true
                    }
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
