@testable import MediaEngine
import MediaEngineTesting
import Testing

/// Cards that change while calls run.
@Suite struct RouteTests {
    /// A call on the cards of an engine, and one at its other end that says a constant.
    private struct Fixture {
        let engine: CallEngine
        let call: Call
        let other: Call
        let heard = CallCollector()

        init(playback: any SoundCard, capture: any SoundCard, fallbacks: [any SoundCard] = []) async throws {
            engine = try CallEngine(.virtual())
            try await engine.setCard(playback, .playback)
            try await engine.setCard(capture, .capture)
            if !fallbacks.isEmpty { engine.setFallbackCards(fallbacks) }
            let format = try engine.registry.codec(named: "L16/48000").description.format
            let (left, right) = MemoryLink.pair()
            var calling = CallConfiguration(network: .link(left, local: left.localAddress))
            calling.agreement.remote = right.localAddress
            calling.agreement.codec = "L16/48000"
            calling.agreement.codec?.payloadType = 96
            var called = CallConfiguration(network: .link(right, local: right.localAddress))
            called.agreement.remote = left.localAddress
            called.agreement.codec = "L16/48000"
            called.agreement.codec?.payloadType = 96
            let count = format.sampleRate * 30
            called.source = .samples([Int16](repeating: 9000, count: count), format)
            called.sink = .filter(heard.filter(format))
            let calls = try await engine.makeCalls([calling, called])
            (call, other) = (calls[0], calls[1])
        }

        func changes() async -> [RouteChange] {
            await engine.shutDown()
            return await cardEvents(engine).map(\.kind).compactMap { kind in
                if case .changed(let change) = kind { change } else { nil }
            }
        }
    }

    private func faults(_ script: (ScriptedFault.Kind, Double)...) -> [ScriptedFault] {
        script.map { ScriptedFault($0.0, at: .zero + .milliseconds(Int64($0.1 * 1000))) }
    }

    @Test func `another card takes over, and latency before and after is told`() async throws {
        let fixture = try await Fixture(playback: NullCard(), capture: NullCard())
        try fixture.engine.advance(by: .seconds(2))
        try await fixture.engine.setCard(FaultyCard(driftPPM: 200), .playback)
        try await fixture.engine.setCard(NullCard(name: "headset"), .capture)
        try fixture.engine.advance(by: .seconds(2))
        #expect(fixture.engine.cardName(.playback) == "faulty" && fixture.engine.cardName(.capture) == "headset")
        let known = fixture.engine.routeChanges
        #expect(known.count == 2)
        for change in known {
            #expect(change.cause == .asked && change.from == "null" && change.seconds == 2)
            #expect(change.latencyBeforeMs == 20 && change.latencyAfterMs == 20, "\(change.line)")
        }
        let report = fixture.call.report()
        #expect(report.received.lost == 0 && report.received.concealedMs == 0)
        let reports = fixture.engine.cardReports
        #expect(reports.map(\.name) == ["headset", "faulty"] && reports.allSatisfy { $0.xruns == 0 })
        let told = await fixture.changes()
        #expect(told == known)
    }

    @Test func `nothing stale is heard from a card that waited`() async throws {
        // The other end of the cable has been talked into for a second before anybody listens.
        let format = CallEngine.cardFormat
        let (near, far) = LoopbackCard.pair(delay: .milliseconds(20))
        let rig = try CardRig()
        let configuration = CardConfiguration(format: format)
        let mouth = rig.route(.playback, far, configuration)
        let ear = rig.route(.capture, near, configuration, isUsed: false)
        let heard = CollectingSink(format: format)
        try rig.connect([(CountingSource(format: format), mouth.filter), (ear.filter, heard)])
        rig.driver.run(ticks: 100)
        ear.use()
        rig.driver.run(ticks: 100)
        // The number n is said in frame n, modulo 65536: how much later is it heard?
        let lateness = Set(
            heard.collected.enumerated().dropFirst(48_000).filter { $0.element != 0 }.map { index, number in
                (index - Int(UInt16(bitPattern: number)) + 2 * 65_536) % 65_536
            }
        )
        // The cable's 20 ms and the card's 20 ms, and no burst of what was said before.
        #expect(lateness.count == 1 && (lateness.first ?? 0) <= 48 * 40, "\(lateness)")
    }

