internal import CallBasics
internal import LocalMessaging
internal import Synchronization

/// A core at work, main or executor: it holds WRITER, writes as its epoch, and serves its group.
///
/// Thread: control.
final class RunningCore: Sendable {
    let epoch: Epoch
    private let store: SharedStore
    private let lock: CoreLock
    private let service: any CoreService
    private let server: MessageServer
    private let signals: CoreSignals
    private let received: @Sendable (CoreArrival) -> Void
    private let witness: CoreWitness?
    private let work = Mutex<[Task<Void, Never>]>([])

    /// Begins a core for which the caller holds WRITER; gives WRITER back when that fails.
    ///
    /// `why` tells people what it is started for; `received` is told of what arrives, once it is committed.
    static func begin(
        _ role: CoreRole,
        in group: GroupContainer,
        store: SharedStore,
        lock: CoreLock,
        service: any CoreService,
        why: String,
        received: @escaping @Sendable (CoreArrival) -> Void = { _ in }
    ) async throws -> RunningCore {
        var epoch: Epoch?
        var server: MessageServer?
        var witness: CoreWitness?
        do {
            // So that whoever has to end this process knows which it is, also before it has an epoch.
            try lock.write(OwnerRecord(process: .current, role: role, epoch: Epoch(rawValue: 0), why: why))
            let begun = try await store.beginEpoch(role: role, process: .current)
            epoch = begun
            witness = CoreWitness.begin(begun)
            try lock.write(OwnerRecord(process: .current, role: role, epoch: begun, why: why))
            let signals = CoreSignals(mayYield: role == .executor)
            let serving = try await serve(group, signals, fetchSoon: { await service.fetchSoon() }) { change in
                try await store.apply(change, as: begun)
                await service.accountChanged(change.address)
            }
            server = serving
            let core = RunningCore(
                epoch: begun,
                store: store,
                lock: lock,
                service: service,
                server: serving,
                signals: signals,
                received: received,
                witness: witness
            )
            try await service.start(core.context)
            core.startWork()
            return core
        } catch {
            await server?.stop()
            if let epoch { try? await store.endEpoch(epoch) }
            witness?.end()
            lock.unlock(.writer)
            throw error
        }
    }

    private init(
        epoch: Epoch,
        store: SharedStore,
        lock: CoreLock,
        service: any CoreService,
        server: MessageServer,
        signals: CoreSignals,
        received: @escaping @Sendable (CoreArrival) -> Void,
        witness: CoreWitness?
    ) {
        self.epoch = epoch
        self.store = store
        self.lock = lock
        self.service = service
        self.server = server
        self.signals = signals
        self.received = received
        self.witness = witness
    }

