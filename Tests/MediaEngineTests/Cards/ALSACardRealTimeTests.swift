import CallBasics
import Foundation
import TestSupport
import Testing

@testable import MediaEngine

private let format = AudioFormat(sampleRate: 48_000)
private let configuration = CardConfiguration(format: format)

/// A sine of 1000 Hz.
private final class Tone: Filter, @unchecked Sendable {
    private var index = 0

    init(format: AudioFormat = format) {
        super.init(FilterDescription(name: "tone", purpose: "1000 Hz", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for frame in 0..<block.frameCount {
            let sample = Int16(10_000 * sin(2 * Double.pi * 1000 * Double(index % 48) / 48_000))
            for channel in 0..<block.channelCount { samples[frame * block.channelCount + channel] = sample }
            index += 1
        }
    }
}

/// Runs cards in real time until `stop`.
private final class LiveRig {
    let runner = GraphRunner()
    private let driver: TimerDriver
    private let routes: CardRoutes
    private let ticks = TickCounter(format: format)
    let told: Watched<[CardRouteEvent]>

    init() throws {
        let told = Watched<[CardRouteEvent]>([])
        self.told = told
        driver = TimerDriver(runner, tickDuration: .milliseconds(10), priority: nil)
        routes = try CardRoutes(clock: { MonotonicClock.current }, isVirtual: false) { event in
            told.update { $0.append(event) }
        }
    }

    deinit {
        stop()
    }

    /// A route to an open PCM.
    func open(
        _ direction: CardDirection,
        _ pcm: String,
        _ configuration: CardConfiguration = configuration
    ) async throws -> CardRoute {
        let route = routes.makeRoute(.call, direction, to: ALSACard(pcm: pcm), configuration)
        route.use()
        await route.opened()
        if let error = route.lastError { throw error }
        return route
    }

    /// Begins to tick.
    func run(_ pairs: [(Filter, Filter)]) throws {
        var graph = Graph()
        for (source, sink) in pairs { try graph.connect(source, to: sink) }
        try graph.connect(SilenceFilter(format: format), to: ticks)
        runner.install(try GraphPlan(graph))
        try driver.start()
    }

    /// Stops ticking, so that what filters hold may be read, and closes the cards.
    func stop() {
        driver.stop()
        routes.shutDown()
    }

    /// Waits until `condition` holds; answers whether it did in time.
    func wait(until condition: () -> Bool) async throws -> Bool { try await ticks.wait(until: condition) }
}

/// The power of `samples` at `frequency`, as a share of all.
private func share(of frequency: Double, in samples: ArraySlice<Int16>) -> Double {
    var (real, imaginary, power) = (0.0, 0.0, 0.0)
    for (index, sample) in samples.enumerated() {
        let angle = 2 * Double.pi * frequency * Double(index) / 48_000
        real += Double(sample) * cos(angle)
        imaginary += Double(sample) * sin(angle)
        power += Double(sample) * Double(sample)
    }
    return power > 0 ? 2 * (real * real + imaginary * imaginary) / (power * Double(samples.count)) : 0
}

/// Needs `Scripts/virtual-cards swift test --filter ALSA`.
@Suite(
    .serialized,
    .timeLimit(.minutes(5)),
    .tags(.device, .realtime),
    .onSteadyMachine,
    .enabled(if: SoundServer.isThere, "run under Scripts/virtual-cards")
)
struct ALSACardRealTimeTests {
    @Test func `what is played is heard`() async throws {
        let rig = try LiveRig()
        let playback = try await rig.open(.playback, "AU")
        let capture = try await rig.open(.capture, "AU_heard")
        let heard = CollectingSink(format: format)
        try rig.run([(Tone(), playback.filter), (capture.filter, heard)])
        #expect(try await rig.wait { playback.statistics.frames > 2 * 48_000 })
        rig.stop()
        // Blocks of ten periods. Where a machine is busy some are missing, but what is there is the tone.
        let samples = heard.collected
        let shares = stride(from: 0, to: samples.count - 480, by: 480).map { samples[$0..<$0 + 480] }
            .filter { block in block.contains { $0.magnitude > 1000 } }
            .map { share(of: 1000, in: $0) }
        let statistics = playback.statistics
        #expect(shares.count > 50, "\(statistics) \(capture.statistics)")
        #expect(shares.count { $0 > 0.99 } > shares.count / 2, "\(statistics) \(capture.statistics)")
        // It may stand still while the machine does.
        #expect(statistics.disappearances == 0)
        #expect(capture.statistics.frames > 24_000)
    }

    @Test func `a stereo card takes a mono stream, and the other way round`() async throws {
        for (pcm, channelCount) in [("AQ", 1), ("AU", 2)] {
            let format = AudioFormat(sampleRate: 48_000, channelCount: channelCount)
            let rig = try LiveRig()
            let playback = try await rig.open(.playback, pcm, CardConfiguration(format: format))
            try rig.run([(Tone(format: format), playback.filter)])
            #expect(try await rig.wait { playback.statistics.frames > 24_000 })
        }
    }

    @Test func `a suspended card is a stall, and playing goes on when it wakes up`() async throws {
        let rig = try LiveRig()
        let playback = try await rig.open(.playback, "AQ")
        try rig.run([(Tone(), playback.filter)])
        #expect(try await rig.wait { playback.statistics.frames > 24_000 })
        try SoundServer.control("suspend-sink", "AQ", "1")
        #expect(try await rig.wait { playback.statistics.stalls == 1 })
        let frames = playback.statistics.frames
        try SoundServer.control("suspend-sink", "AQ", "0")
        #expect(try await rig.wait { playback.statistics.frames > frames + 24_000 })
        #expect(playback.statistics.framesLost > 0)
    }

    @Test func `a card that is taken away comes back by itself`() async throws {
        let rig = try LiveRig()
        let playback = try await rig.open(.playback, "EXTRA")
        try rig.run([(Tone(), playback.filter)])
        #expect(try await rig.wait { playback.statistics.frames > 24_000 })
        let sinks = try SoundServer.sinks()
        for sink in sinks { try sink.unload() }
        #expect(try await rig.wait { playback.statistics.disappearances == 1 })
        #expect(try await rig.wait { playback.lastError != nil })
        for sink in sinks { try sink.load() }
        #expect(try await rig.wait { playback.statistics.reopenings == 1 })
        let frames = playback.statistics.frames
        #expect(try await rig.wait { playback.statistics.frames > frames + 24_000 })
        // A machine that stalls has xruns besides.
        let told = rig.told.value.map(\.kind).filter { if case .xrun = $0 { false } else { true } }
        #expect(told.starts(with: [.cardOpened, .cardLost]) && told.contains(.cardBack))
    }

    @Test func `a sink that is removed while playing does not end the playing, and is found again`() async throws {
        let rig = try LiveRig()
        let playback = try await rig.open(.playback, "EXTRA")
        try rig.run([(Tone(), playback.filter)])
        #expect(try await rig.wait { playback.statistics.frames > 24_000 })
        let sink = try #require(try SoundServer.sinks().first { $0.isNamed("EXTRA") })
        try sink.unload()
        // The stream is moved to another sink, where it goes on, or stands until it is given up.
        let before = playback.statistics.frames
        #expect(
            try await rig.wait {
                let statistics = playback.statistics
                return statistics.frames > before + 24_000 || statistics.disappearances == 1
            }
        )
        try sink.load()
        let after = playback.statistics.frames
        #expect(try await rig.wait { playback.statistics.frames > after + 24_000 })
        #expect(try CardList().card(named: "alsa:EXTRA").description.state == .available)
    }

    @Test func `a PCM that does not exist is an error with a remedy`() throws {
        let error = try #require(throws: CardError.self) {
            try ALSACard(pcm: "no_such_pcm").open(.playback, configuration, at: .zero)
        }
        #expect(error.code == .absent && error.message.contains("no_such_pcm"))
        #expect(throws: CardError.self) { try ALSACard(pcm: "hw:31").open(.capture, configuration, at: .zero) }
    }

