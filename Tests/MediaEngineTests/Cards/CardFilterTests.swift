import CallBasics
import MediaEngineTesting
import Testing

@testable import MediaEngine

private let format = AudioFormat(sampleRate: 48_000)
private let configuration = CardConfiguration(format: format)

private func ms(_ milliseconds: Int) -> MediaTime { .zero + .milliseconds(milliseconds) }

/// Both directions of a card in one graph, by hand.
private struct DuplexRig {
    let playback: CardRoute
    let capture: CardRoute
    let heard = CollectingSink(format: format)
    let rig: CardRig

    init(_ card: any SoundCard, isUsed: Bool = true) throws {
        rig = try CardRig()
        playback = rig.route(.playback, card, configuration, isUsed: isUsed)
        capture = rig.route(.capture, card, configuration, isUsed: isUsed)
        try rig.connect([(CountingSource(format: format), playback.filter), (capture.filter, heard)])
    }

    var statistics: [CardStatistics] { [playback.statistics, capture.statistics] }
}

@Suite struct CardFilterTests {
    @Test func `a null card takes and gives every frame without a fault`() throws {
        let duplex = try DuplexRig(NullCard())
        duplex.rig.driver.run(ticks: 1000)
        let (played, recorded) = (duplex.playback.statistics, duplex.capture.statistics)
        #expect(played.frames == 480_000 && played.xruns == 0 && played.framesLost == 0 && played.stalls == 0)
        // Two ticks pass until a block and half a block in reserve are there.
        #expect(recorded.frames == 998 * 480 && recorded.xruns == 0 && recorded.framesLost == 0)
        #expect(recorded.latencyFrames <= 960 && played.latencyFrames == 960)
    }

    @Test func `an xrun costs what was queued, is counted once, and sound goes on`() throws {
        let duplex = try DuplexRig(FaultyCard([ScriptedFault(.xrun, at: ms(1005))]))
        duplex.rig.driver.run(ticks: 300)
        let (played, recorded) = (duplex.playback.statistics, duplex.capture.statistics)
        #expect(played.xruns == 1 && played.framesLost == 480 && played.frames == 300 * 480)
        #expect(recorded.xruns == 1 && recorded.framesLost > 0 && recorded.stalls == 0)
        let told = duplex.rig.told().map(\.kind)
        #expect(told.contains(.xrun(lostFrameCount: 480)) && told.contains(.xrun(lostFrameCount: recorded.framesLost)))
    }

    @Test func `sleep is counted apart from xruns`() throws {
        let duplex = try DuplexRig(FaultyCard([ScriptedFault(.suspend, at: ms(500))]))
        duplex.rig.driver.run(ticks: 100)
        #expect(duplex.playback.statistics.suspends == 1 && duplex.playback.statistics.xruns == 0)
        #expect(duplex.capture.statistics.suspends == 1 && duplex.capture.statistics.xruns == 0)
    }

    @Test func `a stall is noticed after 100 ms, and dropped sound is counted`() throws {
        let duplex = try DuplexRig(FaultyCard([ScriptedFault(.stall(.milliseconds(400)), at: ms(1000))]))
        duplex.rig.driver.run(ticks: 109)
        #expect(duplex.playback.statistics.stalls == 0)
        duplex.rig.driver.run(ticks: 1)
        #expect(duplex.playback.statistics.stalls == 1)
        duplex.rig.driver.run(ticks: 90)
        let played = duplex.playback.statistics
        #expect(played.stalls == 1 && played.xruns == 0)
        #expect(played.framesLost == 40 * 480 && played.frames == 160 * 480)
        #expect(duplex.capture.statistics.stalls == 1)
    }

    @Test func `a card that stands for 3 s is opened again`() throws {
        let duplex = try DuplexRig(FaultyCard([ScriptedFault(.stall(.seconds(20)), at: ms(1000))]))
        duplex.rig.driver.run(ticks: 399)
        #expect(duplex.playback.statistics.disappearances == 0)
        duplex.rig.driver.run(ticks: 1)
        #expect(duplex.playback.statistics.disappearances == 1 && duplex.playback.statistics.reopenings == 0)
        duplex.rig.driver.run(ticks: 1)
        #expect(duplex.playback.statistics.reopenings == 1)
        duplex.rig.driver.run(ticks: 199)
        for statistics in duplex.statistics {
            #expect(statistics.stalls == 1 && statistics.disappearances == 1 && statistics.reopenings == 1)
        }
    }

