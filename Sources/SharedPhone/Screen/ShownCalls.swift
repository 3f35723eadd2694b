internal import CallCore
internal import Synchronization

/// The calls that a screen shows, so that each is told to have ended when their core has gone for good.
///
/// A call is known by its UUID to one core alone: the next one tells of it anew, if it is still to be had.
final class ShownCalls: Sendable {
    private struct State {
        /// In the order in which they came.
        var calls: [CallUUID] = []
        /// Set from the loss of the core to what the next one tells first.
        var alarm: Task<Void, Never>?
    }

    private let state = Mutex(State())
    private let continuation: AsyncStream<ScreenClient.Event>.Continuation

    init(_ continuation: AsyncStream<ScreenClient.Event>.Continuation) { self.continuation = continuation }

    /// Passes an event on, and keeps what it tells of calls.
    func tell(_ event: ScreenClient.Event) {
        state.withLock { state in
            switch event {
            case .snapshot(let calls, _):
                state.alarm?.cancel()
                (state.alarm, state.calls) = (nil, calls.map(\.call))
            case .incoming(let call, _), .outgoing(let call, _, _):
                if !state.calls.contains(call) { state.calls.append(call) }
            case .ended(let call, _): state.calls.removeAll { $0 == call }
            case .performed(let action, .fulfilled) where action.kind == .end:
                state.calls.removeAll { $0 == action.call }
            case .interrupted:
                // A core that closes may have let it in once more: that is one absence, told once, and as long as it is.
                guard state.alarm == nil else { return }
                state.alarm = Task { [weak self] in
                    do { try await Task.sleep(for: ScreenClient.interruptionPatience) } catch { return }
                    self?.endAll()
                }
            case .updated, .performed, .audio: break
            }
            continuation.yield(event)
        }
    }

    /// Nobody listens any more.
    func close() { state.withLock { $0.alarm?.cancel() } }

    private func endAll() {
        state.withLock { state in
            // Whoever cancelled it may have come first.
            guard !Task.isCancelled else { return }
            for call in state.calls { continuation.yield(.ended(call, .failed)) }
            state.calls = []
        }
    }
}
