import CallBasics
import Glibc
import Synchronization

/// The plans of one media thread, with what drives it and what brings its events and receipts back.
///
/// Thread: control, any; `tick` and `obey` media.
final class MediaLoop: TickTarget, BackgroundService, @unchecked Sendable {
    private typealias Handler = @Sendable (GraphEvent) -> Void

    private struct State {
        var driver: (any TickDriver)?
        var handlers: [FilterID: Handler] = [:]
        /// Who waits for so many orders to be obeyed.
        var waiting: [(count: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
        var hasEnded = false
        /// Whether it was said that events are lost.
        var hasToldLoss = false
    }

    /// The length of one tick.
    let tickDuration: Duration
    let runner = GraphRunner()
    private let timebase: EngineTimebase
    private let name: String
    private let state = Mutex(State())
    /// Held while the thread is started, which is waited for, so that nobody waits for the state meanwhile.
    private let starting = Mutex(())
    private let serving = Mutex(())
    /// The thread that hands on events now.
    private let server = Atomic<UInt>(0)
    /// Orders that the thread of events knows to be obeyed.
    ///
    /// Thread: media.
    private var toldCount: UInt64 = 0

    /// A loop that does not run yet.
    init(tickDuration: Duration, timebase: EngineTimebase, name: String) {
        self.tickDuration = tickDuration
        self.timebase = timebase
        self.name = name
        timebase.addLoop(self)
    }

    // MARK: Graphs

    /// An empty graph for this loop.
    func makeGraph() -> Graph {
        var graph = Graph(tickDuration: tickDuration)
        graph.converterFactory = ConverterFilter.factory
        return graph
    }

    /// Plans `graph` for this loop.
    func plan(_ graph: Graph) throws(GraphError) -> GraphPlan { try GraphPlan(graph, arena: runner.arena) }

    // MARK: Orders

    /// Gives `orders`, to take effect together; the thread has been started.
    ///
    /// - Parameter orders: What is to be done.
    /// - Returns: What `settled` waits for.
    /// - Throws: `EngineError` when the media thread has not obeyed thousands of earlier orders.
    @discardableResult
    func give(_ orders: [GraphRunner.Order]) throws(EngineError) -> UInt64 {
        let driver = state.withLock { $0.driver }
        guard let count = runner.give(orders) else {
            throw .state(
                .busy,
                "Too many changes wait for the media thread \(name), which does not run. See whether the process is stopped."
            )
        }
        driver?.wake()
        return count
    }

    /// Sends `command` to `filter`.
    ///
    /// - Throws: `EngineError` as `give`.
    func send<Command, Event>(
        _ command: Command,
        to filter: ControlledFilter<Command, Event>
    ) throws(EngineError) {
        try give([.command(command, to: filter)])
    }

    /// Returns when so many orders have been obeyed, so that what they removed is no longer touched.
    func settled(_ count: UInt64) async {
        guard runner.obeyedCount < count else { return }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // The media thread counts first and tells then, so either this sees the count or the telling sees who waits.
                if runner.obeyedCount >= count || state.hasEnded { return true }
                state.waiting.append((count, continuation))
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    // MARK: Events

    /// Hands the events of `filter` to `handler` from now on, with their times.
    ///
    /// Thread: `handler` runs in the background, or where virtual time is moved.
    func listen<Command, Event>(
        to filter: ControlledFilter<Command, Event>,
        _ handler: @escaping @Sendable (Event, MediaTime) -> Void
    ) {
        state.withLock { state in
            state.handlers[filter.id] = { handler($0.message.load(as: Event.self), $0.time) }
        }
    }

    /// Hands the events of `filters` to nobody any more.
    func forget(_ filters: [Filter]) {
        state.withLock { state in
            for filter in filters { state.handlers[filter.id] = nil }
        }
    }

    /// Brings what has happened to those who wait for it, one after the other in the order in which it did.
    ///
    /// Thread: any; a handler that calls it finds nothing to do.
    func serve() {
        let thread = UInt(pthread_self())
        guard server.load(ordering: .relaxed) != thread else { return }
        serving.withLock { _ in
            server.store(thread, ordering: .relaxed)
            defer { server.store(0, ordering: .relaxed) }
            handleEvents()
        }
        let obeyed = runner.obeyedCount
        let settled = state.withLock { state in
            let settled = state.waiting.filter { $0.count <= obeyed }
            if !settled.isEmpty { state.waiting.removeAll { $0.count <= obeyed } }
            return settled
        }
        for waiter in settled { waiter.continuation.resume() }
    }

    private func handleEvents() {
        var waiting: [GraphEvent] = []
        runner.drainEvents { waiting.append($0) }
        for event in waiting {
            let handler = state.withLock { $0.handlers[event.filter] }
            handler?(event)
        }
        tellLoss()
    }

    /// Says once that events were lost: each is missed by somebody.
    private func tellLoss() {
        let count = runner.droppedEventCount
        guard count > 0 else { return }
        let isFirst = state.withLock { state in
            defer { state.hasToldLoss = true }
            return !state.hasToldLoss
        }
        if isFirst { timebase.tellLostEvents(count, of: name) }
    }

    // MARK: Thread

    /// Starts the thread, unless it runs or has been ended; until there is a plan, it rests.
    ///
    /// The thread is waited for, off the concurrency pool; the caller holds no lock. Orders are given after it: they are
    /// obeyed some day, and none must wait for a thread that could not be made.
    /// - Parameter pacer: What waits for the ticks, when the thread is started by this.
    /// - Throws: `EngineError` when the thread cannot be started.
    func start(
        pacer: @autoclosure @escaping @Sendable () -> any TickPacer = DeadlinePacer()
    ) async throws(EngineError) {
        guard isToStart else { return }
        try await EngineError.wrappingAsync {
            try await BlockingWork.run { [self] in try startThread(pacer) }
        }
    }

    private var isToStart: Bool { state.withLock { $0.driver == nil && !$0.hasEnded } }

    private func startThread(_ makePacer: () -> any TickPacer) throws {
        let driver = try starting.withLock { _ -> (any TickDriver)? in
            guard isToStart else { return nil }
            let pacer = makePacer()
            let driver = try timebase.drive(self, tickDuration: tickDuration, pacer: pacer, name: name)
            state.withLock { $0.driver = driver }
            return driver
        }
        // Without the lock: where it is written to may take long.
        if let driver { timebase.tellScheduling(driver) }
    }

    /// How punctual the ticks were.
    var statistics: TickStatistics { state.withLock { $0.driver?.statistics ?? TickStatistics() } }

    /// How the media thread is scheduled; nil before it runs and in virtual time.
    var scheduling: SchedulingResult? { state.withLock { ($0.driver as? TimerDriver)?.scheduling } }

    /// Runs the tick that is due at `now`.
    func tick(at now: MediaTime, lateness: Duration) {
        runner.tick(at: now, lateness: lateness)
        tellNews()
    }

    /// Obeys the orders that wait.
    func obey() {
        runner.obeyOrders()
        tellNews()
    }

    /// Whether there is nothing to run.
    var isIdle: Bool { runner.isIdle }

    private func tellNews() {
        let obeyed = runner.obeyedCount
        guard obeyed != toldCount || runner.waitingEventCount > 0 else { return }
        toldCount = obeyed
        timebase.tellNews()
    }

    /// Ends the thread; nobody waits any more.
    func stop() {
        let (driver, waiting) = starting.withLock { _ in
            state.withLock { state in
                defer {
                    state.driver = nil
                    state.waiting = []
                    state.hasEnded = true
                }
                return (state.driver, state.waiting)
            }
        }
        if let driver { timebase.stop(driver, self) }
        serve()
        for waiter in waiting { waiter.continuation.resume() }
        timebase.removeLoop(self)
        state.withLock { $0.handlers = [:] }
    }
}
