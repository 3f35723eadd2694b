import Logging
import Synchronization

extension CallEngine {
    /// Cards that take over, in this order, while the card that was asked for is away.
    ///
    /// They replace the names in `CallEngineConfiguration.fallbackDevices`. Without any, a card that went away is
    /// replaced by silence; in either case it is used again as soon as it is back.
    public func setFallbackCards(_ cards: [any SoundCard]) {
        state.withLock { $0.fallbackCards = cards }
    }

    /// The changes of card that calls went through, the last 64, the oldest first.
    public var routeChanges: [RouteChange] { state.withLock { $0.routeChanges } }

    /// What the cards of the calls, shared ones and their own, did so far; empty while no call uses one.
    public var cardReports: [CardReport] {
        let (devices, calls) = state.withLock { ($0.devices, $0.calls) }
        var reports: [CardReport] = []
        func add(_ direction: CardDirection, _ card: any SoundCard, _ statistics: LatestValue<CardStatistics>) {
            reports.append(CardReport(direction, card.description.name, statistics.value, Self.cardFormat))
        }
        if let filter = devices.captureFilter { add(.capture, devices.capture, filter.statistics) }
        if let filter = devices.playbackFilter { add(.playback, devices.playback, filter.statistics) }
        for call in calls {
            if let filter = call.source.filter as? CardCaptureFilter, case .card(let card) = call.configuration.source {
                add(.capture, card, filter.statistics)
            }
            if let filter = call.sink.filter as? CardPlaybackFilter, case .card(let card) = call.configuration.sink {
                add(.playback, card, filter.statistics)
            }
        }
        return reports
    }

    /// Looks after the filters that the calls use now.
    func watchCards(_ devices: CallDevices) {
        if let filter = devices.captureFilter { watcher.begin(filter, filter.statistics, .capture) }
        if let filter = devices.playbackFilter { watcher.begin(filter, filter.statistics, .playback) }
    }

    /// Re-targets playback to `card`: one plan of the graph, in which only the card's filter is another.
    ///
    /// - Parameters:
    ///   - card: The card.
    ///   - cause: Why.
    ///   - lost: The filter that must still be the one in use; nil takes any.
    /// - Throws: The error of the card that does not open.
    func routePlayback(to card: any SoundCard, _ cause: RouteChange.Cause, replacing lost: Filter? = nil) throws {
        let old = try state.withLock { state -> CardPlaybackFilter? in
            if let lost, state.devices.playbackFilter !== lost { return nil }
            var devices = state.devices
            var graph = state.graph
            let from = devices.playback
            devices.note(cause, .playback, leaving: from)
            devices.playback = card
            let old = devices.releasePlayback(from: &graph)
            if old != nil {
                try devices.openPlayback(self)
                try devices.linkPlayback(in: &graph)
                runner.install(try GraphPlan(graph))
            }
            state.graph = graph
            state.devices = devices
            if let filter = devices.playbackFilter {
                let change = change(.playback, from, card, cause)
                let isStandIn = devices.wantedPlayback != nil
                watcher.watch(filter, filter.statistics, .playback, change: change, isStandIn: isStandIn)
            }
            return old
        }
        if old != nil { forgetRoom() }
        retire(old?.supervisor)
    }

    /// Re-targets capture to `card`: one plan of the graph, in which only the card's filter is another.
    ///
    /// - Parameters:
    ///   - card: The card.
    ///   - cause: Why.
    ///   - lost: The filter that must still be the one in use; nil takes any.
    /// - Throws: The error of the card that does not open.
    func routeCapture(to card: any SoundCard, _ cause: RouteChange.Cause, replacing lost: Filter? = nil) throws {
        let old = try state.withLock { state -> CardCaptureFilter? in
            if let lost, state.devices.captureFilter !== lost { return nil }
            var devices = state.devices
            var graph = state.graph
            let from = devices.capture
            devices.note(cause, .capture, leaving: from)
            devices.capture = card
            var old: CardCaptureFilter?
            if devices.captureFilter != nil {
                var fresh = CallDevices(playback: devices.playback, capture: card, ringer: devices.ringer)
                let filter = try fresh.openCapture(self)
                old = try devices.replaceCapture(with: filter, in: &graph)
                runner.install(try GraphPlan(graph))
                let change = change(.capture, from, card, cause)
                let isStandIn = devices.wantedCapture != nil
                watcher.watch(filter, filter.statistics, .capture, change: change, isStandIn: isStandIn)
            }
            state.graph = graph
            state.devices = devices
            return old
        }
        if old != nil { forgetRoom() }
        retire(old?.supervisor)
    }

    /// Does what the watcher has found necessary.
    func perform(_ action: RouteWatcher.Action) {
        switch action {
        case .replace(let direction, let filter): replaceLostCard(direction, filter)
        case .probe(let direction, let filter): tryWantedCard(direction, filter)
        case .told(let change):
            let calls = state.withLock { state in
                if state.routeChanges.count == Self.keptRouteChanges { state.routeChanges.removeFirst() }
                state.routeChanges.append(change)
                return state.calls
            }
            for call in calls { call.tell(.routeChanged(change)) }
        }
    }

    /// Tries the cards that may stand in, in their order; when none opens, the lost one is waited for in silence.
    private func replaceLostCard(_ direction: CardDirection, _ filter: Filter) {
        let (candidates, current) = state.withLock { state in
            let named = configuration.fallbackDevices.compactMap { try? state.cards.card(named: $0) }
            let current = direction == .playback ? state.devices.playback : state.devices.capture
            return (state.fallbackCards ?? named, current)
        }
        let needed: CardCapabilities = direction == .playback ? .playback : .capture
        for card in candidates where card !== current && card.description.capabilities.contains(needed) {
            do {
                if direction == .playback {
                    try routePlayback(to: card, .unplugged, replacing: filter)
                } else {
                    try routeCapture(to: card, .unplugged, replacing: filter)
                }
                return
            } catch {
                configuration.logger.info("\(card.description.name) does not stand in for \(direction): \(error)")
            }
        }
    }

    /// Goes back to the card that was asked for, if it opens again.
    private func tryWantedCard(_ direction: CardDirection, _ filter: Filter) {
        let devices = state.withLock { $0.devices }
        do {
            if direction == .playback, let wanted = devices.wantedPlayback {
                try routePlayback(to: wanted, .returned, replacing: filter)
            } else if direction == .capture, let wanted = devices.wantedCapture {
                try routeCapture(to: wanted, .returned, replacing: filter)
            }
        } catch {
            configuration.logger.trace("\(direction) stays where it is: \(error)")
        }
    }

    private func change(
        _ direction: CardDirection,
        _ from: any SoundCard,
        _ to: any SoundCard,
        _ cause: RouteChange.Cause
    ) -> RouteChange {
        RouteChange(
            direction: direction,
            from: from.description.name,
            to: to.description.name,
            cause: cause,
            seconds: Double(now.nanoseconds) / 1e9,
            latencyBeforeMs: watcher.latencyMs(direction)
        )
    }

    /// Another card is another room: the cancellers begin anew.
    private func forgetRoom() {
        for voice in state.withLock({ $0.devices.voices }) where voice.isShared { send(voice.filter.resetCommand) }
    }

    private func retire(_ service: (any BackgroundService)?) {
        guard let service else { return }
        settle()
        timebase.remove(service)
    }

    private static var keptRouteChanges: Int { 64 }
}
