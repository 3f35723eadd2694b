internal import Synchronization

/// What happens to a running core, as its handlers, its service and its loops tell each other.
final class CoreSignals: Sendable {
    /// What a core knows of its calls.
    private enum Calls { case noneYet, on, over }

    private struct State {
        var isAskedToYield = false
        var calls = Calls.noneYet
        var hasFetched = false
        var isActing = true
        /// An action came after the present attempts began: they may not have seen it.
        var isQueued = false
        /// The count of `action` before they began.
        var countBefore = 0
        var isEnding = false
        var failure: (any Error)?
        /// What clients wait for, each for one thing.
        var awaited: [ObjectIdentifier: AwaitedItem] = [:]
    }

    /// Notifies when anything here, in the store or among those who wait may have changed.
    let changed = Notifier()
    private let action = Notifier()
    private let role: CoreRole
    private let state = Mutex(State())

    init(role: CoreRole) {
        self.role = role
    }

    var isAskedToYield: Bool { state.withLock { $0.isAskedToYield } }
    var hasFetched: Bool { state.withLock { $0.hasFetched } }
    var isActing: Bool { state.withLock { $0.isActing } }
    var isEnding: Bool { state.withLock { $0.isEnding } }
    var failure: (any Error)? { state.withLock { $0.failure } }
    /// What clients wait for, whether it is in the store by now or not.
    var awaited: [AwaitedItem] { state.withLock { Array($0.awaited.values) } }
    /// Whether there were calls, and are none any more.
    var areCallsOver: Bool { state.withLock { $0.calls == .over } }
    /// Whether a call is on.
    var isInCall: Bool { state.withLock { $0.calls == .on } }

    /// The core ends, whoever asked for it.
    func end() {
        state.withLock { $0.isEnding = true }
        changed.notify()
    }

    /// Takes the request of a core with priority; false for one that gives way to nobody, or not during a call.
    func askToYield() -> Bool {
        let isYielding = state.withLock { state in
            // What was granted stays so, whatever comes then.
            state.isAskedToYield = state.isAskedToYield || role == .executor || role == .call && state.calls != .on
            return state.isAskedToYield
        }
        if isYielding { changed.notify() }
        return isYielding
    }

    /// Calls are on, or none any more.
    func setInCall(_ isInCall: Bool) {
        state.withLock { state in
            if isInCall { state.calls = .on } else if state.calls == .on { state.calls = .over }
        }
        changed.notify()
    }

    /// A client waits for something, or for nothing any more.
    func setAwaited(_ item: AwaitedItem?, by client: ObjectIdentifier) {
        state.withLock { $0.awaited[client] = item }
        changed.notify()
    }

    /// An action was queued.
    func actionQueued() {
        state.withLock { state in
            state.isActing = true
            state.isQueued = true
        }
        action.notify()
    }

    /// The queued actions are about to be tried; true when one was queued since they were, or all are to be tried again.
    @discardableResult
    func beginActing() -> Bool {
        let count = action.count
        return state.withLock { state in
            defer { state.isQueued = false }
            state.isActing = true
            state.countBefore = count
            return state.isQueued
        }
    }

    /// Those that may be were begun; `isBusy` when some of them have not ended.
    func endActing(isBusy: Bool) {
        state.withLock { $0.isActing = $0.isQueued || isBusy }
        changed.notify()
    }

    /// One of them has ended: others may be waiting for it.
    func actionEnded() { action.notify() }

    /// Waits until an action is queued, or has ended, after those that were begun, until `limit` at the latest.
    func nextAction(until limit: ContinuousClock.Instant) async {
        await action.wait(after: state.withLock { $0.countBefore }, until: limit)
    }

    func fetched() {
        state.withLock { $0.hasFetched = true }
        changed.notify()
    }

    /// Runs a write of the store; a failure ends the core.
    func watching<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            fail(error)
            throw error
        }
    }

    /// Runs a piece of the core's work; a failure but cancellation ends the core.
    func reporting(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            if !(error is CancellationError), !Task.isCancelled { fail(error) }
        }
    }

    private func fail(_ error: any Error) {
        state.withLock { $0.failure = $0.failure ?? error }
        changed.notify()
    }
}
