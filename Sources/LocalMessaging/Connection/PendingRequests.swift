import NIOCore

/// Requests that wait for their answers.
struct PendingRequests {
    typealias Continuation = CheckedContinuation<ReceivedFrame, any Error>

    /// What is known of a request.
    private enum Slot {
        /// Sent, or about to be.
        case sent
        case waiting(Continuation)
        /// Its end came before anybody waited for it.
        case ended(Result<ReceivedFrame, any Error>)
    }

    private struct Entry {
        var slot: Slot
        let deadline: NIODeadline
        let timeout: Duration
    }

    private var entries: [UInt64: Entry] = [:]
    private var last: UInt64 = 0

    var count: Int { entries.count }

    /// When the first of them may be too late; never after that time, and nil when none waits.
    private(set) var earliestDeadline: NIODeadline?

    /// The number of the next frame that is answered, or waits for room.
    mutating func nextCorrelation() -> UInt64 {
        last += 1
        return last
    }

    /// Adds a request that is about to be sent; answers its number.
    mutating func add(deadline: NIODeadline, timeout: Duration) -> UInt64 {
        let correlation = nextCorrelation()
        entries[correlation] = Entry(slot: .sent, deadline: deadline, timeout: timeout)
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
        return correlation
    }

    /// Waits for the end of a request; answers it when it is there already.
    mutating func wait(
        for correlation: UInt64,
        _ continuation: Continuation
    ) -> Result<ReceivedFrame, any Error>? {
        switch entries[correlation]?.slot {
        case .ended(let result):
            entries[correlation] = nil
            return result
        case .sent, .waiting:
            entries[correlation]?.slot = .waiting(continuation)
            return nil
        case nil: return .failure(CancellationError())
        }
    }

    /// Ends a request; answers who waits for it.
    ///
    /// Nil when nobody does yet, or the request is not known (any more).
    mutating func end(_ correlation: UInt64, with result: Result<ReceivedFrame, any Error>) -> Continuation? {
        switch entries[correlation]?.slot {
        case .waiting(let continuation):
            entries[correlation] = nil
            return continuation
        case .sent:
            entries[correlation]?.slot = .ended(result)
            return nil
        case .ended, nil: return nil
        }
    }

    /// Why a request is over that nobody waits for yet.
    func failure(of correlation: UInt64) -> (any Error)? {
        if case .ended(.failure(let error)) = entries[correlation]?.slot { error } else { nil }
    }

    mutating func remove(_ correlation: UInt64) {
        entries[correlation] = nil
    }

    /// Those whose time is over at `now`, with the time they had; looks at all, and finds the earliest deadline anew.
    mutating func takeDue(at now: NIODeadline) -> [(correlation: UInt64, timeout: Duration)] {
        let open = entries.filter { if case .ended = $0.value.slot { false } else { true } }
        earliestDeadline = open.values.lazy.map(\.deadline).filter { $0 > now }.min()
        return open.filter { $0.value.deadline <= now }.map { ($0.key, $0.value.timeout) }
    }

    var correlations: [UInt64] { Array(entries.keys) }
}

/// A frame with the descriptors that came beside it.
struct ReceivedFrame: Sendable {
    let frame: Frame
    let files: [OpenFile]

    /// What it takes while it waits for its handler: bytes, this value, and descriptors, of which a process has fewer.
    var cost: Int { frame.length + MemoryLayout<Self>.stride + files.count << 14 }
}
