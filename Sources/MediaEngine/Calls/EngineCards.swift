import CallBasics
import Logging
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

    private struct Reloads {
        /// How many looks at the cards have begun, and the number of the one in use.
        var begun = 0
        var used = 0
        /// Whether the fallback cards are those of the configuration.
        var usesConfiguredFallbacks = true
    }

    /// The call card's two directions.
    let playback: CardRoute
    let capture: CardRoute

    private let routes: CardRoutes
    private let timebase: EngineTimebase
    private let makeList: @Sendable () throws(CardError) -> CardList
    private let fallbackNames: [String]
    private let logger: Logger
    private let state: Mutex<State>
    /// Held while a new list is put to use, or other fallback cards.
    private let reloads = Mutex(Reloads())
    private static var keptChanges: Int { 64 }

    /// The cards as `configuration` binds them, none open; `onEvent` hears what happens to them.
    convenience init(
        _ configuration: CallEngineConfiguration,
        timebase: EngineTimebase,
        onEvent: @escaping @Sendable (CardRouteEvent) -> Void
    ) throws(EngineError) {
        let bindings = configuration.cardBindings
        let isVirtual = timebase.isVirtual
        try self.init(configuration, timebase: timebase, onEvent: onEvent) { () throws(CardError) in
            // Virtual time has no part in the machine's cards, and asks none of its sound servers.
            isVirtual ? try CardList(builtInBeside: bindings) : try CardList(bindings: bindings)
        }
    }

    /// As the other, with the cards that `makeList` finds.
    init(
        _ configuration: CallEngineConfiguration,
        timebase: EngineTimebase,
        onEvent: @escaping @Sendable (CardRouteEvent) -> Void,
        makeList: @escaping @Sendable () throws(CardError) -> CardList
    ) throws(EngineError) {
        let list: CardList
        do throws(CardError) { list = try makeList() } catch { throw .card(error) }
        self.makeList = makeList
        fallbackNames = configuration.fallbackDevices
        logger = configuration.logger
        self.timebase = timebase
        state = Mutex(State(list: list, ringer: list.ringerCard))
        routes = try EngineError.wrapping {
            try CardRoutes(clock: { [timebase] in timebase.now }, isVirtual: timebase.isVirtual, onEvent: onEvent)
        }
        let fallbacks = Self.fallbacks(fallbackNames, in: list, logger)
        let routes = routes
        func callRoute(_ direction: CardDirection) -> CardRoute {
            routes.makeRoute(
                .call,
                direction,
                to: list.callCard,
                fallbacks: fallbacks,
                CardRole.call.configuration(CallEngine.cardFormat)
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

    /// Looks anew which cards there are, and which of them are to stand in.
    func reload() async throws(EngineError) {
        let number = reloads.withLock { reloads in
            reloads.begun += 1
            return reloads.begun
        }
        let list = try await EngineError.wrappingAsync {
            try await BlockingWork.run { [makeList] in try makeList() }
        }
        let fallbacks = Self.fallbacks(fallbackNames, in: list, logger)
        reloads.withLock { reloads in
            // One that took long is older than one in use.
            guard number > reloads.used else { return }
            reloads.used = number
            state.withLock { $0.list = list }
            if reloads.usesConfiguredFallbacks, !fallbackNames.isEmpty { useFallbacks(fallbacks) }
        }
    }

    /// The cards of those names that are there.
    private static func fallbacks(_ names: [String], in list: CardList, _ logger: Logger) -> [any SoundCard] {
        var cards: [any SoundCard] = []
        for name in names {
            do throws(CardError) {
                cards.append(try list.card(named: name))
            } catch {
                logger.warning("The fallback card is looked for again by reloadCards. \(error)")
            }
        }
        return cards
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
            CardRole.call.configuration(CallEngine.cardFormat)
        )
    }

    /// Routes of a tone stream, in use, when none of their cards is being opened any more.
    ///
    /// - Throws: `EngineError` when cards that are required do not open; then no route is in use.
    func openRingerRoutes(
        to cards: [any SoundCard],
        format: AudioFormat,
        isRequired: Bool
    ) async throws(EngineError) -> [CardRoute] {
        let opened = cards.map { card in
            routes.makeRoute(.ringer, .playback, to: card, fallbacks: [], CardRole.ringer.configuration(format))
        }
        for route in opened { route.use() }
        for route in opened { await route.opened() }
        guard isRequired, let error = opened.compactMap(\.lastError).first else { return opened }
        for route in opened { await route.release() }
        throw .card(error)
    }

    /// Cards that stand in, in place of those of the configuration.
    func setFallbackCards(_ cards: [any SoundCard]) {
        reloads.withLock { reloads in
            reloads.usesConfiguredFallbacks = false
            useFallbacks(cards)
        }
    }

    private func useFallbacks(_ cards: [any SoundCard]) {
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
