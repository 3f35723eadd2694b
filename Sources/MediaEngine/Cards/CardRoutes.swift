package import CallBasics
import Synchronization

/// Looks after all cards that an engine uses.
///
/// A thread sleeps until a media thread tells of something, or a card is to be tried again. In virtual time it is served
/// by the driver instead.
/// Thread: control, any.
package final class CardRoutes: BackgroundService {
    private struct State {
        var routes: [CardRoute] = []
        var thread: MediaThread?
        var hasEnded = false
    }

    /// Wakes the thread that looks after the cards.
    let notifier = Sleeper()
    private let clock: @Sendable () -> MediaTime
    private let isVirtual: Bool
    private let onEvent: @Sendable (CardRouteEvent) -> Void
    private let state = Mutex(State())
    /// What is still to be told; with a lock of its own, since events come from under the lock of a route.
    private let events = Mutex<[CardRouteEvent]>([])

    /// Routes without a card; to be ended by `shutDown`.
    ///
    /// - Parameters:
    ///   - clock: The present time.
    ///   - isVirtual: Whether `serve` is called as virtual time passes.
    ///   - onEvent: Hears what happens, one after the other: on the routes' thread, or where virtual time is moved.
    /// - Throws: `DriverError` when the thread cannot be started.
    package init(
        clock: @escaping @Sendable () -> MediaTime,
        isVirtual: Bool,
        onEvent: @escaping @Sendable (CardRouteEvent) -> Void
    ) throws(DriverError) {
        self.clock = clock
        self.isVirtual = isVirtual
        self.onEvent = onEvent
        guard !isVirtual else { return }
        let thread = try MediaThread(name: "media-cards", priority: nil) { [self] _ in run() }
        state.withLock { $0.thread = thread }
    }

    /// A route to `card`, which nobody uses yet.
    ///
    /// - Parameters:
    ///   - role: Who will use it.
    ///   - direction: Whether it plays or records.
    ///   - card: The card that is wanted.
    ///   - fallbacks: Cards that stand in while that is away, in this order.
    ///   - configuration: What is asked of each card.
    /// - Returns: The route; its filter goes into the graph.
    package func makeRoute(
        _ role: CardRouteEvent.Role,
        _ direction: CardDirection,
        to card: any SoundCard,
        fallbacks: [any SoundCard] = [],
        _ configuration: CardConfiguration
    ) -> CardRoute {
        CardRoute(role, direction, to: card, fallbacks: fallbacks, configuration, routes: self)
    }

    var now: MediaTime { clock() }

    /// Closes every card; no media thread may run their filters any more.
    ///
    /// Thread: any but that of the routes.
    package func shutDown() {
        let (routes, thread) = state.withLock { state in
            defer {
                state.hasEnded = true
                state.routes = []
                state.thread = nil
            }
            return (state.routes, state.thread)
        }
        for route in routes { route.end() }
        notifier.wake()
        thread?.join()
        tell()
    }

    // MARK: For routes

    /// Looks after `route` until it is idle.
    func add(_ route: CardRoute) {
        state.withLock { state in
            if !state.hasEnded, !state.routes.contains(where: { $0 === route }) { state.routes.append(route) }
        }
        notify()
    }

    /// Keeps `event` for the application.
    func queue(_ event: CardRouteEvent) {
        events.withLock { $0.append(event) }
    }

    /// Something has changed: there may be events to tell, and other times to look.
    func notify() {
        if isVirtual { tell() } else { notifier.wake() }
    }

    /// Runs what may take long.
    func run(_ body: @escaping @Sendable () -> Void) {
        let isHere = isVirtual || state.withLock { $0.hasEnded }
        if isHere { body() } else { BlockingWork.start(body) }
    }

    // MARK: Looking after

    /// Looks after every card that is used.
    package func serve() {
        _ = lookAfterAll()
        tell()
    }

    private func run() {
        while !state.withLock({ $0.hasEnded }) {
            let next = lookAfterAll()
            tell()
            if let next {
                notifier.sleep(untilWokenOr: next)
            } else {
                notifier.rest()
            }
        }
    }

    private func lookAfterAll() -> MediaTime? {
        let routes = state.withLock { $0.routes }
        let next = routes.compactMap { $0.look() }.min()
        let idle = routes.filter(\.isIdle)
        guard !idle.isEmpty else { return next }
        state.withLock { state in state.routes.removeAll { route in idle.contains { $0 === route } } }
        // One that is used again meanwhile has not been added, for it was still there.
        for route in idle where !route.isIdle { add(route) }
        return next
    }

    private func tell() {
        let waiting = events.withLock { events in
            defer { events = [] }
            return events
        }
        for event in waiting { onEvent(event) }
    }
}
