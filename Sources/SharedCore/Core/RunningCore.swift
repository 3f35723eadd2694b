internal import CallBasics
internal import LocalMessaging
internal import Synchronization

/// A core at work, of any role: it holds WRITER, writes as its epoch, and serves its group.
///
/// Thread: control.
final class RunningCore: Sendable {
    var epoch: Epoch { record.epoch }
    private let record: OwnerRecord
    private let store: SharedStore
    private let lock: CoreLock
    private let service: any CoreService
    private let server: MessageServer
    private let signals: CoreSignals
    private let received: @Sendable (CoreArrival) -> Void
    private let witness: CoreWitness?
    private let work = Mutex<[Task<Void, Never>]>([])
    private let lanes = Mutex(ActionLanes())
    private let beginTime = ContinuousClock.now

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
            let begun = try await store.beginEpoch()
            epoch = begun
            witness = CoreWitness.begin(begun)
            let record = OwnerRecord(process: .current, role: role, epoch: begun, why: why)
            try lock.write(record)
            let signals = CoreSignals(role: role)
            let serving = try await serve(group, signals, fetchSoon: { await service.fetchSoon() }) { change in
                try await store.apply(change, as: begun)
                await service.accountChanged(change.address)
            }
            server = serving
            let core = RunningCore(
                record: record,
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
        record: OwnerRecord,
        store: SharedStore,
        lock: CoreLock,
        service: any CoreService,
        server: MessageServer,
        signals: CoreSignals,
        received: @escaping @Sendable (CoreArrival) -> Void,
        witness: CoreWitness?
    ) {
        self.record = record
        self.store = store
        self.lock = lock
        self.service = service
        self.server = server
        self.signals = signals
        self.received = received
        self.witness = witness
    }

    /// Serves the group under the core's name.
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
        handlers.on(ItemAwaited.self) { message, context in
            let client = ObjectIdentifier(context.connection)
            signals.setAwaited(message.item, by: client)
            // It may have left before this was said.
            if context.connection.invalidation != nil { signals.setAwaited(nil, by: client) }
            await fetchSoon()
        }
        handlers.on(ActionQueued.self) { _, _ in signals.actionQueued() }
        return try await MessageServer.succeed(
            name: coreServerName,
            in: group,
            handlers: handlers,
            clientChanged: { client, change in
                if case .left = change { signals.setAwaited(nil, by: ObjectIdentifier(client)) }
            }
        )
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

    /// Whether a core with priority asked this one to give way, and it does.
    var isAskedToYield: Bool { signals.isAskedToYield }

    /// Waits until a core with priority asks this one to give way; false when it ends before.
    func askedToYield() async -> Bool {
        while true {
            let count = changeCount
            if isAskedToYield { return true }
            if signals.isEnding { return false }
            await change(after: count, until: .now + .seconds(3600))
        }
    }

    /// Waits until a core for calls is to end: its calls are over, none came until `limit`, it gives way to a main, or it can do no more
    /// work; or until the task is cancelled.
    func callsEnded(noneUntil limit: ContinuousClock.Instant) async {
        while !Task.isCancelled {
            let count = changeCount
            if isAskedToYield || signals.isEnding || failure != nil || signals.areCallsOver { return }
            if !signals.isInCall, limit <= .now { return }
            await change(after: count, until: signals.isInCall ? .now + .seconds(3600) : limit)
        }
    }

    /// What other processes wait for, whether it is in the store by now or not.
    var awaited: [AwaitedItem] { signals.awaited }

    /// One of this process waits no more.
    func waitEnded() { signals.changed.notify() }

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
            },
            retryActions: { signals.actionQueued() },
            setInCall: { signals.setInCall($0) }
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
    /// One that the service cannot perform now holds up those alone that wait for it; it stays queued and is tried again when the
    /// next is queued, when the service says so, or after a rest, which doubles each time.
    private func performActions() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled, signals.failure == nil {
                if signals.beginActing() { lanes.withLock { $0.hurry() } }
                await signals.reporting {
                    while let attempt = try await nextAttempt() { group.addTask { await self.perform(attempt) } }
                }
                let (isBusy, deadline) = lanes.withLock { ($0.isBusy, $0.deadline) }
                signals.endActing(isBusy: isBusy)
                await signals.nextAction(until: deadline.map { beginTime + ($0 - .zero) } ?? .now + .seconds(3600))
            }
        }
    }

    private var time: MediaTime { .zero + (ContinuousClock.now - beginTime) }

    private func nextAttempt() async throws -> ActionAttempt? {
        let closed: Set<String>? = lanes.withLock { lanes in
            lanes.handleTimeout(at: time)
            return lanes.isFull ? nil : lanes.closed
        }
        guard let closed, !Task.isCancelled, signals.failure == nil else { return nil }
        let attempt = try await signals.watching { [store, epoch] in
            try await store.nextAction(as: epoch, butNot: closed)
        }
        if let attempt { lanes.withLock { $0.begin(attempt.lane) } }
        return attempt
    }

    /// Performs an action, and takes it out of the queue unless it is to be tried again.
    private func perform(_ attempt: ActionAttempt) async {
        var failures: Int?
        await signals.reporting {
            var refusal = attempt.isLate ? Self.tooLate : nil
            do {
                if refusal == nil { try await service.perform(attempt.action) }
            } catch let error as ActionRefusal {
                refusal = error
            } catch {
                failures = attempt.count + 1
                return
            }
            // One that stays in the queue because that failed is not tried again at once, either.
            failures = attempt.count + 1
            if let refusal {
                try await drop(attempt.action, refusal)
            } else {
                try await store.finish(attempt.action, as: epoch)
            }
            failures = nil
            await Self.tell(.actionDone(id: attempt.action.id), server, signals)
        }
        lanes.withLock { $0.end(attempt.lane, failures: failures, at: time) }
        signals.actionEnded()
    }

    private func drop(_ action: MessageAction, _ refusal: ActionRefusal) async throws {
        try await store.refuse(action, refusal.message, as: epoch)
        received(.refused(RefusedAction(id: action.id, callID: action.callID, reason: refusal.message)))
    }

    private static let tooLate = ActionRefusal("It could not be performed within three days.")

    /// A push has come: the service may have to ask for what it named.
    func fetchSoon() async { await service.fetchSoon() }

    // MARK: The end

    /// Ends the core in order: the service sends what it still has to send, and WRITER is free when this returns.
    func end() async {
        let tasks = work.withLock { work in
            defer { work = [] }
            return work
        }
        for task in tasks { task.cancel() }
        signals.end()
        if isAskedToYield { try? lock.write(record.givingWay) }
        await service.stop()
        for task in tasks { await task.value }
        // A core that was fenced has no epoch to end any more.
        try? await store.endEpoch(epoch)
        await server.stop()
        witness?.end()
        lock.unlock(.writer)
    }
}