    @Test func `an unplugged card is replaced in order, and used again when it is back`() async throws {
        let script = faults((.unplug, 2), (.comeBack, 6))
        let (wanted, broken) = (FaultyCard(script), FaultyCard(faults((.unplug, 0))))
        let spare = NullCard(name: "spare")
        let fixture = try await Fixture(playback: wanted, capture: wanted, fallbacks: [broken, spare])
        try fixture.engine.advance(by: .seconds(3))
        #expect(fixture.engine.cardName(.playback) == "spare" && fixture.engine.cardName(.capture) == "spare")
        try fixture.engine.advance(by: .seconds(5))
        #expect(fixture.engine.cardName(.playback) == "faulty" && fixture.engine.cardName(.capture) == "faulty")
        #expect(fixture.call.report().received.lost == 0)
        #expect(fixture.other.report().received.lost == 0)
        let changes = await fixture.changes()
        #expect(changes.map(\.cause) == [.unplugged, .unplugged, .returned, .returned])
        #expect(changes.allSatisfy { $0.latencyBeforeMs == 20 && $0.latencyAfterMs == 20 })
        // The spare takes over within two ticks, and the wanted card within a second of its return.
        #expect(changes.allSatisfy { $0.cause == .unplugged ? $0.seconds < 2.03 : $0.seconds < 7.1 })
    }

