import CallBasics
import MediaEngineTesting
import Synchronization
import TestSupport
import Testing

@testable import MediaEngine

private let format = AudioFormat(sampleRate: 48_000)
private let configuration = CardConfiguration(format: format)

/// Cards that are slow, and threads that get in each other's way.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct CardRouteRealTimeTests {
    private let routes: CardRoutes
    private let told: Watched<[CardRouteEvent]>

    init() throws {
        let told = Watched<[CardRouteEvent]>([])
        self.told = told
        routes = try CardRoutes(clock: { MonotonicClock.current }, isVirtual: false) { event in
            told.update { $0.append(event) }
        }
    }

    private func route(_ card: any SoundCard, fallbacks: [any SoundCard] = []) -> CardRoute {
        routes.makeRoute(.call, .playback, to: card, fallbacks: fallbacks, configuration)
    }

    @Test func `a card that is slow to open holds up neither other cards nor the end of its use`() async throws {
        defer { routes.shutDown() }
        let (slow, quick) = (GatedCard(name: "slow", isOpen: false), GatedCard(name: "quick"))
        let (waiting, other) = (route(slow), route(quick))
        waiting.use()
        try await slow.begun.wait { $0 == 1 }
        other.use()
        await other.opened()
        #expect(quick.openCount.value == 1 && slow.openCount.value == 0)
        try await other.setCard(GatedCard(name: "third"))
        #expect(other.cardName == "third")
        await other.release()
        #expect(other.openCount == 0)
        // It is still being opened, and nobody waits for that.
        await waiting.release()
        await waiting.opened()
        #expect(slow.openCount.value == 0)
        slow.letOpen()
        try await slow.opened.wait { $0 == 1 }
        // What opens too late is closed again.
        try await slow.openCount.wait { $0 == 0 }
        #expect(waiting.openCount == 0)
    }

    @Test func `who releases the card waits until it is closed`() async throws {
        defer { routes.shutDown() }
        let card = GatedCard(name: "card")
        let route = route(card)
        route.use()
        await route.opened()
        #expect(card.openCount.value == 1)
        await route.release()
        #expect(route.openCount == 0)
        try await card.openCount.wait { $0 == 0 }
        try await told.wait { $0.map(\.kind) == [.cardOpened, .cardClosed] }
    }

    @Test func `a card that is taken away in the middle of a tick is closed behind it`() async throws {
        defer { routes.shutDown() }
        let card = GatedCard(name: "card")
        let route = route(card)
        route.use()
        await route.opened()
        let countInTick = route.filter.withCard { _ in
            route.end()
            return card.openCount.value
        }
        #expect(countInTick == 1)
        try await card.openCount.wait { $0 == 0 }
        #expect(route.filter.withCard { _ in true } == nil)
        await route.release()
        #expect(route.openCount == 0)
    }

    @Test func `a card that goes away is replaced without anybody asking`() async throws {
        defer { routes.shutDown() }
        let wanted = FaultyCard([ScriptedFault(.unplug, at: MonotonicClock.current + .seconds(1))])
        let route = route(wanted, fallbacks: [NullCard(name: "spare")])
        var graph = Graph()
        try graph.connect(SilenceFilter(format: format), to: route.filter)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        let driver = TimerDriver(runner, priority: nil)
        route.use()
        try driver.start()
        defer { driver.stop() }
        try await told.wait { events in
            events.contains { if case .changed(let change) = $0.kind { change.to == "spare" } else { false } }
        }
        // A machine that does much else may run a card dry.
        let kinds = told.value.map(\.kind).filter { if case .xrun = $0 { false } else { true } }
        #expect(kinds.prefix(3) == [.cardOpened, .cardLost, .fallback(wanted: "faulty")])
        await route.release()
        #expect(route.openCount == 0)
    }

    @Test func `four tasks use, replace and release a card that plays, and nothing stays open`() async throws {
        let cards = (0..<3).map { GatedCard(name: "card \($0)") }
        let route = route(cards[0], fallbacks: [cards[1]])
        var graph = Graph()
        try graph.connect(SilenceFilter(format: format), to: route.filter)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        let driver = TimerDriver(runner, tickDuration: .milliseconds(1), priority: nil)
        try driver.start()
        await withTaskGroup { group in
            for number in 0..<4 {
                group.addTask {
                    for round in 0..<100 {
                        route.use()
                        switch (number + round) % 3 {
                        case 0: await route.opened()
                        // Another thread may ask for another card meanwhile.
                        case 1: try? await route.setCard(cards[round % 3])
                        default: route.setFallbacks([cards[round % 3]])
                        }
                        await route.release()
                    }
                }
            }
        }
        driver.stop()
        routes.shutDown()
        for card in cards { try await card.openCount.wait { $0 == 0 } }
        #expect(!route.isInUse)
    }
}
