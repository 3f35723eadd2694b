import MediaEngine
import Testing

/// Ticks that follow a real PCM over a sound server.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .tags(.device, .realtime),
    .enabled(if: hasVirtualCards, "run under Scripts/virtual-cards")
)
struct CardPacerRealTimeTests {
    @Test func `calls tick at the call card's pace, and by the clock once another card is in its place`() async throws {
        var configuration = CallEngineConfiguration()
        configuration.pace = .callCard
        let engine = try CallEngine(configuration)
        defer { engine.shutDown() }
        try engine.setPlaybackDevice("alsa:AU")
        try engine.setCaptureDevice("alsa:AU_mic")
        let ticks = TickCounter()
        var counted = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        counted.stream.codec = "PCMU"
        counted.source = .silence
        counted.sink = .filter(ticks)
        _ = try engine.makeCalls([CallConfiguration(network: .udp(local: .loopback(port: 0))), counted])
        // However late ticks are, 100 of them stand for a second, less what is caught up with at once.
        #expect(try await ticks.wait(ticks: 100) > .milliseconds(500))
        try engine.setCaptureDevice("null")
        #expect(try await ticks.wait(ticks: 100) > .milliseconds(500))
    }
}
