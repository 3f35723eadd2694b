import CallBasics
import Synchronization

/// The cards of an engine: the two directions of the call card, the ringer, and cards of single calls.
///
/// Thread: control, any.
final class EngineCards: Sendable {
    private struct State {
        var list: CardList
        var ringer: any SoundCard
        var changes: [RouteChange] = []
    }

    /// The call card's two directions.
    let playback: CardRoute
    let capture: CardRoute

    private let routes: CardRoutes
    private let timebase: EngineTimebase
    private let bindings: CardBindings
    private let fallbackNames: [String]
    private let state: Mutex<State>
    private static var keptChanges: Int { 64 }

    /// The cards as `configuration` binds them, none open; `onEvent` hears what happens to them.
    init(
        _ configuration: CallEngineConfiguration,
        timebase: EngineTimebase,
        onEvent: @escaping @Sendable (CardRouteEvent) -> Void
    ) throws(EngineError) {
        let list = try EngineError.wrapping { try CardList(bindings: configuration.cardBindings) }
        bindings = configuration.cardBindings
        fallbackNames = configuration.fallbackDevices
        self.timebase = timebase
        state = Mutex(State(list: list, ringer: list.ringerCard))
        routes = try EngineError.wrapping {
            try CardRoutes(clock: { [timebase] in timebase.now }, isVirtual: timebase.isVirtual, onEvent: onEvent)
        }
        let fallbacks = fallbackNames.compactMap { try? list.card(named: $0) }
        let routes = routes
        func callRoute(_ direction: CardDirection) -> CardRoute {
            routes.makeRoute(
                .call,
                direction,
                to: list.callCard,
                fallbacks: fallbacks,
                CardRole.call.configuration(CallEngine.cardFormat),
                isGated: configuration.gatesAudioSession
            )
        }
        playback = callRoute(.playback)
        capture = callRoute(.capture)
        if timebase.isVirtual { timebase.add(routes) }
    }

    /// The call card's direction.
    func route(_ direction: CardDirection) -> CardRoute { direction == .playback ? playback : capture }

    // MARK: The list

    /// The cards that are there.
    var list: CardList { state.withLock { $0.list } }

    /// Looks anew which cards there are.
    func reload() async throws(EngineError) {
        let list = try await EngineError.wrappingAsync {
            try await BlockingWork.run { [bindings] in try CardList(bindings: bindings) }
        }
        state.withLock { $0.list = list }
    }

    // MARK: Routes

    /// The card that rings and key tones are heard on.
    var ringer: any SoundCard {
        get { state.withLock { $0.ringer } }
        set { state.withLock { $0.ringer = newValue } }
    }

    /// A route to a card of one call's own.
    func makeRoute(to card: any SoundCard, _ direction: CardDirection) -> CardRoute {
        routes.makeRoute(
            .own,
            direction,
            to: card,
            fallbacks: [],
            CardRole.call.configuration(CallEngine.cardFormat),
            isGated: false
        )
    }

    /// A route of a tone stream.
    func makeRingerRoute(to card: any SoundCard, format: AudioFormat) -> CardRoute {
        routes.makeRoute(
            .ringer,
            .playback,
            to: card,
            fallbacks: [],
            CardRole.ringer.configuration(format),
            isGated: false
        )
    }

    func setFallbackCards(_ cards: [any SoundCard]) {
        playback.setFallbacks(cards)
        capture.setFallbacks(cards)
    }

    /// The changes of card that calls went through, the last 64, the oldest first.
    var changes: [RouteChange] { state.withLock { $0.changes } }

    func note(_ change: RouteChange) {
        state.withLock { state in
            if state.changes.count == Self.keptChanges { state.changes.removeFirst() }
            state.changes.append(change)
        }
    }

    /// Closes every card.
    func shutDown() {
        if timebase.isVirtual { timebase.remove(routes) }
        routes.shutDown()
    }
}

extension CardReport {
    /// What the card of `route` did so far.
    init(_ route: CardRoute) {
        self.init(route.direction, route.cardName, route.statistics, CallEngine.cardFormat)
    }
}
