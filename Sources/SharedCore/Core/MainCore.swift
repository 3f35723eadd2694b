internal import Glibc
public import LocalMessaging

/// The application's core: it has priority in its group.
///
/// While it runs no executor starts; one that runs when it starts is asked to end, and is ended when it does not. What
/// arrives goes to the store, from where the executors that were woken for it show it.
///
///     start ──► MAIN taken: no executor starts any more
///           ──► an executor runs: asked to give way ──► ended in order
///                                                   └─► after `yieldLimit`: fenced, killed
///           ──► WRITER taken, epoch begun ──► running ──► stop
///
/// Thread: control.
public actor MainCore {
    private let group: GroupContainer
    private let service: any CoreService
    private let configuration: CoreConfiguration
    private let received: @Sendable (CoreArrival) -> Void
    private let lock: CoreLock
    /// The group's store, to read from; the service's context writes to it.
    public nonisolated let store: SharedStore
    private var core: RunningCore?
    private var isStarting = false

    /// A core of a group, which does nothing until it is started.
    ///
    /// - Parameters:
    ///   - group: The group whose core it is.
    ///   - service: What it runs.
    ///   - configuration: Its time limits.
    ///   - received: Told of what arrives, once it is in the store.
    /// - Throws: `StoreError` and `LockError` when the group cannot be used.
    public init(
        group: GroupContainer,
        service: any CoreService,
        configuration: CoreConfiguration = CoreConfiguration(),
        received: @escaping @Sendable (CoreArrival) -> Void = { _ in }
    ) throws {
        self.group = group
        self.service = service
        self.configuration = configuration
        self.received = received
        lock = try CoreLock(group: group)
        store = try SharedStore(group: group)
    }

    /// Whether the core runs.
    public var isRunning: Bool { core != nil }

    /// Why a running core can do no more work; nil when it can.
    public var failure: (any Error)? { core?.failure }

    /// Starts the core; no executor runs any more when this returns.
    ///
    /// - Returns: The epoch that it began.
    /// - Throws: `CoreError`, as when another main runs; `StoreError`; what the service throws.
    @discardableResult
    public func start() async throws -> Epoch {
        if let core { return core.epoch }
        guard !isStarting, try lock.tryLock(.main) else {
            let owner = try lock.owner()
            let holder = owner.map { $0.role == .main ? ": process \($0.pid)" : "" } ?? ""
            throw CoreError(
                .anotherMain,
                "Another main core runs in \(group.path), or is about to\(holder). Stop it, or use another group."
            )
        }
        isStarting = true
        defer { isStarting = false }
        do {
            if try !lock.tryLock(.writer) { try await replaceExecutor() }
            let core = try await RunningCore.begin(
                .main,
                in: group,
                store: store,
                lock: lock,
                service: service,
                why: "the application runs",
                received: received
            )
            self.core = core
            return core.epoch
        } catch {
            lock.unlock(.writer)
            lock.unlock(.main)
            throw error
        }
    }

    /// Waits until the core can do no more work, and says why; nil when it was stopped, does not run, or the task is
    /// cancelled.
    public func failed() async -> (any Error)? {
        while let core, !Task.isCancelled {
            let count = core.changeCount
            if let failure = core.failure { return failure }
            await core.change(after: count, until: .now + .seconds(1))
        }
        return core?.failure
    }

    /// Has an action performed; it is queued in the store before this returns, so that it is not lost with this process.
    ///
    /// - Throws: `CoreError` when the core does not run; `StoreError`.
    public func perform(_ action: MessageAction) async throws {
        guard let core else { throw CoreError(.notRunning, "The main core does not run. Start it first.") }
        try await store.enqueue(action)
        core.actionQueued()
    }

    /// Ends the core in order; executors may start when this returns.
    public func stop() async {
        guard let core else { return }
        self.core = nil
        await core.end()
        lock.unlock(.main)
    }

    // MARK: An executor runs

    /// Takes WRITER from the executor that has it.
    private func replaceExecutor() async throws {
        let asking = Task { await askToYield() }
        defer { asking.cancel() }
        if try await isWriterMine(within: configuration.yieldLimit) { return }
        // It writes nothing from here on, whatever it does with the time until it is gone. It may hold the database
        // at this moment, so this must not wait for it.
        let fencing = Task { [store] in try await store.fence() }
        let owner = try lock.owner()
        owner?.process.signal(SIGKILL)
        guard try await isWriterMine(within: configuration.releaseLimit) else {
            let holder = owner.map { "process \($0.pid)" } ?? "a process that did not say who it is"
            throw CoreError(
                .executorStays,
                "The core of \(group.path) is held by \(holder), which neither ended nor could be ended. End it by hand."
            )
        }
        // The fence must not come after the epoch of this core.
        _ = try await fencing.value
    }

    private func askToYield() async {
        let client = try? await MessageClient.connect(
            to: coreServerName,
            in: group,
            waitingForServer: configuration.yieldLimit
        )
        FaultPoint.reached(.beforeRequest)
        if (try? await client?.request(YieldRequest(), timeout: configuration.yieldLimit)) != nil {
            FaultPoint.reached(.afterReply)
        }
        await client?.close()
    }

    private func isWriterMine(within limit: Duration) async throws -> Bool {
        let lock = lock
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    try await lock.wait(for: .writer)
                    return true
                } catch is CancellationError {
                    return false
                }
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return false
            }
            let first = try await group.next() ?? false
            group.cancelAll()
            // A lock that came while the limit passed is kept.
            let second = try await group.next() ?? false
            return first || second
        }
    }
}
