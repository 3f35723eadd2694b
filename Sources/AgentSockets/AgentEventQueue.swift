internal import Synchronization

/// What happens on a line, for one reader: 256 events wait for it, of which those that tell of the voice give way.
///
/// Thread: any.
final class AgentEventQueue: Sendable {
    fileprivate static let capacity = 256

    fileprivate struct State {
        /// The oldest first.
        var waiting: [AgentLine.Event] = []
        var reader: CheckedContinuation<AgentLine.Event?, Never>?
        var isFinished = false
    }

    private let state = Mutex(State())

    /// The events, in order, to the end.
    var events: AsyncStream<AgentLine.Event> { AsyncStream { [self] in await next() } }

    /// Tells an event; where there is no room, the oldest of the voice is left out, or this one.
    func put(_ event: AgentLine.Event) {
        state.withLock { $0.take(event, isLast: false) }?.resume(returning: event)
    }

    /// Tells the last event.
    func finish(with event: AgentLine.Event) {
        state.withLock { $0.take(event, isLast: true) }?.resume(returning: event)
    }

    /// Nobody will tell anything any more.
    func close() {
        let reader = state.withLock { state in
            state.isFinished = true
            return state.reader.take()
        }
        reader?.resume(returning: nil)
    }

    private func next() async -> AgentLine.Event? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let event = state.withLock { state -> AgentLine.Event?? in
                    if !state.waiting.isEmpty { return state.waiting.removeFirst() }
                    guard !state.isFinished, !Task.isCancelled, state.reader == nil else { return .some(nil) }
                    state.reader = reader
                    return nil
                }
                if let event { reader.resume(returning: event) }
            }
        } onCancel: {
            state.withLock { $0.reader.take() }?.resume(returning: nil)
        }
    }
}

extension AgentEventQueue.State {
    /// Answers who waits for an event, and else keeps it; the last one, and that the agent hangs up, which it says once, in any case.
    fileprivate mutating func take(
        _ event: AgentLine.Event,
        isLast: Bool
    ) -> CheckedContinuation<AgentLine.Event?, Never>? {
        guard !isFinished else { return nil }
        isFinished = isLast
        if let reader = reader.take() { return reader }
        if waiting.count >= AgentEventQueue.capacity, let voice = waiting.firstIndex(where: \.isVoice) {
            waiting.remove(at: voice)
        }
        if isLast || event == .hangUp || waiting.count < AgentEventQueue.capacity { waiting.append(event) }
        return nil
    }
}

extension AgentLine.Event {
    fileprivate var isVoice: Bool { if case .voice = self { true } else { false } }
}
