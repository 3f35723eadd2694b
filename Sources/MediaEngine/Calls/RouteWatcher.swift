import Synchronization

/// Looks after the cards that calls use: notices that one went away, asks whether one came back, and measures what a
/// change of card did to the latency.
///
/// It only looks; what is to be done it hands to `act`, which must not wait in real time.
/// Thread: `serve` background, the rest control.
final class RouteWatcher: BackgroundService {
    /// What is to be done.
    enum Action: Sendable {
        /// The card of this direction has gone: another may take its place.
        case replace(CardDirection, Filter)
        /// The card that was wanted may be there again.
        case probe(CardDirection, Filter)
        /// A change is over and measured.
        case told(RouteChange)
    }

    private struct Watch {
        let filter: Filter
        let statistics: LatestValue<CardStatistics>
        var disappearances: Int
        var latency = 0
        var change: RouteChange?
        var changeTime = MediaTime.zero
        /// Whether another card than the wanted one is in use.
        var isStandIn = false
        var nextProbe = MediaTime.zero
    }

    private let act: @Sendable (Action) -> Void
    private let now: @Sendable () -> MediaTime
    private let format: AudioFormat
    private let watches = Mutex<[CardDirection: Watch]>([:])

    init(
        format: AudioFormat,
        now: @escaping @Sendable () -> MediaTime,
        act: @escaping @Sendable (Action) -> Void
    ) {
        self.format = format
        self.now = now
        self.act = act
    }

    /// Watches `filter` from now on, as the one that carries `direction`.
    ///
    /// - Parameters:
    ///   - filter: The card's filter.
    ///   - statistics: Its counters.
    ///   - direction: Which way sound goes through it.
    ///   - change: What is to be told once the card moves.
    ///   - isStandIn: Whether the wanted card is away, and is to be asked for.
    func watch(
        _ filter: Filter,
        _ statistics: LatestValue<CardStatistics>,
        _ direction: CardDirection,
        change: RouteChange? = nil,
        isStandIn: Bool = false
    ) {
        let time = now()
        watches.withLock { watches in
            var watch = Watch(filter: filter, statistics: statistics, disappearances: 0)
            watch.change = change
            watch.changeTime = time
            watch.isStandIn = isStandIn
            watch.nextProbe = time + Self.probeInterval
            watches[direction] = watch
        }
    }

    /// Watches `filter`, unless it is watched already.
    func begin(_ filter: Filter, _ statistics: LatestValue<CardStatistics>, _ direction: CardDirection) {
        guard watches.withLock({ $0[direction]?.filter !== filter }) else { return }
        watch(filter, statistics, direction)
    }

    /// The latency that the card of `direction` had when it moved last, in ms.
    func latencyMs(_ direction: CardDirection) -> Double {
        watches.withLock { $0[direction].map { milliseconds($0.latency) } } ?? 0
    }

    func serve() {
        let time = now()
        let actions = watches.withLock { watches in
            CardDirection.allCases.flatMap { direction in look(&watches[direction], direction, time) }
        }
        for action in actions { act(action) }
    }

    private func look(_ watch: inout Watch?, _ direction: CardDirection, _ time: MediaTime) -> [Action] {
        guard var seen = watch else { return [] }
        defer { watch = seen }
        var actions: [Action] = []
        let statistics = seen.statistics.value
        if statistics.latencyFrames > 0 { seen.latency = statistics.latencyFrames }
        if var change = seen.change, statistics.frames > 0 || time - seen.changeTime > Self.patience {
            if statistics.frames > 0 { change.latencyAfterMs = milliseconds(statistics.latencyFrames) }
            seen.change = nil
            actions.append(.told(change))
        }
        if statistics.disappearances > seen.disappearances {
            seen.disappearances = statistics.disappearances
            actions.append(.replace(direction, seen.filter))
        } else if seen.isStandIn, time >= seen.nextProbe {
            seen.nextProbe = time + Self.probeInterval
            actions.append(.probe(direction, seen.filter))
        }
        return actions
    }

    private func milliseconds(_ frames: Int) -> Double {
        (Double(frames) * 100_000 / Double(format.sampleRate)).rounded() / 100
    }

    private static var probeInterval: Duration { .seconds(1) }
    private static var patience: Duration { .seconds(2) }
}
