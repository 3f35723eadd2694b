import Synchronization

/// Does for an engine what its `RouteWatcher` asks, off the background thread: opening a card takes long.
///
/// In virtual time it is done at once. The engine is not kept alive by it.
final class RouteHands: Sendable {
    private struct Target: Sendable {
        weak var engine: CallEngine?
    }

    private let target = Mutex(Target())

    /// Works for `engine` from now on.
    func hold(_ engine: CallEngine) {
        target.withLock { $0.engine = engine }
    }

    /// Does `action`, in virtual time before it returns.
    ///
    /// - Parameters:
    ///   - action: What is to be done.
    ///   - isAtOnce: Whether it is done on the caller's thread.
    func perform(_ action: RouteWatcher.Action, isAtOnce: Bool) {
        if isAtOnce {
            target.withLock { $0.engine }?.perform(action)
        } else {
            // Not the thread that asks: the engine's own threads must not be the last that hold it.
            Task.detached { [self] in target.withLock { $0.engine }?.perform(action) }
        }
    }
}
