@testable import MediaEngine
import Testing

@Suite struct SpeechLevelTests {
    private func measure(_ signal: [Int16], rate: Int = 8000) -> SpeechLevel {
        var meter = SpeechLevel()
        for start in stride(from: 0, through: signal.count - rate / 100, by: rate / 100) {
            meter.process(Array(signal[start..<start + rate / 100]).span)
        }
        return meter
    }

    /// Eight bytes of ITU-T G.711, table 5, again and again: the 1 kHz sine that 0 dBm0 is defined by.
    private static let milliwatt = {
        let codes: [UInt8] = [0x1E, 0x0B, 0x0B, 0x1E, 0x9E, 0x8B, 0x8B, 0x9E]
        let payload = (0..<16_000).map { codes[$0 % 8] }
        var samples = [Int16](repeating: 0, count: payload.count)
        var target = samples.mutableSpan
        G711.decodeMuLaw(payload.span, into: &target)
        return samples
    }()

    @Test func `the digital milliwatt of G.711 is at 0 dBm0`() throws {
        let silence = [Int16](repeating: 0, count: 8000)
        let level = measure(silence + Self.milliwatt)
        let speech = try #require(level.speechLevel)
        // Where µ-law overloads, at 3.17 dBm0, lies 0.04 dB below the full scale of 16 bits.
        #expect(abs(speech.value - Decibels.zeroDBm0.value) < 0.05)
        #expect(level.noiseLevel == .silence)
    }

    @Test func `nothing is known before half a second of each was heard`() {
        let silence = [Int16](repeating: 0, count: 8000)
        #expect(measure([]).noiseLevel == nil)
        #expect(measure(Array(silence.prefix(3900))).noiseLevel == nil)
        let short = measure(silence + Self.milliwatt.prefix(3900))
        #expect(short.speechLevel == nil && short.noiseLevel != nil)
    }

    @Test(arguments: [1.0, 0.5, 0.1]) func `speech and the noise around it are measured apart`(factor: Double) throws {
        var generator = SeededGenerator(seed: 1)
        let quiet = [Int16](repeating: 0, count: 16_000)
        let clean = try quiet + EchoRig.speech(8) + quiet
        // White noise of an even distribution: its power is a third of its peak's.
        let noisy = clean.map { Int16(clamping: Int(Double($0) * factor) + Int((generator.nextUnit() * 2 - 1) * 60)) }
        let level = measure(noisy, rate: 16_000)
        let noise = Decibels(amplitude: 60 / 32768 * (2.0 / 3).squareRoot())
        #expect(abs(try #require(level.noiseLevel).value - noise.value) < 1)
        let full = try #require(measure(clean, rate: 16_000).speechLevel).value
        #expect(abs(try #require(level.speechLevel).value - full - Decibels(amplitude: factor).value) < 1.5)
    }
}
