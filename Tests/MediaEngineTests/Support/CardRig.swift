import CallBasics
import Synchronization

@testable import MediaEngine

/// A graph of pairs, source to sink, run by hand, with routes to cards in the same virtual time.
final class CardRig {
    let runner = GraphRunner()
    let driver: ManualDriver
    private let routes: CardRoutes
    private let heard = Heard()

    private final class Heard: Sendable {
        let events = Mutex<[CardRouteEvent]>([])
    }

    init(_ pairs: [(Filter, Filter)] = [], start: MediaTime = .zero) throws {
        let clock = ManualClock(at: start)
        driver = ManualDriver(runner, clock: clock)
        routes = try CardRoutes(clock: { clock.now }, isVirtual: true) { [heard] event in
            heard.events.withLock { $0.append(event) }
        }
        driver.add(routes)
        if !pairs.isEmpty { try connect(pairs) }
    }

    deinit {
        routes.shutDown()
    }

    /// A route to `card`, in use unless it is said otherwise.
    func route(
        _ direction: CardDirection,
        _ card: any SoundCard,
        _ configuration: CardConfiguration = CardConfiguration(format: AudioFormat(sampleRate: 48_000)),
        fallbacks: [any SoundCard] = [],
        isUsed: Bool = true
    ) -> CardRoute {
        let route = routes.makeRoute(
            .call,
            direction,
            to: card,
            fallbacks: fallbacks,
            configuration
        )
        if isUsed { route.use() }
        return route
    }

    /// Looks after the cards, where ticks are not run by `driver`.
    func serve() { routes.serve() }

    /// Runs these pairs from the next tick on.
    func connect(_ pairs: [(Filter, Filter)]) throws {
        var graph = Graph()
        for (source, sink) in pairs { try graph.connect(source, to: sink) }
        runner.install(try GraphPlan(graph))
    }

    /// The events of filters since the last call.
    func events() -> [GraphEvent] {
        var events: [GraphEvent] = []
        runner.drainEvents { events.append($0) }
        return events
    }

    /// What the application was told since the last call.
    func told() -> [CardRouteEvent] {
        heard.events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
