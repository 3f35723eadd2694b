internal import CallBasics
public import LocalMessaging

/// The core of a process without a screen that a push of a call woke: its service takes the call, and screens of other processes show
/// it.
///
/// It has priority over executors, which it asks to give way and never ends by force, and gives way to a main, but never during a call.
///
///     start ──► CALLS taken: no executor starts any more, and no second core for calls
///           ──► an executor runs: asked to give way ──► ended in order
///                                                   └─► not within `callPatience`: the start fails
///           ──► WRITER taken ──► a main runs, or is about to: let go, the start fails
///           ──► epoch begun ──► running ──► its calls are over, or none came within `callPatience` ──► ended
///                                       ──► a main asks for its place, and no call is on ───────────► ended
///
/// Whether a call is on its service says: `CoreContext.setInCall`. It ends by itself, and when it is let go.
///
/// Thread: control.
public actor CallExecutorCore {
    private let service: any CoreService
    private let configuration: CoreConfiguration
    private let term: CoreTerm
    private let group: GroupContainer
    private let lock: CoreLock
    /// The group's store, to read from; the service's context writes to it.
    public nonisolated let store: SharedStore
    /// Until when the first call may come.
    private var callLimit = ContinuousClock.now

    /// A core of a group, which does nothing until it is started.
    ///
    /// - Throws: `StoreError` and `LockError` when the group cannot be used.
    public init(
        group: GroupContainer,
        service: any CoreService,
        configuration: CoreConfiguration = CoreConfiguration()
    ) throws {
        (self.service, self.configuration) = (service, configuration)
        term = try CoreTerm(.calls, in: group)
        (self.group, lock, store) = (group, term.lock, term.store)
    }

    /// Whether the core runs.
    public var isRunning: Bool { get async { await term.core != nil } }

    /// Starts the core; a push of a call may be given to what it runs when this returns.
    ///
    /// - Returns: The epoch that it began.
    /// - Throws: `CoreError`: `anotherMain` and `callsTaken` when the push is for the process that runs, `executorStays`; `StoreError`;
    ///   `CancellationError`; what the service throws.
    @discardableResult
    public func start() async throws -> Epoch {
        try await term.start {
            CoreError(
                .callsTaken,
                "Another process takes the calls of \(group.path), or is about to. Give the push to that."
            )
        } begin: {
            try await self.begin()
        }
    }

    /// Begins the core, for which this one holds CALLS.
    private func begin() async throws -> RunningCore {
        try refuseBesideMain()
        if try !lock.tryLock(.writer) { try await waitForPlace() }
        // Only now: a main that takes its byte after this look finds WRITER taken, and asks for it.
        try refuseBesideMain()
        let core = try await RunningCore.begin(
            .call,
            in: group,
            store: store,
            lock: lock,
            service: service,
            why: "a push of a call"
        )
        callLimit = .now + configuration.callPatience
        Task { [weak term, callLimit] in
            await core.callsEnded(noneUntil: callLimit)
            await term?.end()
        }
        return core
    }

    private func refuseBesideMain() throws {
        guard try lock.isHeldElsewhere(.main) else { return }
        throw CoreError(
            .anotherMain,
            "A main core runs in \(group.path), or is about to, and takes calls itself. Give the push to that."
        )
    }

    /// Has the executor that runs give way.
    private func waitForPlace() async throws {
        switch try await PlaceRequest(group: group, lock: lock).outcome(within: configuration.callPatience) {
        case .granted: return
        // A main came first; only that keeps its place.
        case .kept: try refuseBesideMain()
        case .late: try Task.checkCancellation()
        }
        throw CoreError(
            .executorStays,
            "The core of \(group.path) was asked to give way to a call and did not within \(configuration.callPatience). "
                + "End the process that runs it: see media-tool core status."
        )
    }

    /// Waits until the core has ended, by itself or by `stop`, or until the task is cancelled.
    ///
    /// - Throws: what it could do no more work for.
    public func ended() async throws {
        if let core = await term.core {
            await core.callsEnded(noneUntil: callLimit)
            guard !Task.isCancelled else { return }
        }
        await term.end()
        if let failure = await term.failure { throw failure }
    }

    /// Ends the core in order, whatever call is on, also one that is about to start.
    public func stop() async { await term.stop() }
}
