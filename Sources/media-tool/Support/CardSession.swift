import MediaEngine

/// Cards that are used without a call: opened, run by a media thread, and closed.
final class CardSession {
    /// One direction of an open card.
    struct Opened {
        let route: CardRoute

        /// The card in a graph.
        var filter: CardFilter { route.filter }
        /// What has gone through.
        var statistics: CardStatistics { route.statistics }
    }

    /// What happens to its cards.
    let watch = CardWatch()
    private let routes: CardRoutes
    private var opened: [CardRoute] = []
    private var driver: TimerDriver?

    /// A session without a card.
    ///
    /// - Throws: `DriverError` when the thread that opens cards cannot be started.
    init() throws {
        let watch = watch
        routes = try CardRoutes(clock: { MonotonicClock.current }, isVirtual: false, onEvent: { watch.note($0) })
    }

    /// Opens a card as a call would.
    ///
    /// - Throws: `CardError` when it does not open.
    func open(_ card: any SoundCard, _ direction: CardDirection) async throws -> Opened {
        let route = route(to: card, direction, .call)
        route.use()
        opened.append(route)
        await route.opened()
        if let error = route.lastError { throw error }
        return Opened(route: route)
    }

    /// A route to a card, which is not opened.
    func route(to card: any SoundCard, _ direction: CardDirection, _ role: CardRole) -> CardRoute {
        routes.makeRoute(
            .own,
            direction,
            to: card,
            fallbacks: [],
            role.configuration(CallEngine.cardFormat)
        )
    }

    /// Runs `graph` until `stop`.
    ///
    /// - Throws: `GraphError` or `DriverError`.
    func run(_ graph: Graph, pacer: any TickPacer = DeadlinePacer(), name: String) throws {
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        let driver = TimerDriver(
            runner,
            tickDuration: graph.tickDuration,
            pacer: pacer,
            policy: LatenessPolicy(),
            priority: TimerDriver.defaultPriority,
            name: name
        )
        try driver.start()
        self.driver = driver
    }

    /// Ends the ticks and closes the cards; once is enough.
    func stop() async {
        driver?.stop()
        driver = nil
        for route in opened { await route.release() }
        opened = []
        routes.shutDown()
    }
}
