internal import CallBasics
internal import CLinux
internal import Glibc
internal import Synchronization

/// Something that comes once, for one who waits for it.
package final class BusResult<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value, any Error>)
        case ended(Result<Value, any Error>)
    }

    private let state = Mutex(State.open)

    package init() {}

    /// Ends the wait; the first result counts.
    package func end(with result: Result<Value, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            switch state {
            case .open:
                state = .ended(result)
                return nil
            case .waiting(let continuation):
                state = .ended(result)
                return continuation
            case .ended: return nil
            }
        }
        continuation?.resume(with: result)
    }

    /// What came; waits for it, and no longer than the task lasts.
    package var value: Value {
        get async throws {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let ended = state.withLock { state -> Result<Value, any Error>? in
                        if case .ended(let result) = state { return result }
                        state = .waiting(continuation)
                        return nil
                    }
                    if let ended { continuation.resume(with: ended) }
                }
            } onCancel: {
                end(with: .failure(CancellationError()))
            }
        }
    }
}

/// A call on its way to a bus.
struct BusRequest: Sendable {
    let call: BusCall
    let deadline: ContinuousClock.Instant
    let reply: BusResult<[BusValue]>

    /// Tells who waits that there was no answer in time.
    func timeOut() {
        reply.end(
            with: .failure(
                BusError(.timedOut, "\(call.destination) did not answer \(call.member) in time. Check that it runs.")
            )
        )
    }
}

/// What other threads ask of the thread of a bus, and what wakes it.
final class BusRequests: Sendable {
    private struct State {
        var requests: [BusRequest] = []
        var isClosed = false
        var end: BusError?
    }

    private let state = Mutex(State())
    /// Readable when something was asked.
    let descriptor: CInt

    /// - Throws: `BusError` with code `noBus` when the process may have no more descriptors.
    init() throws(BusError) {
        let descriptor = linux_event_descriptor()
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(-descriptor))
            throw BusError(
                .noBus,
                "No descriptor is left for the bus: \(reason). Raise the limit (`ulimit -n`)."
            )
        }
        self.descriptor = descriptor
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Why the connection is over; nil while it is not.
    var end: BusError? { state.withLock { $0.end } }

    /// Whether the connection is wanted no more.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Asks for a call; one over a connection that is over ends at once.
    func add(_ request: BusRequest) {
        let end = state.withLock { state in
            if state.end == nil { state.requests.append(request) }
            return state.end
        }
        if let end { return request.reply.end(with: .failure(end)) }
        wake()
    }

    /// Has the connection ended.
    func close() {
        state.withLock { $0.isClosed = true }
        wake()
    }

    /// Takes what was asked; for the thread of the bus, which then waits for more.
    func take() -> [BusRequest] {
        var count: UInt64 = 0
        // Nothing to read is what there mostly is.
        _ = read(descriptor, &count, MemoryLayout.size(ofValue: count))
        return state.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    /// Says that the connection is over; nothing is taken any more.
    func end(_ error: BusError) {
        let requests = state.withLock { state in
            state.end = error
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.reply.end(with: .failure(error)) }
    }

    private func wake() {
        var one: UInt64 = 1
        // It fails only when it was woken 2^64 times already.
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }
}
