import MediaEngine
import Testing

@testable import media_tool

/// What stands for speech where there is no file.
@Suite struct SpeechSignalTests {
    @Test(arguments: [8000, 16_000, 48_000]) func `the signal has the level and the pauses of speech`(rate: Int) throws
    {
        let samples = SpeechSignal.samples(AudioFormat(sampleRate: rate))
        #expect(samples.count == SpeechSignal.seconds * rate)
        var level = SpeechLevel()
        var activity = VoiceActivity()
        var activeCount = 0
        let block = rate / 100
        for start in stride(from: 0, to: samples.count, by: block) {
            let span = samples.span.extracting(start..<start + block)
            level.process(span)
            if activity.process(span) { activeCount += 1 }
        }
        #expect(abs(try #require(level.speechLevel).value + 26) < 3)
        let noise = try #require(level.noiseLevel)
        #expect(noise.value < -46, "\(noise)")
        #expect((0.5...0.95).contains(Double(activeCount * block) / Double(samples.count)))
        #expect(samples.count { abs(Int($0)) == 32767 } == 0)
    }

    @Test func `it has a pitch, and most of its power below 1 kHz as voices have`() {
        let rate = 8000
        let samples = SpeechSignal.samples(AudioFormat(sampleRate: rate))
        var low = 0.0
        var (power, lowPower) = (0.0, 0.0)
        for sample in samples {
            low += (Double(sample) - low) * 0.54
            power += Double(sample) * Double(sample)
            lowPower += low * low
        }
        #expect(lowPower / power > 0.5)
        // The voice repeats itself after 7 to 10 ms.
        let voiced = samples.indices.dropFirst(400).dropLast(400).filter { $0 % 80 == 0 }
        let periodic = voiced.count { start in
            func product(_ lag: Int) -> Double {
                (0..<160).reduce(0.0) { $0 + Double(samples[start + $1]) * Double(samples[start + $1 + lag]) }
            }
            let energy = product(0)
            return energy > 1e6 && (56...84).contains { product($0) > 0.6 * energy }
        }
        #expect(periodic > voiced.count / 4)
    }

    @Test func `it is the same each time, and in each channel`() {
        let mono = SpeechSignal.samples(AudioFormat(sampleRate: 8000))
        let stereo = SpeechSignal.samples(AudioFormat(sampleRate: 8000, channelCount: 2))
        #expect(mono == SpeechSignal.samples(AudioFormat(sampleRate: 8000)))
        #expect(stereo.count == 2 * mono.count)
        #expect(stereo.indices.allSatisfy { stereo[$0] == mono[$0 / 2] })
    }
}
