internal import CallBasics
internal import Glibc
public import LocalMessaging

/// The application's core: it has priority in its group.
///
/// While it runs no executor starts; one that runs when it starts is asked to end, and is ended when it does not. What
/// arrives goes to the store, from where the executors that were woken for it show it.
///
///     start ──► MAIN taken: no executor starts any more
///           ──► an executor runs: asked to give way ──► ended in order
///                                                   ├─► a call is on: waited for, and this process may be its screen
///                                                   └─► after `yieldLimit`: fenced, killed; an executor of this very
///                                                       process never is: then the start fails
///           ──► WRITER taken, epoch begun ──► running ──► stop
///
/// Thread: control.
public actor MainCore {
    private let service: any CoreService
    private let configuration: CoreConfiguration
    private let received: @Sendable (CoreArrival) -> Void
    private let term: CoreTerm
    private let group: GroupContainer
    private let lock: CoreLock
    /// The group's store, to read from; the service's context writes to it.
    public nonisolated let store: SharedStore

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
        self.service = service
        self.configuration = configuration
        self.received = received
        term = try CoreTerm(.main, in: group)
        (self.group, lock, store) = (group, term.lock, term.store)
    }

    /// Whether the core runs.
    public var isRunning: Bool { get async { await term.core != nil } }

    /// Why a running core can do no more work; nil when it can.
    public var failure: (any Error)? { get async { await term.core?.failure } }

    /// Starts the core; no executor runs any more when this returns.
    ///
    /// A start that is cancelled, or ended by `stop`, fences and kills nobody from then on.
    ///
    /// - Parameter attend: Run when a core for calls keeps its place because a call is on, and cancelled when that is over: meanwhile
    ///   this process may be a screen of the call. The start waits for its end.
    /// - Returns: The epoch that it began.
    /// - Throws: `CoreError`, as when another main runs, or an executor of this very process does not end; `StoreError`;
    ///   `CancellationError`; what the service throws.
    @discardableResult
    public func start(duringCall attend: @escaping @Sendable () async -> Void = {}) async throws -> Epoch {
        try await term.start {
            let owner = try lock.owner()
            let holder = owner.map { $0.role == .main ? ": process \($0.pid)" : "" } ?? ""
            return CoreError(
                .anotherMain,
                "Another main core runs in \(group.path), or is about to\(holder). Stop it, or use another group."
            )
        } begin: {
            try await self.begin(attend)
        }
    }

    /// Begins the core, for which this one holds MAIN.
    private func begin(_ attend: @escaping @Sendable () async -> Void) async throws -> RunningCore {
        if try !lock.tryLock(.writer) { try await replaceExecutor(attend) }
        return try await RunningCore.begin(
            .main,
            in: group,
            store: store,
            lock: lock,
            service: service,
            why: "the application runs",
            received: received
        )
    }

    /// Waits until the core can do no more work, and says why; nil when it was stopped, does not run, or the task is
    /// cancelled.
    public func failed() async -> (any Error)? {
        while let core = await term.core, !Task.isCancelled {
            let count = core.changeCount
            if let failure = core.failure { return failure }
            await core.change(after: count, until: .now + .seconds(3600))
        }
        return await failure
    }

    /// Has an action performed; it is queued in the store before this returns, so that it is not lost with this process.
    ///
    /// Whether it was refused for good is told as `CoreArrival.refused`, and by `SharedStore.refusedActions`.
    ///
    /// - Throws: `CoreError` when the core does not run; `StoreError`.
    public func perform(_ action: MessageAction) async throws {
        guard let core = await term.core else {
            throw CoreError(.notRunning, "The main core does not run. Start it first.")
        }
        try await store.enqueue(action)
        core.actionQueued()
    }

    /// Ends the core in order, also one that is about to start; executors may start when this returns.
    public func stop() async { await term.stop() }

    // MARK: An executor runs

    /// Takes WRITER from the executor, or the core for calls, that has it.
    private func replaceExecutor(_ attend: @escaping @Sendable () async -> Void) async throws {
        let request = PlaceRequest(group: group, lock: lock)
        switch try await request.outcome(within: configuration.yieldLimit) {
        case .granted: return
        case .kept: if try await waitForCall(request, attend) { return }
        case .late: break
        }
        try await force(request)
    }

    /// Waits until a call is over that another process has; false when the core of that answers no more, as a process that is stopped.
    private func waitForCall(_ request: PlaceRequest, _ attend: @escaping @Sendable () async -> Void) async throws
        -> Bool
    {
        async let _ = attend()
        while true {
            // Its end is told by the lock, and so is its death.
            if try await request.isGranted(within: configuration.toldLookInterval) { return true }
            switch try await request.outcome(within: configuration.yieldLimit) {
            case .granted: return true
            case .kept: try Task.checkCancellation()
            case .late: return false
            }
        }
    }

    /// Takes WRITER from a core that was asked and has not ended.
    private func force(_ request: PlaceRequest) async throws {
        // One whose time was cut short had no chance to end in order.
        try Task.checkCancellation()
        let owner = try lock.owner()
        guard owner?.process != .current else {
            throw CoreError(
                .executorStays,
                "The core of \(group.path) is run by an executor of this very process, which was asked to give way and did "
                    + "not within \(configuration.yieldLimit). Have its service end when it is stopped, and start again."
            )
        }
        // It writes nothing from here on, whatever it does with the time until it is gone. It may hold the database
        // at this moment, so this must not wait for it.
        let fencing = Task { [store] in try await store.fence() }
        owner?.process.signal(SIGKILL)
        let isMine = try await request.isGranted(within: configuration.releaseLimit)
        // The fence must not come after the epoch of this core, nor after that of another when this one gives up.
        let fence = await fencing.result
        guard isMine else {
            try Task.checkCancellation()
            let holder = owner.map { "process \($0.pid)" } ?? "a process that did not say who it is"
            throw CoreError(
                .executorStays,
                "The core of \(group.path) is held by \(holder), which neither ended nor could be ended. End it by hand."
            )
        }
        _ = try fence.get()
    }
}
