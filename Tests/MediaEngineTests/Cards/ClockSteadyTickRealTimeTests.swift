import CAllocationCounter
import CallBasics
import MediaEngineTesting
import TestSupport
import Testing

@testable import MediaEngine

/// Ticks neither allocate nor lock while clocks are followed, and in every fault of a card.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: allocation_counter_is_active() != 0, "the thread sanitizer has replaced the allocator")
)
struct ClockSteadyTickRealTimeTests {
    @Test func `cards that drift, run dry and stall`() throws {
        let format = AudioFormat(sampleRate: 48_000)
        let script = [
            // In the warm-up: the first of each has the runtime make what it makes once.
            ScriptedFault(.xrun, at: .zero + .milliseconds(1005)),
            ScriptedFault(.stall(.milliseconds(50)), at: .zero + .milliseconds(2000)),
            ScriptedFault(.xrun, at: .zero + .milliseconds(4005)),
            ScriptedFault(.stall(.milliseconds(50)), at: .zero + .milliseconds(6000)),
            ScriptedFault(.xrun, at: .zero + .milliseconds(8005)),
        ]
        let card = FaultyCard(script, driftPPM: 300)
        let rig = try CardRig()
        let playback = rig.route(.playback, card)
        let capture = rig.route(.capture, card)
        var graph = Graph()
        try graph.connect(CountingSource(format: format), to: playback.filter)
        try graph.connect(capture.filter, to: CollectingSink(format: format))
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        let counts = try TickingThread.count(
            tick: { runner.tick(at: .zero + .milliseconds(10 * $0)) },
            control: { _ in runner.drainEvents { _ in } }
        )
        #expect(counts == TickingThread.Counts())
        #expect(playback.statistics.xruns == 3 && capture.statistics.xruns == 3)
        #expect(playback.statistics.correctionPPM < -200)
    }
}
