import Glibc
@testable import MediaEngine
import MediaEngineTesting
import TestSupport
import Testing

/// Noise suppression, gain control, voice activity, and the processor around them.
@Suite struct VoiceProcessingTests {
    private static func level(_ samples: ArraySlice<Int16>) -> Double {
        let mean = EchoRig.energy(samples) / Double(samples.count) / (32768 * 32768)
        return 10 * log10(2 * mean + 1e-12)
    }

    private static func noise(_ seconds: Double, amplitude: Int16, seed: UInt64 = 1) -> [Int16] {
        var random = SeededGenerator(seed: seed)
        return (0..<Int(seconds * 16000)).map { _ in Int16.random(in: -amplitude...amplitude, using: &random) }
    }

    private static func sum(_ left: [Int16], _ right: [Int16]) -> [Int16] {
        zip(left, right).map { pair in Int16(clamping: Int(pair.0) + Int(pair.1)) }
    }

    private static func run(_ processor: any VoiceProcessor, _ input: [Int16], played: [Int16] = [], rate: Int = 16000)
        -> [Int16]
    {
        let count = rate / 100
        var output: [Int16] = []
        let silence = [Int16](repeating: 0, count: count)
        for start in stride(from: 0, through: input.count - count, by: count) {
            let block = Array(input[start..<start + count])
            let reference = played.isEmpty ? silence : Array(played[start..<start + count])
            var result = silence
            var samples = result.mutableSpan
            processor.process(captured: block.span, played: reference.span, into: &samples)
            output += result
        }
        return output
    }

    private static func processor(
        rate: Int = 16000,
        _ change: (inout VoiceProcessingConfiguration) -> Void
    ) throws -> any VoiceProcessor {
        var configuration = VoiceProcessingConfiguration()
        configuration.echoCancelling = .off
        change(&configuration)
        return try BuiltInVoiceProcessing().makeProcessor(configuration, format: AudioFormat(sampleRate: rate))
    }

    @Test func `steady noise is 10 dB softer, and speech in it is not`() throws {
        let noise = Self.noise(6, amplitude: 600)
        let quiet = Self.run(try Self.processor { $0.suppressesNoise = true }, noise)
        #expect(Self.level(quiet[48000...]) < Self.level(noise[48000...]) - 10)
        let speech = try EchoRig.speech(6)
        let noisy = Self.sum(speech, noise)
        let clear = Self.run(try Self.processor { $0.suppressesNoise = true }, noisy)
        #expect(abs(Self.level(clear[48000...]) - Self.level(speech[48000...])) < 1.5)
    }

    @Test(arguments: [-18.0, -12, 0, 6])
    func `speech of any level is sent at the same level`(gain: Double) throws {
        let speech = try EchoRig.speech(10, gain: pow(10, gain / 20) * 0.6)
        let sent = Self.run(try Self.processor { $0.controlsGain = true }, speech)
        let level = Self.level(sent[80000...])
        #expect(level > -28 && level < -18)
        #expect(sent.allSatisfy { abs(Int($0)) <= 30000 })
    }

    @Test func `gain control does not raise noise in pauses`() throws {
        let noise = Self.noise(8, amplitude: 60)
        let sent = Self.run(try Self.processor { $0.controlsGain = true }, noise)
        #expect(abs(Self.level(sent[64000...]) - Self.level(noise[64000...])) < 1)
    }

    @Test(arguments: [Int16(3), 60, 600])
    func `speech is told from the noise around it`(amplitude: Int16) throws {
        let noise = Self.noise(8, amplitude: amplitude)
        let speech = try EchoRig.speech(4)
        let silence = [Int16](repeating: 0, count: 32000)
        let signal = Self.sum(silence + speech + silence, noise)
        var activity = VoiceActivity()
        var active: [Bool] = []
        for start in stride(from: 0, to: signal.count, by: 160) {
            let block = Array(signal[start..<start + 160])
            active.append(activity.process(block.span))
        }
        #expect(!active[50..<200].contains(true))
        let spoken = active[200..<600].filter { $0 }
        #expect(spoken.count > 280)
        #expect(!active[640...].contains(true))
    }

    @Test(arguments: thorough([8000, 16000, 44100, 48000], quick: [16000, 44100]))
    func `the processor cancels at any rate`(rate: Int) throws {
        let speech = try EchoRig.speech(10)
        var far = [Int16](repeating: 0, count: 10 * rate)
        let resampler = Resampler(from: 16000, to: rate, skipsDelay: true)
        var target = far.mutableSpan
        _ = resampler.process(speech.span, into: &target)
        var room = AcousticPathConfiguration()
        room.sampleRate = rate
        room.delay = .milliseconds(60)
        let path = AcousticPath(room)
        var heard = far
        var microphone = heard.mutableSpan
        path.process(played: far.span, near: [Int16]().span, into: &microphone)
        let processor = try Self.processor(rate: rate) { $0.echoCancelling = .on }
        let sent = Self.run(processor, heard, played: far, rate: rate)
        #expect(Self.level(heard[(7 * rate)...]) - Self.level(sent[(7 * rate)...]) > 30)
        let statistics = try #require(processor.echoStatistics)
        let delay = try #require(statistics.delay)
        #expect(abs(delay.milliseconds - 60) < 3)
        #expect(processor.latency >= .milliseconds(10) && processor.latency <= .milliseconds(17))
    }

    @Test func `WebRTC is there with its trait, and only then`() throws {
        let registry = PluginRegistry.standard()
        #if WebRTC
        let speech = try EchoRig.speech(10)
        let path = AcousticPath()
        var heard = speech
        var microphone = heard.mutableSpan
        path.process(played: speech.span, near: [Int16]().span, into: &microphone)
        var voice = VoiceProcessingConfiguration()
        voice.echoCancelling = .on
        let webrtc = try registry.voiceProcessing(named: "webrtc")
        let processor = try webrtc.makeProcessor(voice, format: AudioFormat(sampleRate: 16000))
        let sent = Self.run(processor, heard, played: speech)
        #expect(Self.level(heard[112_000...]) - Self.level(sent[112_000...]) > 30)
        #expect(try #require(processor.echoStatistics).returnLossEnhancement.value > 20)
        #else
        #expect(throws: VoiceProcessingError.self) { _ = try registry.voiceProcessing(named: "webrtc") }
        #endif
    }

    @Test func `stereo is refused, and an unknown name says which there are`() throws {
        let stereo = #expect(throws: VoiceProcessingError.self) {
            _ = try BuiltInVoiceProcessing().makeProcessor(
                VoiceProcessingConfiguration(),
                format: AudioFormat(sampleRate: 48000, channelCount: 2)
            )
        }
        #expect(stereo?.message.contains("mono") == true)
        let registry = PluginRegistry.standard()
        #expect(try registry.voiceProcessing(named: "Built-in").name == "built-in")
        let unknown = #expect(throws: VoiceProcessingError.self) {
            _ = try registry.voiceProcessing(named: "nothing")
        }
        #expect(unknown?.message.contains("built-in") == true)
    }
}
