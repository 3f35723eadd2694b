import CallBasics
import Synchronization

/// The one owner of one direction of a card: it opens the card with the first user, closes it with the last, and meanwhile
/// falls back, retries, returns, and tells the application.
///
/// Opening and closing run on threads of their own, and no lock is held meanwhile; in virtual time they are done at once.
/// Thread: control, any.
package final class CardRoute: Sendable {
    private struct State {
        var decisions: CardRouteState
        /// Cards that are not closed yet.
        var openCount = 0
        var service: (any BackgroundService)?
        /// A change that is to be told once the card moves, and the card's number.
        var change: (RouteChange, number: Int, deadline: MediaTime)?
        var toldXruns = 0
        var toldLoss = 0
        var requestCount = 0
        var requests: [Int: CheckedContinuation<CardError?, Never>] = [:]
        var opening: [CheckedContinuation<Void, Never>] = []
        var closing: [CheckedContinuation<Void, Never>] = []
    }

    /// What is done when the lock is free again.
    private struct Work: Sendable {
        var attempts: [CardRouteState.Attempt] = []
        /// To be released off this thread, which closes them.
        var closed: [Unmanaged<CardSlot>] = []
        var answers: [(CheckedContinuation<CardError?, Never>, CardError?)] = []
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The card in the graph.
    package let filter: CardFilter
    /// Whether it plays or records.
    let direction: CardDirection
    private let role: CardRouteEvent.Role
    private let configuration: CardConfiguration
    private let routes: CardRoutes
    private let state: Mutex<State>

    /// How long a change waits for the new card to move before it is told.
    private static let changePatience = Duration.seconds(2)
    /// How often an endpoint is served that asks for it.
    private static let serviceInterval = Duration.milliseconds(20)

    init(
        _ role: CardRouteEvent.Role,
        _ direction: CardDirection,
        to card: any SoundCard,
        fallbacks: [any SoundCard],
        _ configuration: CardConfiguration,
        routes: CardRoutes
    ) {
        self.role = role
        self.direction = direction
        self.configuration = configuration
        self.routes = routes
        state = Mutex(State(decisions: CardRouteState(direction, to: card, fallbacks: fallbacks)))
        let name = role == .call ? "the call card" : card.description.name
        filter = CardFilter(direction, configuration, name: name) { [notifier = routes.notifier] in notifier.wake() }
    }

    // MARK: Facts

    /// The name of the card in use, or, while there is none, of the one that is wanted.
    var cardName: String {
        state.withLock { $0.decisions.current ?? $0.decisions.wanted }.description.name
    }

    /// Whether a card is in use: the one that is wanted, or one that stands in.
    var hasCard: Bool { state.withLock { $0.decisions.current != nil } }

    /// Why the wanted card did not open the last time; nil once it did.
    package var lastError: CardError? { state.withLock { $0.decisions.lastError } }

    /// Whether somebody uses the card.
    var isInUse: Bool { state.withLock { $0.decisions.isInUse } }

    /// Cards that are not closed yet: 1 while one is in use, 2 for a moment when another takes over.
    var openCount: Int { state.withLock { $0.openCount } }

    /// What has gone through.
    package var statistics: CardStatistics { filter.statistics.value }

    // MARK: Users

    /// Takes in a user, and begins to open the card for the first.
    package func use() {
        perform { $0.use(at: $1) }
        routes.add(self)
    }

    /// Lets go of a user; with the last, returns when the card is closed, or at once while it is only being opened.
    ///
    /// The filter must not be in a running plan of that user any more.
    package func release() async {
        perform { decisions, _ in decisions.release() }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard state.openCount > 0, !state.decisions.isNeeded else { return true }
                state.closing.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Returns when no card is being opened any more.
    package func opened() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard state.decisions.isOpening else { return true }
                state.opening.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Lets the card be open while somebody uses it, or keeps it closed; it is closed in a moment.
    func allow(_ isAllowed: Bool) {
        perform { $0.allow(isAllowed, at: $1) }
        if isInUse { routes.add(self) }
    }

    /// Ends all use; in a moment, the card is closed.
    func end() {
        perform { decisions, _ in decisions.end() }
    }

    // MARK: Cards

    /// Cards that stand in while the wanted one is away, in this order.
    func setFallbacks(_ cards: [any SoundCard]) {
        perform { $0.setFallbacks(cards, at: $1) }
    }

    /// Uses `card` from now on, and waits until it is open, if a card is in use; until then the one before stays in use.
    ///
    /// - Throws: `CardError` when it does not open; then the one before stays in use.
    func setCard(_ card: any SoundCard) async throws(CardError) {
        let request = state.withLock { state in
            state.requestCount += 1
            return state.requestCount
        }
        let error = await withCheckedContinuation { continuation in
            state.withLock { $0.requests[request] = continuation }
            perform { $0.setCard(card, request: request, at: $1) }
        }
        if let error { throw error }
    }

    // MARK: Watching

    /// Looks after the card; answers when to look again, if nothing happens before.
    ///
    /// Thread: of the routes, or where virtual time is moved.
    func look() -> MediaTime? {
        let statistics = filter.statistics.value
        decide { $0.lose(statistics.lostCardNumber, at: $1) + $0.check(at: $1) }
        let service = state.withLock { $0.service }
        service?.serve()
        return state.withLock { state in
            var times = [state.decisions.deadline, state.change?.deadline].compactMap(\.self)
            if service != nil { times.append(routes.now + Self.serviceInterval) }
            return times.min()
        }
    }

    /// Whether there is nothing to look after.
    var isIdle: Bool { state.withLock { !$0.decisions.isNeeded && $0.openCount == 0 } }

    // MARK: Decisions

    /// Makes a decision, acts on it, and has its events told.
    private func perform(_ change: (inout CardRouteState, MediaTime) -> [CardRouteState.Action]) {
        decide(change)
        routes.notify()
    }

    private func decide(_ change: (inout CardRouteState, MediaTime) -> [CardRouteState.Action]) {
        let now = routes.now
        let work = state.withLock { state in
            let actions = change(&state.decisions, now)
            var work = Work()
            for action in actions { obey(action, &state, &work, at: now) }
            work.closed += filter.reclaim()
            tellNews(&state, at: now)
            filter.setAwaited(state.decisions.isNeeded)
            if !state.decisions.isOpening {
                work.waiters += state.opening
                state.opening = []
            }
            if state.openCount == 0 || state.decisions.isNeeded {
                work.waiters += state.closing
                state.closing = []
            }
            return work
        }
        for slot in work.closed { close(slot) }
        for (continuation, error) in work.answers { continuation.resume(returning: error) }
        for continuation in work.waiters { continuation.resume() }
        for attempt in work.attempts { open(attempt) }
    }

    /// Thread: under the lock, so that cards are put and taken in the order of the decisions.
    private func obey(_ action: CardRouteState.Action, _ state: inout State, _ work: inout Work, at now: MediaTime) {
        switch action {
        case .open(let attempt): work.attempts.append(attempt)
        case .put(let endpoint, let number):
            state.openCount += 1
            state.service = endpoint.service
            if let former = filter.put(CardSlot(endpoint, number: number)) { work.closed.append(former) }
        case .take:
            state.service = nil
            tellChange(&state, at: now)
            if let former = filter.take() { work.closed.append(former) }
        case .tell(let kind, let card): tell(kind, card, at: now)
        case .change(let former, let card, let cause):
            tellChange(&state, at: now)
            let change = RouteChange(
                direction: direction,
                from: former,
                to: card,
                cause: cause,
                seconds: Double(now.nanoseconds) / 1e9,
                latencyBeforeMs: milliseconds(filter.statistics.value.lastLatencyFrames)
            )
            state.change = (change, state.decisions.currentNumber, now + Self.changePatience)
        case .answer(let request, let error):
            if let continuation = state.requests.removeValue(forKey: request) {
                work.answers.append((continuation, error))
            }
        }
    }

    /// Tells of xruns, and of a change whose card moves by now, or should.
    private func tellNews(_ state: inout State, at now: MediaTime) {
        let statistics = filter.statistics.value
        if statistics.xruns > state.toldXruns {
            let card = (state.decisions.current ?? state.decisions.wanted).description.name
            tell(.xrun(lostFrameCount: statistics.framesLostInXruns - state.toldLoss), card, at: now)
            state.toldXruns = statistics.xruns
            state.toldLoss = statistics.framesLostInXruns
        }
        guard let pending = state.change else { return }
        let moves = statistics.cardNumber == pending.number && statistics.cardFrames > 0
        if moves { state.change?.0.latencyAfterMs = milliseconds(statistics.latencyFrames) }
        // A card that has only begun may not know yet what it holds.
        guard moves && statistics.latencyFrames > 0 || now >= pending.deadline else { return }
        tellChange(&state, at: now)
    }

    private func tellChange(_ state: inout State, at now: MediaTime) {
        guard let pending = state.change.take() else { return }
        tell(.changed(pending.0), pending.0.to, at: now)
    }

    private func tell(_ kind: CardRouteEvent.Kind, _ card: String, at now: MediaTime) {
        routes.queue(CardRouteEvent(kind: kind, role: role, direction: direction, card: card, time: now))
    }

    private func milliseconds(_ frames: Int) -> Double {
        (Double(frames) * 100_000 / Double(configuration.format.sampleRate)).rounded() / 100
    }

    // MARK: Blocking work

    private func open(_ attempt: CardRouteState.Attempt) {
        routes.run { [self] in
            let result: Result<any CardEndpoint, CardError>
            do throws(CardError) {
                result = .success(try attempt.card.open(direction, configuration, at: routes.now))
            } catch {
                result = .failure(error)
            }
            perform { $0.finish(attempt, result, at: $1) }
        }
    }

    private func close(_ slot: Unmanaged<CardSlot>) {
        routes.run { [self] in
            slot.release()
            state.withLock { $0.openCount -= 1 }
            perform { _, _ in [] }
        }
    }
}
