import MediaEngine
import Testing

/// Ticks that follow a real PCM over a sound server.
@Suite(.enabled(if: hasVirtualCards, "run under Scripts/virtual-cards"), .serialized, .tags(.device, .realtime))
struct CardPacerRealTimeTests {
    @Test func `calls tick at the call card's pace, and by the clock once another card is in its place`() async throws {
        var configuration = CallEngineConfiguration()
        configuration.pace = .callCard
        let engine = try CallEngine(configuration)
        defer { engine.shutDown() }
        try engine.setPlaybackDevice("alsa:AU")
        try engine.setCaptureDevice("alsa:AU_mic")
        let call = try engine.makeCall(CallConfiguration(network: .udp(local: .loopback(port: 0))))
        let paced = try await ticksPerSecond(of: engine, during: .seconds(1))
        #expect((50...150).contains(paced))
        try engine.setCaptureDevice("null")
        let byClock = try await ticksPerSecond(of: engine, during: .milliseconds(500))
        #expect((50...150).contains(byClock))
        try call.end()
    }

    /// Ticks in each second of about `duration`, however long this sleeps.
    private func ticksPerSecond(of engine: CallEngine, during duration: Duration) async throws -> Double {
        let (begin, before) = (ContinuousClock.now, engine.tickStatistics.count)
        try await Task.sleep(for: duration)
        let (end, after) = (ContinuousClock.now, engine.tickStatistics.count)
        return Double(after - before) / ((end - begin) / .seconds(1))
    }
}
