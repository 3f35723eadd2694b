internal import GRDB

extension SharedStore {
    /// What runs, and as which epoch: the lock says whether a core is there, the record in its file which.
    ///
    /// Between two cores, and until one that has the lock has begun its epoch, the state is `free`; so it is while a process without
    /// a core has the lock for a moment, to change an account.
    public func status() async throws(StoreError) -> CoreStatus {
        let owner = try owner()
        let fence = try await read { try Fence(fetching: $0) }
        return CoreStatus(owner: owner, fence: fence)
    }

    /// Who holds the lock of the group; none is made where there is none.
    private func owner() throws(StoreError) -> OwnerRecord? {
        guard CoreLock.exists(in: group) else { return nil }
        do throws(LockError) {
            return try CoreLock(group: group).owner()
        } catch {
            throw StoreError(error.code == .readOnly ? .readOnly : .system, error.message)
        }
    }

    /// Begins a new epoch: the first thing that a core does once it holds WRITER.
    package func beginEpoch() async throws(StoreError) -> Epoch {
        try await write(before: .beforeEpoch, after: .afterEpoch) { try Fence.raise(opening: true, $0) }
    }

    /// Ends an epoch in order: the last thing that a core does before it lets go of WRITER.
    ///
    /// Throws: `fenced`.
    package func endEpoch(_ epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeEnd, after: .afterEnd) { try Fence.close($0) }
    }

    /// Ends whatever epoch there is, so that its core can write nothing any more.
    ///
    /// For a main that holds MAIN and gives up waiting for an executor, before it kills it.
    ///
    /// Returns: the epoch that is valid now; nobody writes as it.
    package func fence() async throws(StoreError) -> Epoch {
        try await write(before: .beforeFence, after: .afterFence) { try Fence.raise(opening: false, $0) }
    }
}
