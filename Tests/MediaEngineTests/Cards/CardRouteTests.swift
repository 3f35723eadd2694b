import CallBasics
import MediaEngineTesting
import Testing

@testable import MediaEngine

private let format = AudioFormat(sampleRate: 48_000)
private let configuration = CardConfiguration(format: format)

private func faults(_ script: (ScriptedFault.Kind, Double)...) -> [ScriptedFault] {
    script.map { ScriptedFault($0.0, at: .zero + .milliseconds(Int64($0.1 * 1000))) }
}

/// A duplex card that one program has in one direction at a time, and that counts how often it is open.
private final class ExclusiveCard: SoundCard, @unchecked Sendable {
    let description = CardDescription(id: "test:one", name: "exclusive", backend: "test", directions: [.playback])
    private let inner = NullCard()
    private weak var endpoint: (any CardEndpoint)?

    func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        guard direction == .playback else { throw CardError(.absent, "It has no microphone.") }
        guard endpoint == nil else { throw CardError(.busy, "It is open. Close it.") }
        let opened = inner.open(direction, configuration, at: now)
        endpoint = opened
        return opened
    }

    var isOpen: Bool { endpoint != nil }
}

/// Who opens, closes, replaces and tells.
@Suite struct CardRouteTests {
    private let rig: CardRig

    init() throws {
        rig = try CardRig()
    }

    private func play(on routes: CardRoute...) throws {
        try rig.connect(routes.map { (CountingSource(format: format), $0.filter) })
    }

    private func kinds() -> [CardRouteEvent.Kind] { rig.told().map(\.kind) }

    // MARK: Users

    @Test func `the first user opens the card, and the last closes it, though no tick runs any more`() async throws {
        let card = ExclusiveCard()
        let route = rig.route(.playback, card, isUsed: false)
        #expect(!card.isOpen && route.openCount == 0 && kinds().isEmpty)
        route.use()
        route.use()
        #expect(card.isOpen && route.openCount == 1)
        try play(on: route)
        rig.driver.run(ticks: 10)
        await route.release()
        #expect(card.isOpen)
        await route.release()
        #expect(!card.isOpen && route.openCount == 0)
        #expect(kinds() == [.cardOpened, .cardClosed])
        // Nothing is tried or counted for nobody.
        let frames = route.statistics
        rig.driver.run(ticks: 300)
        #expect(route.statistics == frames && !card.isOpen && kinds().isEmpty)
    }

    @Test func `a second direction that does not open leaves nothing of the first behind`() async throws {
        let card = ExclusiveCard()
        let (playback, capture) = (rig.route(.playback, card), rig.route(.capture, card))
        #expect(playback.lastError == nil && capture.lastError?.code == .absent)
        await playback.release()
        await capture.release()
        #expect(!card.isOpen)
        let again = rig.route(.playback, card)
        #expect(again.lastError == nil && card.isOpen)
        await again.release()
    }

    @Test func `a card that is not allowed stays closed for its users, and is opened when it is`() async throws {
        let card = ExclusiveCard()
        let route = rig.route(.playback, card, isUsed: false)
        route.allow(false)
        route.use()
        #expect(!card.isOpen && route.isInUse && kinds().isEmpty)
        try play(on: route)
        rig.driver.run(ticks: 10)
        route.allow(true)
        #expect(card.isOpen)
        rig.driver.run(ticks: 10)
        route.allow(true)
        route.allow(false)
        #expect(!card.isOpen && route.openCount == 0)
        rig.driver.advance(by: .seconds(10))
        #expect(!card.isOpen && kinds() == [.cardOpened, .cardClosed])
        // What a card that is not wanted does not play is no loss.
        #expect(route.statistics.framesWithoutCard == 0)
        await route.release()
        route.allow(true)
        #expect(!card.isOpen)
    }

    // MARK: Busy, lost, back

    @Test func `a card that is busy at first is told, and used once it is free`() throws {
        let route = rig.route(.playback, FaultyCard(faults((.occupy, 0), (.setFree, 2))))
        try play(on: route)
        #expect(route.lastError?.code == .busy)
        rig.driver.advance(by: .seconds(5))
        #expect(route.lastError == nil && route.cardName == "faulty")
        let told = rig.told()
        #expect(told.count == 2)
        guard case .busy(let error) = told[0].kind else { throw wrong(told) }
        #expect(error.code == .busy && told[0].time == .zero)
        #expect(told[1].kind == .cardBack && told[1].time > .zero + .seconds(2))
        let statistics = route.statistics
        #expect(statistics.frames + statistics.framesWithoutCard == 5 * 48_000)
        #expect(statistics.frames > 48_000 && statistics.disappearances == 0)
    }