    @Test func `a PCM without a clock is paced by the ticks`() throws {
        for pcm in ["null", "clockless"] {
            let rig = try CardRig()
            let playback = rig.route(.playback, ALSACard(pcm: pcm))
            try rig.connect([(CountingSource(format: format), playback.filter)])
            rig.driver.run(ticks: 100)
            #expect(playback.statistics.frames == 48_000 && playback.statistics.xruns == 0)
        }
        let rig = try CardRig()
        let capture = rig.route(.capture, ALSACard(pcm: "null"))
        try rig.connect([(capture.filter, CollectingSink(format: format))])
        rig.driver.run(ticks: 100)
        #expect(capture.statistics.frames == 98 * 480 && capture.statistics.framesLost == 0)
        #expect(!(try ALSACard(pcm: "null").open(.playback, configuration, at: .zero)).isClocked)
    }

    @Test func `the mixer's volume is set and read`() throws {
        let card = ALSACard(pcm: "AU")
        try card.setVolume(0.25, .playback)
        #expect(abs(try #require(try card.volume(.playback)) - 0.25) < 0.01)
        try card.setVolume(1, .playback)
        #expect(abs(try #require(try card.volume(.capture)) - 1) < 0.01)
        #expect(try ALSACard(pcm: "no_such_pcm").volume(.playback) == nil)
    }

    @Test func `the list shows the PCMs and the roles stand for them`() throws {
        let bindings = try CardBindings(environment: ProcessInfo.processInfo.environment)
        let list = try CardList(bindings: bindings)
        #expect(list.cards.contains { $0.description.id == "alsa:AU_heard" })
        #expect(list.callCard.playbackCard.description.id == "alsa:AU")
        #expect(list.callCard.captureCard?.description.id == "alsa:AU_mic")
        #expect(list.ringerCard.playbackCard.description.id == "alsa:AQ")
        _ = try list.callCard.open(.playback, configuration, at: .zero)
    }

    @Test func `a driver can wait for the card`() throws {
        let card = try ALSACard(pcm: "AU").open(.playback, configuration, at: .zero)
        #expect(card.isClocked)
        let block = [Int16](repeating: 0, count: 480)
        var written = 0
        for _ in 0..<200 where written < 24_000 {
            _ = card.wait(timeout: .milliseconds(100))
            written += card.write(block.span, at: MonotonicClock.current).frameCount
        }
        #expect(written >= 24_000)
        #expect(card.frameCount(at: MonotonicClock.current) > 0)
    }
}
