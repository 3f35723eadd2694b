import MediaEngine
import Testing

/// Ticks that follow a real PCM over a sound server.
@Suite(.enabled(if: hasVirtualCards, "run under Scripts/virtual-cards"), .serialized, .tags(.device, .realtime))
struct CardPacerTests {
    @Test func `calls tick at the call card's pace, and by the clock once another card is in its place`() async throws {
        var configuration = CallEngineConfiguration()
        configuration.pace = .callCard
        let engine = try CallEngine(configuration)
        defer { engine.shutDown() }
        try engine.setPlaybackDevice("alsa:AU")
        try engine.setCaptureDevice("alsa:AU_mic")
        let call = try engine.makeCall(CallConfiguration(network: .udp(local: .loopback(port: 0))))
        try await Task.sleep(for: .milliseconds(1000))
        let paced = engine.tickStatistics.count
        #expect(paced > 50 && paced < 150, "\(paced) ticks in a second")
        try engine.setCaptureDevice("null")
        try await Task.sleep(for: .milliseconds(500))
        let byClock = engine.tickStatistics.count - paced
        #expect(byClock > 25 && byClock < 90, "\(byClock) ticks in half a second")
        try call.end()
    }
}
