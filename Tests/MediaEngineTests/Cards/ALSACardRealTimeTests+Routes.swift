import MediaEngine
import Testing

/// Changes of card on real PCMs: part of one suite, for tests that ran beside each other would hear each other.
extension ALSACardRealTimeTests {
    @Test func `a running call moves to another card and back`() async throws {
        let engine = try CallEngine()
        try await engine.setCard(named: "alsa:AU", .playback)
        try await engine.setCard(named: "alsa:AU_mic", .capture)
        let (left, right) = MemoryLink.pair()
        let format = AudioFormat(sampleRate: 8000)
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        calling.agreement.codec = "PCMU"
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.agreement.remote = left.localAddress
        called.agreement.codec = "PCMU"
        called.source = .samples([Int16](repeating: 8000, count: 8000 * 20), format)
        let ticks = TickCounter(format: format)
        called.sink = .filter(ticks)
        let calls = try await engine.makeCalls([calling, called])
        var frames = 0
        for (name, changeCount) in [("alsa:AQ", 1), ("alsa:AU", 2)] {
            #expect(try await ticks.wait { (engine.cardStatistics(.playback)?.frames ?? 0) > frames + 24_000 })
            try await engine.setCard(named: name, .playback)
            #expect(try await ticks.wait { engine.routeChanges.count == changeCount })
            frames = engine.cardStatistics(.playback)?.frames ?? 0
        }
        #expect(try await ticks.wait { (engine.cardStatistics(.playback)?.frames ?? 0) > frames + 24_000 })
        let changes = engine.routeChanges
        #expect(changes.map(\.to) == ["AQ", "AU"])
        for change in changes {
            #expect(change.latencyBeforeMs > 0 && change.latencyBeforeMs < 200, "\(change.line)")
            let after = try #require(change.latencyAfterMs)
            #expect(after > 0 && after < 200, "\(change.line)")
        }
        #expect(calls[0].report().received.lost == 0)
        let cards = engine.cardReports
        #expect(cards.map(\.name) == ["AU_mic", "AU"])
        await engine.shutDown()
        let told = await cardEvents(engine).map(\.kind)
        #expect(changes.allSatisfy { told.contains(.changed($0)) })
    }
}