    @Test func `what happens to the engine's card is told with its name and its time`() async throws {
        let card = FaultyCard(faults((.xrun, 1.005), (.unplug, 2), (.comeBack, 6)))
        let fixture = try await Fixture(playback: card, capture: NullCard(), fallbacks: [NullCard(name: "spare")])
        try fixture.engine.advance(by: .seconds(9))
        await fixture.engine.shutDown()
        var told: [CardRouteEvent] = []
        for await event in fixture.engine.events {
            if case .card(let event) = event, event.direction == .playback { told.append(event) }
        }
        let (changes, others) = (told.filter { Self.isChange($0) }, told.filter { !Self.isChange($0) })
        #expect(changes.map(\.card) == ["spare", "faulty"])
        #expect(told.allSatisfy { $0.role == .call })
        let lost = others.compactMap { if case .xrun(let lostFrameCount) = $0.kind { lostFrameCount } else { nil } }
        #expect(
            others.map(\.kind) == [
                .cardOpened, .xrun(lostFrameCount: lost.first ?? 0), .cardLost, .fallback(wanted: "faulty"), .cardBack,
                .cardClosed,
            ]
        )
        #expect(lost.allSatisfy { (1...960).contains($0) })
        #expect(others.map(\.card) == ["faulty", "faulty", "faulty", "spare", "faulty", "faulty"])
        let seconds = others.map { Double($0.time.nanoseconds) / 1e9 }
        let expected: [ClosedRange<Double>] = [0...0, 1.005...1.03, 2...2.03, 2...2.03, 6...7.1, 9...9]
        #expect(zip(expected, seconds).allSatisfy { $0.contains($1) }, "\(seconds)")
    }

    private static func isChange(_ event: CardRouteEvent) -> Bool {
        if case .changed = event.kind { true } else { false }
    }

    @Test func `without another card there is silence, and the card is used again when it is back`() async throws {
        let card = FaultyCard(faults((.unplug, 2), (.comeBack, 4)))
        let fixture = try await Fixture(playback: card, capture: NullCard())
        try fixture.engine.advance(by: .seconds(7))
        let statistics = try #require(fixture.engine.cardStatistics(.playback))
        #expect(statistics.disappearances == 1 && statistics.reopenings == 1 && statistics.framesWithoutCard > 0)
        let report = try #require(fixture.engine.cardReports.first { $0.direction == .playback })
        #expect(report.disappearances == 1 && report.reopenings == 1 && report.stalls == 0 && report.suspends == 0)
        #expect(report.withoutCardMs == Double(statistics.framesWithoutCard) / 48)
        #expect(report.line.contains("away 1 times, ") && report.line.hasSuffix(" ms without a card"))
        #expect(fixture.engine.routeChanges.isEmpty)
        #expect(statistics.latencyFrames == 960)
    }

    @Test func `whoever asks for a card during a replacement keeps it`() async throws {
        let wanted = FaultyCard(faults((.unplug, 1), (.comeBack, 3)))
        let fixture = try await Fixture(playback: wanted, capture: NullCard(), fallbacks: [NullCard(name: "spare")])
        try fixture.engine.advance(by: .seconds(2))
        #expect(fixture.engine.cardName(.playback) == "spare")
        try await fixture.engine.setCard(NullCard(name: "chosen"), .playback)
        try fixture.engine.advance(by: .seconds(4))
        #expect(fixture.engine.cardName(.playback) == "chosen")
        #expect(fixture.engine.routeChanges.map(\.cause) == [.unplugged, .asked])
    }

    @Test func `a change that cannot be made leaves the card in use`() async throws {
        let fixture = try await Fixture(playback: NullCard(), capture: NullCard())
        try fixture.engine.advance(by: .seconds(1))
        await #expect(throws: EngineError.self) {
            try await fixture.engine.setCard(FaultyCard(faults((.unplug, 0))), .playback)
        }
        try fixture.engine.advance(by: .seconds(1))
        #expect(fixture.engine.cardName(.playback) == "null" && fixture.engine.routeChanges.isEmpty)
        let statistics = try #require(fixture.engine.cardStatistics(.playback))
        #expect(statistics.frames == 200 * 480)
    }

    @Test func `the report shows cards and changes`() async throws {
        let fixture = try await Fixture(playback: FaultyCard(driftPPM: 120), capture: NullCard())
        try fixture.engine.advance(by: .seconds(20))
        try await fixture.engine.setCard(NullCard(name: "headset"), .capture)
        try fixture.engine.advance(by: .seconds(1))
        var report = CallReport(
            codec: "L16",
            mode: .virtual,
            seconds: 21,
            legs: [fixture.call.report()],
            ticks: CallReport.Ticks(fixture.engine.tickStatistics)
        )
        report.cards = fixture.engine.cardReports
        report.routeChanges = fixture.engine.routeChanges
        let playback = try #require(report.cards.first { $0.direction == .playback })
        let ppm = try #require(playback.ppm)
        #expect(abs(ppm - 120) < 5)
        #expect(report.table.contains("playback on faulty: ") && report.table.contains("clock 1"))
        #expect(report.table.contains("route: capture from null (20.0 ms) to headset (20.0 ms), asked"))

        // Calls may have cards of their own with one name.
        report.cards.append(playback)
        let metrics = report.openMetrics
        try OpenMetricsGrammar.check(metrics)
        #expect(metrics.contains("media_card_clock_ppm{direction=\"playback\",card=\"faulty\"} 1"))
        #expect(metrics.contains("media_card_clock_ppm{direction=\"playback\",card=\"faulty (2)\"} 1"))
        #expect(metrics.contains("media_card_latency_seconds{direction=\"capture\",card=\"headset\"} 0.02\n"))
        #expect(metrics.contains("media_card_xruns_total{direction=\"playback\",card=\"faulty\"} 0\n"))
        #expect(!metrics.contains("media_card_clock_ppm{direction=\"capture\""), "a card without a clock of its own")
    }
}
