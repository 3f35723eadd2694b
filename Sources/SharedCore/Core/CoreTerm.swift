internal import LocalMessaging

/// The time in which a process has the core of its group, for a role that reserves it by a byte of the lock.
///
///     start ──► the byte is taken ──► what `begin` waits for ──► running ──► end ──► the byte is free
///
/// Who lets go of it ends its core: the byte is given up with the lock, of which that core has the last reference.
/// Thread: control.
actor CoreTerm {
    private enum Place {
        case none
        case starting(Task<Epoch, any Error>)
        case running(RunningCore)
        /// WRITER and the byte are this core's until the task has ended.
        case ending(Task<Void, Never>)
    }

    nonisolated let group: GroupContainer
    nonisolated let lock: CoreLock
    nonisolated let store: SharedStore
    private let byte: CoreLock.Byte
    private var place = Place.none
    /// What the last core that ended could do no more work for.
    private(set) var failure: (any Error)?

    /// Throws: `StoreError` and `LockError` when the group cannot be used.
    init(_ byte: CoreLock.Byte, in group: GroupContainer) throws {
        (self.byte, self.group) = (byte, group)
        lock = try CoreLock(group: group)
        store = try SharedStore(group: group)
    }

    deinit {
        guard case .running(let core) = place else { return }
        Task { await core.end() }
    }

    /// The core that runs.
    var core: RunningCore? {
        if case .running(let core) = place { core } else { nil }
    }

    /// Takes the byte, and has `begin` take WRITER and begin the core; what it has of the lock when it fails is given back.
    ///
    /// Throws: `refusal` when the byte is another's; `LockError`; `CancellationError`; what `begin` throws.
    func start(
        orThrow refusal: @Sendable () throws -> CoreError,
        begin: @escaping @Sendable () async throws -> RunningCore
    ) async throws -> Epoch {
        if case .ending(let task) = place { await task.value }
        if let core { return core.epoch }
        guard case .none = place, try lock.tryLock(byte) else { throw try refusal() }
        let task = Task { try await hold(begin) }
        place = .starting(task)
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func hold(_ begin: @Sendable () async throws -> RunningCore) async throws -> Epoch {
        do {
            let core = try await begin()
            (place, failure) = (.running(core), nil)
            return core.epoch
        } catch {
            lock.unlock(.writer)
            lock.unlock(byte)
            place = .none
            throw error
        }
    }

    /// Ends the core in order, also one that is about to start.
    func stop() async {
        if case .starting(let task) = place { task.cancel() }
        await end()
    }

    /// Ends the core in order, once it runs.
    func end() async {
        // What it throws reaches who started it.
        if case .starting(let task) = place { _ = await task.result }
        if case .running(let core) = place {
            failure = core.failure
            place = .ending(
                Task {
                    await core.end()
                    lock.unlock(byte)
                    place = .none
                }
            )
        }
        if case .ending(let task) = place { await task.value }
    }
}