    @Test func `a card that is pulled out and comes back is used again`() throws {
        let script = [ScriptedFault(.unplug, at: ms(1000)), ScriptedFault(.comeBack, at: ms(3000))]
        let duplex = try DuplexRig(FaultyCard(script))
        duplex.rig.driver.run(ticks: 600)
        for statistics in duplex.statistics {
            #expect(statistics.disappearances == 1 && statistics.reopenings == 1)
            // Attempts follow each other by 100 ms, 200 ms … 1.6 s, so the card is found at the latest 1.6 s later.
            #expect(statistics.framesWithoutCard >= 200 * 480 && statistics.framesWithoutCard <= 360 * 480)
        }
        let played = duplex.playback.statistics
        #expect(played.frames + played.framesWithoutCard == 600 * 480 && played.framesLost == 0)
        #expect(duplex.playback.lastError == nil)
        let told = duplex.rig.told().filter { $0.direction == .playback }.map(\.kind)
        #expect(told == [.cardOpened, .cardLost, .cardBack])
        #expect(duplex.heard.count == 600 * 480)
    }

    @Test func `which ticks had a card is known afterwards`() throws {
        let script = [ScriptedFault(.unplug, at: ms(1000)), ScriptedFault(.comeBack, at: ms(3000))]
        let duplex = try DuplexRig(FaultyCard(script))
        let filter = duplex.playback.filter
        duplex.rig.driver.run(ticks: 200)
        #expect(filter.hadCard(at: ms(0)) && filter.hadCard(at: ms(990)))
        #expect(!filter.hadCard(at: ms(1000)) && !filter.hadCard(at: ms(1990)))
        duplex.rig.driver.run(ticks: 400)
        #expect(filter.hadCard(at: ms(990)) && filter.hadCard(at: ms(5990)))
        #expect(!filter.hadCard(at: ms(1000)) && !filter.hadCard(at: ms(2990)))
    }

    @Test func `nothing has a card that nobody uses`() throws {
        let duplex = try DuplexRig(NullCard(), isUsed: false)
        duplex.rig.driver.run(ticks: 10)
        #expect(!duplex.playback.filter.hadCard(at: ms(0)) && !duplex.capture.filter.hadCard(at: ms(90)))
    }

    @Test(arguments: [20_000, -20_000]) func `a clock that no correction can follow shows in the counters`(ppm: Int)
        throws
    {
        let duplex = try DuplexRig(FaultyCard(driftPPM: ppm))
        duplex.rig.driver.run(ticks: 2000)
        let (played, recorded) = (duplex.playback.statistics, duplex.capture.statistics)
        if ppm > 0 {
            #expect(played.xruns > 3 && recorded.xruns == 0 && recorded.framesLost > 4800)
        } else {
            #expect(played.xruns == 0 && played.framesLost > 4800 && played.shortages > 3 && recorded.shortages > 3)
        }
    }

    @Test func `the same script gives the same numbers`() throws {
        let script = [
            ScriptedFault(.stall(.milliseconds(35)), at: ms(333)), ScriptedFault(.xrun, at: ms(701)),
            ScriptedFault(.unplug, at: ms(1500)), ScriptedFault(.comeBack, at: ms(1600)),
        ]
        func run() throws -> ([CardStatistics], [CardRouteEvent.Kind]) {
            let duplex = try DuplexRig(FaultyCard(script, driftPPM: 137))
            duplex.rig.driver.run(ticks: 500)
            return (duplex.statistics, duplex.rig.told().map(\.kind))
        }
        let (first, second) = (try run(), try run())
        #expect(first.0 == second.0 && first.1 == second.1)
    }

