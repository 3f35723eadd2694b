internal import CallBasics
public import LocalMessaging

/// The core of a process that a push woke: an extension, one for each push, with about 30 seconds to live.
///
/// Ask it for what the push named; never start it. It looks into the store, waits for the core that runs, or becomes
/// the core itself: then it fetches all that is pending, serves every other process that waits, and gives way to a main,
/// or a core for calls, at any time, also between two calls. `stop` ends it, after those it serves have what they wait for; one that is let go
/// ends, too.
///
///     newMessage ──► in the store? ───────────────────────────────────────────► claimed
///                ──► a main runs, or a core for calls: waits for it to hand
///                    the message over ────────────────────────────────────────► claimed
///                ──► an executor runs: waits for it, or for its place ────────► claimed
///                ──► nobody runs: becomes the core, fetches all ──────────────► claimed
///                ──► the budget is over ──────────────────────────────────────► late
///
/// Thread: control.
public actor ExecutorCore {
    /// What this process has of the group's core.
    private enum Place {
        case none
        case becoming(Task<Void, any Error>)
        case running(RunningCore)
        /// WRITER is this core's until the task has ended.
        case ending(Task<Void, Never>)
    }

    private let group: GroupContainer
    private let service: any CoreService
    private let configuration: CoreConfiguration
    private let lock: CoreLock
    /// The group's store.
    public nonisolated let store: SharedStore
    private let process = ProcessIdentity.current
    private var place = Place.none
    private var deadline: ContinuousClock.Instant
    /// What the calls of this object wait for.
    private(set) var waits: [Int: AwaitedItem] = [:]
    private var lastWait = 0

    /// A core of a group; its budget begins now.
    ///
    /// - Throws: `StoreError` and `LockError` when the group cannot be used.
    public init(
        group: GroupContainer,
        service: any CoreService,
        configuration: CoreConfiguration = CoreConfiguration()
    ) throws {
        deadline = .now + configuration.budget
        self.group = group
        self.service = service
        self.configuration = configuration
        lock = try CoreLock(group: group)
        // Nothing outlasts the budget, also while somebody who was stopped keeps the database locked.
        store = try SharedStore(group: group, busyTimeout: min(configuration.busyTimeout, configuration.budget))
    }

    deinit {
        guard case .running(let core) = place else { return }
        Task { await core.end() }
    }

    /// Whether this process runs the core at this moment.
    public var isRunning: Bool { core != nil }

    /// What processes that are connected to this core wait for.
    var awaitedByOthers: [AwaitedItem] { core?.awaited ?? [] }

    private var core: RunningCore? {
        if case .running(let core) = place { core } else { nil }
    }

    // MARK: What a push names

    /// The message that a push named, claimed by this process: show it, then call `acknowledge`.
    ///
    /// Several messages may share a call-id. Where one was shown, the push may be for the next: it is `shownElsewhere` once a core that
    /// this process began for it has fetched all and found no other, or after 5 s beside one that runs already: that fetches
    /// meanwhile, and does not say what it has not found.
    ///
    /// - Throws: `StoreError`; what the service throws when this process runs the core.
    public func newMessage(callID: String) async throws -> MessageOutcome {
        var foundShown: ContinuousClock.Instant?
        // What a core has fetched that ran before may not be what this push named.
        let isOlder = core != nil
        let outcome = try await awaited(.message(callID: callID)) { hasOwnCore -> MessageOutcome? in
            // Before the look, which finds what was fetched by then.
            let hasFetched = self.core?.hasFetched == true
            if let claim = try await self.store.claim(callID: callID, by: self.process) {
                return .message(claim, try self.source(hasOwnCore))
            }
            switch try await self.store.message(callID: callID)?.status {
            case .acknowledged:
                if foundShown == nil, isOlder { await self.core?.fetchSoon() }
                let since = foundShown ?? .now
                foundShown = since
                let isOver =
                    hasOwnCore && !isOlder
                    ? hasFetched : since.duration(to: .now) >= self.configuration.repeatPatience
                return isOver ? .shownElsewhere : nil
            // Another process is about to show it; should it die before, this one takes its place.
            case .claimed, .pending, nil: return nil
            }
        }
        return outcome ?? (foundShown == nil ? .late : .shownElsewhere)
    }

    /// Handles a push from end to end: shows what it named, or a general text when that does not come in time, and
    /// acknowledges a message once it was shown.
    ///
    /// - Parameters:
    ///   - callID: The call-id that the push holds.
    ///   - texts: The words of the general text.
    ///   - show: Shows a notification, which came from that source.
    /// - Returns: What was shown.
    /// - Throws: as `newMessage`; what `show` throws: then the message waits for who asks next.
    @discardableResult
    public func notify(
        callID: String,
        texts: NotificationTexts = .english,
        show: (MessageNotification, MessageSource) async throws -> Void
    ) async throws -> MessageOutcome {
        let outcome = try await newMessage(callID: callID)
        switch outcome {
        case .message(let claim, let source):
            do {
                FaultPoint.reached(.beforePresent)
                try await show(MessageNotification(claim.message, isRepeated: claim.isRepeated), source)
                FaultPoint.reached(.afterPresent)
            } catch {
                // What kept it from being shown says more than what keeps it from being given back: a message that stays
                // claimed is taken over once this process has ended.
                _ = try? await store.release(claim)
                throw error
            }
            try await acknowledge(claim)
        case .shownElsewhere: break
        case .late: try await show(.fallback(identifier: callID, texts: texts), .fallback)
        }
        return outcome
    }

    /// The chat room that a push named.
    ///
    /// - Throws: `StoreError`; what the service throws when this process runs the core.
    public func newChatRoom(address: String) async throws -> RoomOutcome {
        let outcome = try await awaited(.room(address: address)) { hasOwnCore in
            try await self.store.room(address: address).map { RoomOutcome.room($0, try self.source(hasOwnCore)) }
        }
        return outcome ?? .late
    }

    /// Says that a message was shown; only now it is gone.
    public func acknowledge(_ claim: ClaimedMessage) async throws {
        try await store.acknowledge(claim)
    }

    /// Has an action performed: by the core that runs, or by this one when none does.
    ///
    /// - Returns: Whether it was performed within the budget; if not, it stays queued for the next core.
    /// - Throws: `ActionRefusal` when it was refused for good; `StoreError`; what the service throws when it starts.
    public func perform(_ action: MessageAction) async throws -> Bool {
        try await store.enqueue(action)
        core?.actionQueued()
        let isDone = try await awaited(nil) { _ -> Bool? in
            if try await self.store.actions().contains(where: { $0.id == action.id }) { return nil }
            let refusal = try await self.store.refusedActions().first { $0.id == action.id }
            if let refusal { throw ActionRefusal(refusal.reason) }
            return true
        }
        return isDone ?? false
    }

    // MARK: The end

    /// Ends the core that this process runs, if it does: once all that was pending is fetched and those who wait have what
    /// they wait for, a core with priority asks for its place, the budget is over, or the task is cancelled.
    public func stop() async {
        // What it throws reaches who had it become the core, unless the budget was over.
        if case .becoming(let task) = place {
            await withTaskCancellationHandler {
                _ = await task.result
            } onCancel: {
                task.cancel()
            }
        }
        while let core, !Task.isCancelled, .now < deadline {
            let count = core.changeCount
            if core.failure != nil || core.isAskedToYield { break }
            // Who came during the look is looked for, too.
            if core.hasFetched, !core.isActing, await !isWaitedFor(at: core), core.changeCount == count { break }
            await core.change(after: count, until: min(deadline, .now + configuration.toldLookInterval))
        }
        await endCore()
    }

    /// Ends the core that this process runs; returns once WRITER is free, whoever else ends it at the same time.
    private func endCore() async {
        beginEnd()
        if case .ending(let task) = place { await task.value }
    }

    /// Has the core that this process runs end.
    private func beginEnd() {
        guard case .running(let core) = place else { return }
        place = .ending(
            Task {
                await core.end()
                place = .none
            }
        )
    }

    /// Has the core end when a core with priority asks for its place, also while no call of this object waits for anything.
    private func giveWay(of core: RunningCore) {
        Task { [weak self] in
            if await core.askedToYield() { await self?.endCore() }
        }
    }

    /// Whether somebody waits for what is not in the store yet: another call of this object, or a process that is connected.
    private func isWaitedFor(at core: RunningCore) async -> Bool {
        // A call that still waits has not found it, though a message of its call-id may be there, shown before.
        if !waits.isEmpty { return true }
        do {
            for item in core.awaited {
                switch item {
                case .message(let callID): if try await store.message(callID: callID) == nil { return true }
                case .room(let address): if try await store.room(address: address) == nil { return true }
                }
            }
            return false
        } catch {
            return false
        }
    }

    // MARK: Waiting

    /// Waits until `look`, which hears whether this process runs the core, finds something; nil when the budget is over.
    private func awaited<Value: Sendable>(
        _ item: AwaitedItem?,
        _ look: (_ hasOwnCore: Bool) async throws -> Value?
    ) async throws -> Value? {
        if let found = try await unlessBusy({ try await look(core != nil) }) { return found }
        lastWait += 1
        let wait = lastWait
        waits[wait] = item
        let news = CoreNews(group: group, item: item)
        let result: Result<Value?, any Error>
        do {
            result = .success(try await waited(news, look))
        } catch {
            result = .failure(error)
        }
        // The place may have come together with what was waited for.
        if case .none = place { lock.unlock(.writer) }
        waits[wait] = nil
        core?.waitEnded()
        await news.close()
        return try result.get()
    }

    private func waited<Value: Sendable>(
        _ news: CoreNews,
        _ look: (_ hasOwnCore: Bool) async throws -> Value?
    ) async throws -> Value? {
        while .now < deadline {
            try Task.checkCancellation()
            if let core {
                let count = core.changeCount
                if let found = try await unlessBusy({ try await look(true) }) { return found }
                if let failure = core.failure {
                    guard (failure as? StoreError)?.code == .busy else {
                        await endCore()
                        throw failure
                    }
                    // It may take longer than there is time left.
                    beginEnd()
                    await rest(news)
                    continue
                }
                // When its place is asked for the core ends, which notifies, too; what is waited for may still come.
                await core.change(after: count, until: min(deadline, .now + configuration.toldLookInterval))
                continue
            }
            // First who tells, then a look: what came in between was heard or is seen.
            let count = news.notifier.count
            let isTold = await news.connect(until: deadline)
            if let found = try await unlessBusy({ try await look(false) }) { return found }
            do {
                if try await becomesCore() { continue }
            } catch let error as StoreError where error.code == .busy {
                await rest(news)
                continue
            }
            let interval = isTold ? configuration.toldLookInterval : configuration.lookInterval
            await waitForChange(news, after: count, until: min(deadline, .now + interval))
        }
        return nil
    }

    /// What `body` gives; nil when another process kept the database locked: there may be time to try again.
    private func unlessBusy<Value>(_ body: () async throws -> Value?) async throws -> Value? {
        do {
            return try await body()
        } catch let error as StoreError where error.code == .busy {
            return nil
        }
    }

    /// Leaves a database alone that another process keeps locked, for as long as between two looks.
    private func rest(_ news: CoreNews) async {
        await news.notifier.wait(after: news.notifier.count, until: min(deadline, .now + configuration.lookInterval))
    }

    /// Starts the core when nobody has it, and none with priority wants it.
    ///
    /// False, too, when the start outlasts the budget: it is cancelled, and `stop` waits for its end.
    private func becomesCore() async throws -> Bool {
        guard case .none = place else { return core != nil }
        guard try lock.holds(.writer) || lock.tryLock(.writer) else { return false }
        // Only now: one that takes its byte after this look finds WRITER taken, and asks for it.
        guard try !lock.isReservedElsewhere() else {
            lock.unlock(.writer)
            return false
        }
        let done = Notifier()
        let task = Task {
            defer { done.notify() }
            try await becomeCore()
        }
        place = .becoming(task)
        await withTaskCancellationHandler {
            await done.wait(after: 0, until: deadline)
        } onCancel: {
            task.cancel()
        }
        guard done.count > 0 else {
            task.cancel()
            return false
        }
        try await task.value
        return true
    }

    private func becomeCore() async throws {
        do {
            let core = try await RunningCore.begin(
                .executor,
                in: group,
                store: store,
                lock: lock,
                service: service,
                why: "a push"
            )
            place = .running(core)
            giveWay(of: core)
        } catch {
            place = .none
            throw error
        }
    }

    /// Waits for the core that runs to tell something or to end, or for its place.
    private func waitForChange(_ news: CoreNews, after count: Int, until limit: ContinuousClock.Instant) async {
        // One with priority keeps its place, and one that is about to start must not meet a crowd at the lock.
        guard case .none = place, (try? lock.isReservedElsewhere()) == false else {
            return await news.notifier.wait(after: count, until: limit)
        }
        let lock = lock
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    try await lock.wait(for: .writer)
                } catch {
                    // Another call of this process waits for the place already.
                    if !(error is CancellationError) { await news.notifier.wait(after: count, until: limit) }
                }
            }
            group.addTask { await news.notifier.wait(after: count, until: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    private func source(_ hasOwnCore: Bool) throws -> MessageSource {
        if hasOwnCore { return .executor }
        return try lock.owner()?.role == .main ? .main : .store
    }
}
