import Synchronization

/// A value that one thread changes and a test waits for.
///
/// Thread: any. A wait has no limit of its own: the suite's time limit ends it, by cancelling the test.
public final class Watched<Value: Sendable>: Sendable {
    private struct Waiter {
        let isDone: @Sendable (Value) -> Bool
        let continuation: CheckedContinuation<Value, any Error>
    }

    private struct State {
        var value: Value
        var waiters: [Int: Waiter] = [:]
        var lastID = 0
    }

    private let state: Mutex<State>

    /// A value that nobody waits for yet.
    public init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    /// What it is now.
    public var value: Value { state.withLock(\.value) }

    /// Changes the value, and wakes those who have waited for what it is now.
    @discardableResult
    public func update<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        let (result, value, ready) = state.withLock { state in
            let result = body(&state.value)
            let value = state.value
            let ready = state.waiters.filter { $0.value.isDone(value) }
            for id in ready.keys { state.waiters[id] = nil }
            return (result, value, ready)
        }
        for waiter in ready.values { waiter.continuation.resume(returning: value) }
        return result
    }

    /// The value as soon as `isDone` holds of it.
    ///
    /// - Throws: `CancellationError` when the task was cancelled before.
    @discardableResult
    public func wait(until isDone: @escaping @Sendable (Value) -> Bool) async throws -> Value {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready: Result<Value, any Error>? = state.withLock { state in
                    if isDone(state.value) { return .success(state.value) }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiters[id] = Waiter(isDone: isDone, continuation: continuation)
                    return nil
                }
                if let ready { continuation.resume(with: ready) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }
}