    @Test func `while the card is busy, another stands in, and the way back is told`() throws {
        let (busy, spare) = (FaultyCard(faults((.occupy, 0), (.setFree, 2))), NullCard(name: "spare"))
        let deaf = FileCard(playbackPath: "/dev/null")
        let route = rig.route(.capture, busy, fallbacks: [deaf, spare])
        try rig.connect([(route.filter, CollectingSink(format: format))])
        #expect(route.cardName == "spare")
        rig.driver.advance(by: .seconds(4))
        #expect(route.cardName == "faulty" && route.openCount == 1)
        let told = rig.told()
        guard case .busy = told.first?.kind else { throw wrong(told) }
        #expect(told.dropFirst().map(\.card) == ["spare", "faulty", "faulty"])
        #expect(told.dropFirst().prefix(2).map(\.kind) == [.fallback(wanted: "faulty"), .cardBack])
        guard case .changed(let change) = told.last?.kind else { throw wrong(told) }
        #expect(change.from == "spare" && change.to == "faulty" && change.cause == .returned)
        #expect(change.latencyBeforeMs == 20 && change.latencyAfterMs == 20 && change.seconds < 3.1)
        #expect(route.statistics.framesWithoutCard == 0)
    }

    @Test func `a card that goes away is replaced in order, and used again when it is back`() throws {
        let wanted = FaultyCard(faults((.unplug, 2), (.comeBack, 6)))
        let broken = FaultyCard(faults((.unplug, 0)))
        let route = rig.route(.playback, wanted, fallbacks: [broken, NullCard(name: "spare")])
        try play(on: route)
        rig.driver.advance(by: .seconds(3))
        #expect(route.cardName == "spare")
        rig.driver.advance(by: .seconds(5))
        #expect(route.cardName == "faulty" && route.openCount == 1)
        let told = rig.told()
        let changes = told.compactMap { if case .changed(let change) = $0.kind { change } else { nil } }
        #expect(changes.map(\.cause) == [.unplugged, .returned])
        #expect(changes.map(\.seconds).map { $0 < 7.1 } == [true, true] && changes[0].seconds < 2.03)
        let others = told.map(\.kind).filter { if case .changed = $0 { false } else { true } }
        #expect(others == [.cardOpened, .cardLost, .fallback(wanted: "faulty"), .cardBack])
    }

    @Test func `an xrun is told with what it cost`() throws {
        let route = rig.route(.playback, FaultyCard(faults((.xrun, 1.005))))
        try play(on: route)
        rig.driver.advance(by: .seconds(2))
        #expect(kinds() == [.cardOpened, .xrun(lostFrameCount: 480)])
    }

    // MARK: Wishes

    @Test func `another card takes over without a gap, and what that did to the latency is told`() async throws {
        let route = rig.route(.playback, NullCard())
        try play(on: route)
        rig.driver.advance(by: .seconds(1))
        try await route.setCard(NullCard(name: "headset"))
        rig.driver.advance(by: .seconds(1))
        #expect(route.cardName == "headset" && route.openCount == 1)
        #expect(route.statistics.frames == 2 * 48_000 && route.statistics.framesLost == 0)
        let change = RouteChange(
            direction: .playback,
            from: "null",
            to: "headset",
            cause: .asked,
            seconds: 1,
            latencyBeforeMs: 20,
            latencyAfterMs: 20
        )
        #expect(kinds() == [.cardOpened, .cardOpened, .changed(change)])
    }

    @Test func `a card that does not open leaves the one before in use`() async throws {
        let route = rig.route(.playback, NullCard())
        try play(on: route)
        let error = await #expect(throws: CardError.self) { try await route.setCard(FaultyCard(faults((.occupy, 0)))) }
        #expect(error?.code == .busy)
        rig.driver.advance(by: .seconds(3))
        #expect(route.cardName == "null" && route.openCount == 1)
        #expect(route.statistics.frames == 3 * 48_000 && kinds() == [.cardOpened])
    }

    @Test func `whoever asks for a card while another stands in keeps it`() async throws {
        let wanted = FaultyCard(faults((.unplug, 1), (.comeBack, 3)))
        let spare = NullCard(name: "spare")
        let route = rig.route(.playback, wanted, fallbacks: [spare])
        try play(on: route)
        rig.driver.advance(by: .seconds(2))
        #expect(route.cardName == "spare")
        try await route.setCard(spare)
        rig.driver.advance(by: .seconds(4))
        #expect(route.cardName == "spare" && route.openCount == 1)
    }

    @Test func `without users a card is only noted, and opened for the next`() async throws {
        let route = rig.route(.playback, NullCard(), isUsed: false)
        let card = ExclusiveCard()
        try await route.setCard(card)
        #expect(!card.isOpen && route.cardName == "exclusive")
        route.use()
        #expect(card.isOpen)
        await route.release()
    }

    @Test func `cards that may stand in are tried as soon as they are named`() throws {
        let route = rig.route(.playback, FaultyCard(faults((.unplug, 0))))
        try play(on: route)
        rig.driver.advance(by: .milliseconds(50))
        route.setFallbacks([NullCard(name: "spare")])
        #expect(route.cardName == "spare" && route.openCount == 1)
    }

    private func wrong(_ told: [CardRouteEvent]) -> CardError { CardError(.deviceFailure, "told was \(told)") }
}
