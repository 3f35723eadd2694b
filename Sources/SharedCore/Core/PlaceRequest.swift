internal import LocalMessaging

/// Asks the core that runs for its place, and waits for it: for a core that has priority.
struct PlaceRequest: Sendable {
    /// What came of it.
    enum Outcome: Sendable {
        /// WRITER is this core's.
        case granted
        /// The core that runs keeps its place: it is a main, or a call is on.
        case kept
        /// Neither in time.
        case late
    }

    let group: GroupContainer
    let lock: CoreLock

    /// Asks, and waits so long; what was granted meanwhile is kept also when the task is cancelled.
    ///
    /// Throws: `LockError`
    func outcome(within limit: Duration) async throws -> Outcome {
        let kept = Notifier()
        let asking = Task { if await isKept(within: limit) { kept.notify() } }
        defer { asking.cancel() }
        return try await outcome(within: limit, kept)
    }

    /// Waits so long, and asks nobody.
    ///
    /// Throws: `LockError`
    func isGranted(within limit: Duration) async throws -> Bool {
        try await outcome(within: limit, Notifier()) == .granted
    }

    private func outcome(within limit: Duration, _ kept: Notifier) async throws -> Outcome {
        let lock = lock
        return try await withThrowingTaskGroup(of: Outcome.self) { group in
            group.addTask {
                do {
                    try await lock.wait(for: .writer)
                    return .granted
                } catch is CancellationError {
                    return .late
                }
            }
            group.addTask {
                await kept.wait(after: 0, until: .now + limit)
                return kept.count > 0 ? .kept : .late
            }
            let first = try await group.next() ?? .late
            group.cancelAll()
            // A lock that came while the answer did, or the limit passed, is kept.
            let second = try await group.next() ?? .late
            return second == .granted ? second : first
        }
    }

    /// Whether the core that runs says in time that it stays.
    private func isKept(within limit: Duration) async -> Bool {
        let client = try? await MessageClient.connect(to: coreServerName, in: group, waitingForServer: limit)
        FaultPoint.reached(.beforeRequest)
        let reply = try? await client?.request(YieldRequest(), timeout: limit)
        if reply != nil { FaultPoint.reached(.afterReply) }
        await client?.close()
        return reply?.isEnding == false
    }
}
