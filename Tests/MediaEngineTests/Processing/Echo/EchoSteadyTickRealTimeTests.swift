import CAllocationCounter
@testable import MediaEngine
import MediaEngineTesting
import TestSupport
import Testing

/// Processing a voice neither allocates nor locks, also while it realigns and begins anew.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: allocation_counter_is_active() != 0, "the thread sanitizer has replaced the allocator")
)
struct EchoSteadyTickRealTimeTests {
    @Test(arguments: [16000, 48000]) func `an echo canceller with everything on`(rate: Int) throws {
        let format = AudioFormat(sampleRate: rate)
        let speech = try EchoRig.speech(14)
        var far = [Int16](repeating: 0, count: 14 * rate)
        for index in far.indices { far[index] = speech[index * 16000 / rate] }
        var room = AcousticPathConfiguration()
        room.sampleRate = rate
        var heard = far
        var microphone = heard.mutableSpan
        AcousticPath(room).process(played: far.span, near: [Int16]().span, into: &microphone)
        // A millisecond is missing in the middle, as after an xrun.
        heard.removeSubrange(6 * rate..<6 * rate + rate / 1000)
        var voice = VoiceProcessingConfiguration()
        voice.echoCancelling = .on
        voice.suppressesNoise = true
        voice.controlsGain = true
        let processor = try BuiltInVoiceProcessing().makeProcessor(voice, format: format)
        let canceller = EchoCancellerFilter(processor, name: "built-in", format: format)
        let sink = CollectingSink(format: format, capacity: rate)
        var graph = Graph()
        try graph.connect(SamplePlayerFilter(heard, format: format), to: canceller)
        try graph.connect(SamplePlayerFilter(far, format: format), to: canceller, input: 1)
        try graph.connect(canceller, to: sink)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        let counts = try TickingThread.count(
            tick: { runner.tick(at: MediaTime.zero + .milliseconds(10) * $0) },
            control: { tick in
                if tick == 800 { runner.send(.lostFrames(rate / 1000), to: canceller) }
                if tick == 900 { runner.send(.reset, to: canceller) }
                runner.drainEvents { _ in }
            }
        )
        #expect(counts == TickingThread.Counts())
        let statistics = try #require(canceller.statistics)
        #expect(statistics.realignmentCount >= 1)
        #expect(statistics.restartCount >= 2)
    }
}
