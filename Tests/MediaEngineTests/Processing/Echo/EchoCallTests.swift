@testable import MediaEngine
import MediaEngineTesting
import Synchronization
import Testing

/// The echo of a call's own card, in virtual time.
@Suite struct EchoCallTests {
    /// A call on a card in a room, and the other side, which speaks and hears.
    private func run(_ voice: VoiceProcessingConfiguration, seconds: Int) async throws -> (LegReport, Decibels) {
        let (left, right) = MemoryLink.pair()
        let engine = try CallEngine(.virtual())
        let card = RoomCard()
        try await engine.setCard(card, .playback)
        try await engine.setCard(card, .capture)
        let format = AudioFormat(sampleRate: 16000)
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        calling.source = .samples(try EchoRig.speech(Double(seconds)), format)
        calling.sink = .none
        calling.agreement.codec = "L16"
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.agreement.remote = left.localAddress
        called.agreement.codec = "L16"
        called.stream.voiceProcessing = voice
        let calls = try await engine.makeCalls([calling, called])
        try engine.advance(by: .seconds(seconds))
        let report = calls[1].report()
        let level = calls[1].sentLevel.rms
        try await calls[1].end()
        #expect(try !engine.drawing(asDOT: false).contains("echo canceller"))
        return (report, level)
    }

    @Test func `the far end does not hear itself`() async throws {
        let (report, level) = try await run(VoiceProcessingConfiguration(), seconds: 12)
        let echo = try #require(report.echo)
        #expect(echo.erleDb >= 25)
        #expect(try #require(echo.delayMs) >= 40)
        #expect(echo.tailMs == 100)
        #expect(level.value < -50)

        let ticks = CallReport.Ticks(TickStatistics())
        let metrics = CallReport(codec: "L16", mode: .virtual, seconds: 12, legs: [report], ticks: ticks).openMetrics
        try OpenMetricsGrammar.check(metrics)
        let labels = "{leg=\"\(report.name)\",codec=\"L16\"}"
        #expect(metrics.contains("media_echo_return_loss_enhancement_db\(labels) \(echo.erleDb)\n"))
        #expect(metrics.contains("media_echo_delay_seconds\(labels) "))
        #expect(metrics.contains("media_echo_realignments_total\(labels) \(echo.realignments)\n"))
    }

    @Test func `without a canceller it does`() async throws {
        var voice = VoiceProcessingConfiguration()
        voice.echoCancelling = .off
        let (report, level) = try await run(voice, seconds: 3)
        #expect(report.echo == nil)
        #expect(level.value > -45)
    }

    @Test func `a name that is not registered is refused`() async throws {
        var voice = VoiceProcessingConfiguration()
        voice.processor = "nothing"
        let error = await #expect(throws: EngineError.self) { _ = try await run(voice, seconds: 1) }
        #expect(error?.description.contains("built-in") == true)
    }

    @Test func `calls on one card share one canceller, which goes with the last`() async throws {
        let engine = try CallEngine(.virtual())
        try await engine.setCard(NullCard(), .playback)
        try await engine.setCard(NullCard(), .capture)
        let calls = try await engine.makeCalls(
            (0..<2).map { _ in
                let (left, right) = MemoryLink.pair()
                var call = CallConfiguration(network: .link(left, local: left.localAddress))
                call.agreement.remote = right.localAddress
                return call
            }
        )
        func cancellerCount() -> Int { engine.core.state.withLock { $0.sections.sharedVoices.count } }
        #expect(cancellerCount() == 1)
        try await calls[0].end()
        #expect(cancellerCount() == 1)
        try engine.advance(by: .milliseconds(100))
        try await calls[1].end()
        #expect(cancellerCount() == 0)
    }
}

/// A card with a loudspeaker and a microphone in one room.
private final class RoomCard: SoundCard {
    let description = CardDescription(
        id: CardID("builtin:room"),
        name: "room",
        backend: "built-in",
        directions: .duplex
    )
    private let room = Room()

    func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        PacedEndpoint(direction, configuration, sound: room)
    }
}

private final class Room: PacedSound {
    private struct Inside {
        let path: AcousticPath
        var waiting = [Int16](repeating: 0, count: 1920)
    }

    private let inside: Mutex<Inside>

    init() {
        var configuration = AcousticPathConfiguration()
        configuration.sampleRate = 48000
        configuration.gain = Decibels(-10)
        inside = Mutex(Inside(path: AcousticPath(configuration)))
    }

    func play(_ samples: Span<Int16>) {
        var heard = [Int16](repeating: 0, count: samples.count)
        inside.withLock { inside in
            var microphone = heard.mutableSpan
            inside.path.process(played: samples, near: [Int16]().span, into: &microphone)
            inside.waiting += heard
        }
    }

    func record(into samples: inout MutableSpan<Int16>, count: Int) {
        let heard = inside.withLock { inside in
            let heard = Array(inside.waiting.prefix(count))
            inside.waiting.removeFirst(heard.count)
            return heard
        }
        for index in 0..<count { samples[index] = index < heard.count ? heard[index] : 0 }
    }
}