    /// Serves the group under the core's name.
    ///
    /// The process that had it before may have died a moment ago, and the kernel
    /// releases what it held one after the other.
    private static func serve(
        _ group: GroupContainer,
        _ signals: CoreSignals,
        fetchSoon: @escaping @Sendable () async -> Void,
        changeAccount: @escaping @Sendable (AccountChange) async throws -> Void
    ) async throws -> MessageServer {
        var handlers = MessageHandlers()
        handlers.reply(to: YieldRequest.self) { _, _ in
            FaultPoint.reached(.beforeReply)
            return YieldRequest.Reply(isEnding: signals.askToYield())
        }
        handlers.reply(to: AccountChange.self) { change, _ in
            try await changeAccount(change)
            return AccountChange.Reply()
        }
        handlers.on(FetchWanted.self) { _, _ in await fetchSoon() }
        handlers.on(ActionQueued.self) { _, _ in signals.actionQueued() }
        let deadline = ContinuousClock.now + .milliseconds(500)
        while true {
            do {
                return try await MessageServer.start(
                    name: coreServerName,
                    in: group,
                    handlers: handlers,
                    clientChanged: { _, _ in signals.changed.notify() }
                )
            } catch let error as ServerError where error.code == .taken && ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    // MARK: At work

    /// How often something has changed that a loop around this core looks at: a message, a waiter, a main, a failure.
    var changeCount: Int { signals.changed.count }

    /// Waits for a change after the first `count`.
    func change(after count: Int, until deadline: ContinuousClock.Instant) async {
        await signals.changed.wait(after: count, until: deadline)
    }

    /// Has queued actions performed.
    func actionQueued() {
        signals.actionQueued()
    }

    /// Whether queued actions are being performed.
    var isActing: Bool { signals.isActing }

    /// Whether a main asked this core to give way.
    var isAskedToYield: Bool { signals.isAskedToYield }

    /// Waits until a main asks this core to give way; false when it ends before.
    func askedToYield() async -> Bool {
        while true {
            let count = changeCount
            if isAskedToYield { return true }
            if signals.isEnding { return false }
            await change(after: count, until: .now + .seconds(3600))
        }
    }

    /// Whether all that was pending at the start is in the store.
    var hasFetched: Bool { signals.hasFetched }

    /// What ended the service's work, or took this core's right to write.
    var failure: (any Error)? { signals.failure }

    /// The doors that the service gets: all that it delivers is written as this core's epoch, and told to those who wait.
    private var context: CoreContext {
        let (store, server, epoch, signals, received) = (store, server, epoch, signals, received)
        return CoreContext(
            epoch: epoch,
            store: store,
            deliver: { message in
                let isNew = try await signals.watching { try await store.insert(message, as: epoch) }
                await Self.tell(.message(callID: message.callID), server, signals)
                if isNew { received(.message(message)) }
                return isNew
            },
            deliverInvitation: { invitation in
                let isNew = try await signals.watching { try await store.insert(invitation, as: epoch) }
                await Self.tell(.room(address: invitation.address), server, signals)
                if isNew { received(.invitation(invitation)) }
                return isNew
            },
            recordCall: { call in
                try await signals.watching { try await store.record(call, as: epoch) }
            }
        )
    }

    private static func tell(_ change: StoreChanged.Change, _ server: MessageServer, _ signals: CoreSignals) async {
        FaultPoint.reached(.beforeSend)
        signals.changed.notify()
        // Who does not hear it looks by itself; a broadcast fails only when a value cannot be coded.
        _ = try? await server.broadcast(StoreChanged(change: change))
        FaultPoint.reached(.afterSend)
    }

    private func startWork() {
        let (service, signals) = (service, signals)
        let fetching = Task {
            await signals.reporting {
                try await service.fetchPending()
                signals.fetched()
                try await service.run()
            }
        }
        let acting = Task { await self.performActions() }
        work.withLock { $0 = [fetching, acting] }
    }

    /// Performs queued actions, those of earlier cores first.
    ///
    /// One that the service refuses holds up no other; it stays queued and is tried again when the next is queued, after
    /// 60 seconds at the latest.
    private func performActions() async {
        while !Task.isCancelled {
            signals.beginActing()
            await signals.reporting { try await self.performEachAction() }
            signals.endActing()
            await signals.nextAction()
        }
    }

    private func performEachAction() async throws {
        var refused: Set<String> = []
        while !Task.isCancelled {
            let action = try await signals.watching { [store, epoch, refused] in
                try await store.nextAction(as: epoch, butNot: refused)
            }
            guard let action else { return }
            if try await !perform(action) { refused.insert(action.id) }
        }
    }

    /// Performs an action and takes it out of the queue; false when the service refuses.
    private func perform(_ action: MessageAction) async throws -> Bool {
        do {
            try await service.perform(action)
        } catch {
            return false
        }
        try await store.finish(action, as: epoch)
        await Self.tell(.actionDone(id: action.id), server, signals)
        return true
    }

    // MARK: The end

    /// Ends the core in order: the service sends what it still has to send, and WRITER is free when this returns.
    func end() async {
        let tasks = work.withLock { work in
            defer { work = [] }
            return work
        }
        for task in tasks { task.cancel() }
        signals.end()
        if isAskedToYield { try? await store.setState(.askedToStop, as: epoch) }
        await service.stop()
        for task in tasks { await task.value }
        // A core that was fenced has no epoch to end any more.
        try? await store.endEpoch(epoch)
        await server.stop()
        witness?.end()
        lock.unlock(.writer)
    }
}

/// What happens to a running core, as its handlers, its service and its loops tell each other.
final class CoreSignals: Sendable {
    private struct State {
        var isAskedToYield = false
        var hasFetched = false
        var isActing = true
        /// An action came after the present attempts began: they may not have seen it.
        var isQueued = false
        /// The count of `action` before they began.
        var countBefore = 0
        var isEnding = false
        var failure: (any Error)?
    }

    /// Notifies when anything here, in the store or among those who wait may have changed.
    let changed = Notifier()
    private let action = Notifier()
    private let mayYield: Bool
    private let state = Mutex(State())

    init(mayYield: Bool) {
        self.mayYield = mayYield
    }

    var isAskedToYield: Bool { state.withLock { $0.isAskedToYield } }
    var hasFetched: Bool { state.withLock { $0.hasFetched } }
    var isActing: Bool { state.withLock { $0.isActing } }
    var isEnding: Bool { state.withLock { $0.isEnding } }
    var failure: (any Error)? { state.withLock { $0.failure } }

    /// The core ends, whoever asked for it.
    func end() {
        state.withLock { $0.isEnding = true }
        changed.notify()
    }

    /// Takes a main's request; false for a core that gives way to nobody.
    func askToYield() -> Bool {
        guard mayYield else { return false }
        state.withLock { $0.isAskedToYield = true }
        changed.notify()
        return true
    }

    /// An action was queued.
    func actionQueued() {
        state.withLock { state in
            state.isActing = true
            state.isQueued = true
        }
        action.notify()
    }

    /// The queued actions are about to be tried, each once.
    func beginActing() {
        let count = action.count
        state.withLock { state in
            state.isActing = true
            state.isQueued = false
            state.countBefore = count
        }
    }

    /// They were tried.
    func endActing() {
        state.withLock { $0.isActing = $0.isQueued }
        changed.notify()
    }

    /// Waits until an action is queued after those that were tried, or for `limit`, after which they are tried again.
    func nextAction(within limit: Duration = .seconds(60)) async {
        await action.wait(after: state.withLock { $0.countBefore }, until: .now + limit)
    }

    func fetched() {
        state.withLock { $0.hasFetched = true }
        changed.notify()
    }

    /// Runs a write of the store; a failure ends the core.
    func watching<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            fail(error)
            throw error
        }
    }

    /// Runs a piece of the core's work; a failure but cancellation ends the core.
    func reporting(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            if !(error is CancellationError), !Task.isCancelled { fail(error) }
        }
    }

    private func fail(_ error: any Error) {
        state.withLock { $0.failure = $0.failure ?? error }
        changed.notify()
    }
}
