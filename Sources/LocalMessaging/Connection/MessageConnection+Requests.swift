import NIOCore
import Synchronization

/// Requests of this side, and their ends.
extension MessageConnection {
    /// Gives a request its number, and room among those that wait for their answers.
    func beginRequest(timeout: Duration) throws(MessagingError) -> UInt64 {
        let deadline = channel.eventLoop.now + TimeAmount(timeout)
        let limit = configuration.maximumPendingRequests
        return try state.withLock { state throws(MessagingError) in
            guard state.pending.count < limit else { throw .tooManyRequests(limit: limit) }
            return state.pending.add(deadline: deadline, timeout: timeout)
        }
    }

    func answer(
        to frame: OutgoingFrame,
        _ correlation: UInt64,
        timeout: Duration
    ) async throws -> ReceivedFrame {
        try await enqueue(frame, as: correlation, isPrompt: true)
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let ended = state.withLock { $0.pending.wait(for: correlation, continuation) }
                    if let ended { continuation.resume(with: ended) }
                }
            } onCancel: {
                end(correlation, with: .failure(CancellationError()))
            }
        } catch  where error is CancellationError || error as? MessagingError == .timedOut(timeout) {
            enqueueControl(Frame(.cancel, correlation: correlation))
            throw error
        }
    }

    func end(_ correlation: UInt64, with result: Result<ReceivedFrame, any Error>) {
        let continuation = state.withLock { $0.pending.end(correlation, with: result) }
        continuation?.resume(with: result)
    }

    /// Ends the requests that waited too long.
    func endLateRequests(at now: NIODeadline) {
        for (correlation, timeout) in state.withLock({ $0.pending.takeDue(at: now) }) {
            let error = MessagingError.timedOut(timeout)
            if !stopWaiting(correlation, for: error) { end(correlation, with: .failure(error)) }
        }
    }

    /// Takes the other side's word on a frame of this one.
    func failed(_ frame: Frame) {
        let bounds = MessageBounds(configuration)
        let failure =
            (try? MessageCoding.decode(RemoteFailure.self, from: frame.payload, within: bounds))
            ?? RemoteFailure(.handlerFailed, "The peer failed without saying why.")
        guard frame.correlation == 0 else {
            return end(frame.correlation, with: .failure(MessagingError.failed(failure)))
        }
        if let type = frame.type { handlers.failed?(failure, type, self) }
    }
}
