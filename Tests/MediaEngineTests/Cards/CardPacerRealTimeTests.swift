import MediaEngine
import TestSupport
import Testing

/// Ticks that follow a real PCM over a sound server.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .tags(.device, .realtime),
    .onSteadyMachine,
    .enabled(if: SoundServer.isThere, "run under Scripts/virtual-cards")
)
struct CardPacerRealTimeTests {
    @Test func `calls tick at the call card's pace, and by the clock once another card is in its place`() async throws {
        var configuration = CallEngineConfiguration()
        configuration.pace = .callCard
        let engine = try CallEngine(configuration)
        try await engine.setCard(named: "alsa:AU", .playback)
        try await engine.setCard(named: "alsa:AU_mic", .capture)
        let ticks = TickCounter()
        var counted = CallConfiguration(network: .udp(local: .loopback(port: 0)))
        counted.agreement.codec = "PCMU"
        counted.source = .silence
        counted.sink = .filter(ticks)
        _ = try await engine.makeCalls([CallConfiguration(network: .udp(local: .loopback(port: 0))), counted])
        // However late ticks are, 100 of them stand for a second, less what is caught up with at once.
        #expect(try await ticks.wait(ticks: 100) > .milliseconds(500))
        try await engine.setCard(named: "null", .capture)
        #expect(try await ticks.wait(ticks: 100) > .milliseconds(500))
        await engine.shutDown()
    }
}