    @Test func `a card lets nothing through before it is used, nor after it is released`() async throws {
        let duplex = try DuplexRig(NullCard(), isUsed: false)
        duplex.rig.driver.run(ticks: 50)
        #expect(duplex.playback.statistics == CardStatistics() && duplex.playback.openCount == 0)
        duplex.playback.use()
        duplex.capture.use()
        duplex.rig.driver.run(ticks: 50)
        #expect(duplex.playback.statistics.frames == 50 * 480)
        #expect(duplex.capture.statistics.frames == 48 * 480)
        #expect(duplex.capture.statistics.xruns == 0)
        await duplex.playback.release()
        duplex.rig.driver.run(ticks: 50)
        #expect(duplex.playback.statistics.frames == 50 * 480 && duplex.playback.openCount == 0)
        duplex.playback.use()
        duplex.rig.driver.run(ticks: 50)
        #expect(duplex.playback.statistics.frames == 100 * 480)
        #expect(duplex.playback.statistics.xruns == 0)
    }

    @Test func `two loopback cards hear each other after the delay`() throws {
        let (one, other) = LoopbackCard.pair(delay: .milliseconds(20))
        let rig = try CardRig()
        let playback = rig.route(.playback, one, configuration)
        let capture = rig.route(.capture, other, configuration)
        let heard = CollectingSink(format: format)
        try rig.connect([(CountingSource(format: format), playback.filter), (capture.filter, heard)])
        rig.driver.run(ticks: 20)
        let collected = heard.collected
        let start = try #require(collected.firstIndex { $0 != 0 })
        // Sample 0 is a zero; two ticks of the filter's own and 20 ms on the way.
        #expect(start == 2 * 480 + 960 + 1)
        let sent = (0..<collected.count - start).map { Int16($0 + 1) }
        #expect(Array(collected[start...]) == sent)
        let stereo = CardConfiguration(format: AudioFormat(sampleRate: 48_000, channelCount: 2))
        #expect(throws: CardError.self) { try one.open(.playback, stereo, at: .zero) }
    }

    @Test func `who begins to speak late is heard after the delay, and the next may speak otherwise`() throws {
        let (one, other) = LoopbackCard.pair(delay: .milliseconds(20))
        do {
            let capture = try other.open(.capture, configuration, at: .zero)
            var block = [Int16](repeating: 0, count: 480)
            var heard: [Int16] = []
            func listen(at milliseconds: Int64) {
                var samples = block.mutableSpan
                let count = capture.read(into: &samples, at: .zero + .milliseconds(milliseconds)).frameCount
                heard += block.prefix(count)
            }
            for tick in 0..<100 { listen(at: Int64(tick) * 10) }
            let playback = try one.open(.playback, configuration, at: .zero + .seconds(1))
            heard = []
            for tick in 100..<110 {
                _ = playback.write([Int16](repeating: 7, count: 480).span, at: .zero + .milliseconds(Int64(tick) * 10))
                listen(at: Int64(tick) * 10)
            }
            #expect(heard.firstIndex(of: 7) == 960)
        }
        let stereo = CardConfiguration(format: AudioFormat(sampleRate: 48_000, channelCount: 2))
        _ = try one.open(.playback, stereo, at: .zero)
    }

    @Test func `a file card records one file and plays into another`() throws {
        try TestFiles.withTemporaryPath { output in
            let input = TestFiles.fixture("wav/pcm_s16le.wav")
            let stereo = AudioFormat(sampleRate: 8000, channelCount: 2)
            let card = FileCard(capturePath: input, playbackPath: output)
            let rig = try CardRig()
            let capture = rig.route(.capture, card, CardConfiguration(format: stereo))
            let playback = rig.route(.playback, card, CardConfiguration(format: stereo))
            try rig.connect([(capture.filter, playback.filter)])
            rig.driver.run(ticks: 10)
            try card.finish()
            let played = try WAVFile.read(output).1
            let expected = try WAVFile.read(input).1
            #expect(played.count == 10 * 160)
            #expect(Array(played[2 * 160..<2 * 160 + expected.count]) == expected)
            #expect(throws: CardError.self) { try FileCard().open(.capture, configuration, at: .zero) }
            let missing = FileCard(capturePath: "/no/such.wav")
            #expect(throws: CardError.self) { try missing.open(.capture, configuration, at: .zero) }
        }
    }
}
