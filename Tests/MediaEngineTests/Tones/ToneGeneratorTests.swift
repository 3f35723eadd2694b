import Foundation
@testable import MediaEngine
import Testing

struct ToneGeneratorTests {
    static func render(_ generator: ToneGenerator, _ frames: Int, blockFrames: Int = 80) -> [Int16] {
        var output: [Int16] = []
        while output.count < frames * generator.format.channelCount {
            let count = min(blockFrames, frames - output.count / generator.format.channelCount)
            output += render(generator, block: [Int16](repeating: 0, count: count * generator.format.channelCount))
        }
        return output
    }

    static func render(_ generator: ToneGenerator, block: [Int16]) -> [Int16] {
        var samples = block
        var span = samples.mutableSpan
        generator.render(into: &span)
        return samples
    }

    static func mono(_ rate: Int = 8000) -> ToneGenerator {
        ToneGenerator(format: AudioFormat(sampleRate: rate))
    }

    private static func tone(_ frequencies: [Double], level: Double, rate: Int) throws -> PreparedTone {
        try PreparedTone(ToneSpec(frequencies: frequencies, level: Decibels(level)), sampleRate: rate)
    }

    @Test(arguments: DTMFDigit.all, [8000, 16_000, 44_100, 48_000])
    func `every digit is heard by the detector at every rate`(digit: DTMFDigit, rate: Int) throws {
        let generator = Self.mono(rate)
        generator.play(digit, for: .milliseconds(50), gap: .milliseconds(50), delay: rate / 50)
        generator.play(digit, for: .milliseconds(100), gap: .milliseconds(50))
        let samples = Self.render(generator, rate / 2)
        let found = try ToneTestSignal.detections(in: samples, rate: rate).filter { $0.phase == .ended }
        try #require(found.map(\.digit) == [digit, digit])
        #expect(abs(Double(found[0].startFrame) / Double(rate) - 0.020) < 0.010)
        #expect(abs(Double(found[1].startFrame) / Double(rate) - 0.120) < 0.010)
        #expect(abs(Double(found[1].frameCount) / Double(rate) - 0.100) < 0.010)
    }

    /// -10 dBm0 is -13.17 dB below the loudest sine (ITU-T G.711: 0 dBm0 is 3.17 dB below it).
    @Test(arguments: [8000, 44_100, 48_000])
    func `both tones have their frequency and level, and nothing else sounds`(rate: Int) {
        let generator = Self.mono(rate)
        generator.play(ToneTestSignal.digit("6"), for: .seconds(1), gap: .zero)
        let samples = [Int16](Self.render(generator, rate)[(rate / 10)..<(rate / 10 * 9)])
        let full = 32767.0 * 32767 / 2
        let low = ToneTestSignal.power(of: 770, in: samples, rate: rate)
        let high = ToneTestSignal.power(of: 1477, in: samples, rate: rate)
        #expect(abs(10 * log10(low / full) + 13.17) < 0.02)
        #expect(abs(10 * log10(high / full) + 13.17) < 0.02)
        let total = samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(samples.count)
        // What remains is quantisation: 1/12 of a squared step, 84 dB below.
        #expect(abs(total - low - high) / total < 0.001)
        for frequency in [707.0, 1540, 2247, 2954, 3500, 2310, 3724, 63] {
            let level = 10 * log10(ToneTestSignal.power(of: frequency, in: samples, rate: rate) / low)
            #expect(level < -70, "\(frequency)")
        }
    }

    @Test func `a sine has less than -70 dB of harmonics`() throws {
        let generator = Self.mono(48_000)
        generator.play(try Self.tone([1000], level: 0, rate: 48_000))
        var samples = Self.render(generator, 48_000)
        samples.removeFirst(4800)
        let fundamental = ToneTestSignal.power(of: 1000, in: samples, rate: 48_000)
        let harmonics = (2...20).map { ToneTestSignal.power(of: Double($0) * 1000, in: samples, rate: 48_000) }
        #expect(10 * log10(harmonics.reduce(0, +) / fundamental) < -70)
    }

    @Test(arguments: [1, 50, 100, 1000])
    func `a digit lasts exactly as long as asked`(milliseconds: Int) {
        for rate in [8000, 44_100] {
            let generator = Self.mono(rate)
            generator.play(ToneTestSignal.digit("5"), for: .milliseconds(milliseconds), gap: .zero, delay: 37, tag: 9)
            let wanted = rate * milliseconds / 1000
            let samples = Self.render(generator, block: [Int16](repeating: 0, count: wanted + 100))
            #expect(samples[..<37].allSatisfy { $0 == 0 })
            #expect(samples[(37 + wanted)...].allSatisfy { $0 == 0 })
            let began = generator.nextNotice()
            let ended = generator.nextNotice()
            #expect(began?.kind == .digitStarted && began?.frameOffset == 37 && began?.tag == 9)
            #expect(ended?.kind == .digitEnded && ended?.frameOffset == 37 + wanted)
            #expect(generator.nextNotice() == nil)
            #expect(!generator.isActive)
        }
    }

    @Test func `digits, gaps and pauses follow each other to the frame`() {
        let generator = Self.mono()
        generator.play(ToneTestSignal.digit("1"), for: .milliseconds(60), gap: .milliseconds(40))
        generator.pause(for: .milliseconds(200))
        generator.play(ToneTestSignal.digit("2"), for: .milliseconds(60), gap: .milliseconds(40))
        _ = Self.render(generator, block: [Int16](repeating: 0, count: 8000))
        var offsets: [Int] = []
        while let notice = generator.nextNotice() { offsets.append(notice.frameOffset) }
        #expect(offsets == [0, 480, 2400, 2880])
    }

    /// ms held, ms sounded: the end fades over 5 ms after the release, and never before 50 ms.
    @Test(arguments: [(0, 50), (10, 50), (30, 50), (50, 55), (100, 105), (7000, 7005)])
    func `a held key sounds until released, and at least the minimum`(held: Int, sounded: Int) {
        let generator = Self.mono()
        generator.start(ToneTestSignal.digit("8"))
        _ = Self.render(generator, held * 8)
        generator.stop()
        let rest = Self.render(generator, 1600)
        let end = (rest.lastIndex { $0 != 0 } ?? -1) + 1
        #expect(abs(held * 8 + end - sounded * 8) <= 4)
    }

    @Test func `a key released before its turn still sounds the minimum`() throws {
        let generator = Self.mono()
        generator.play(ToneTestSignal.digit("1"), for: .milliseconds(100), gap: .milliseconds(50))
        generator.start(ToneTestSignal.digit("2"))
        generator.stop(ToneTestSignal.digit("3"))
        generator.stop(ToneTestSignal.digit("2"))
        let found = try ToneTestSignal.detections(in: Self.render(generator, 4000), rate: 8000)
        #expect(found.filter { $0.phase == .ended }.map(\.digit.description) == ["1", "2"])
        #expect(!generator.isActive)
    }

    @Test func `another key releases the one that is held`() throws {
        let generator = Self.mono()
        generator.start(ToneTestSignal.digit("1"))
        _ = Self.render(generator, 800)
        generator.start(ToneTestSignal.digit("2"))
        _ = Self.render(generator, 1600)
        var kinds: [ToneNotice.Kind] = []
        while let notice = generator.nextNotice() { kinds.append(notice.kind) }
        #expect(kinds == [.digitStarted, .digitEnded, .digitStarted])
        generator.stop()
        #expect(Self.render(generator, 200)[60...].allSatisfy { $0 == 0 })
    }

    /// The steepest that both sines and the ramp can be, and little more.
    @Test func `nothing clicks at starts, ends, releases and changes`() throws {
        let rate = 48_000
        let generator = Self.mono(rate)
        let peak = 32767 * pow(10, -13.17 / 20)
        let slope = peak * 2 * .pi * (941 + 1633) / Double(rate)
        let bound = slope + 2 * peak * .pi / 2 / (0.005 * Double(rate))
        generator.start(ToneTestSignal.digit("D"))
        var samples = Self.render(generator, 5001, blockFrames: 480)
        generator.silence()
        samples += Self.render(generator, 3000, blockFrames: 480)
        generator.play(ToneTestSignal.digit("1"), for: .milliseconds(33), gap: .milliseconds(10))
        samples += Self.render(generator, 3000, blockFrames: 480)
        generator.play(try Self.tone([350, 440], level: -10, rate: rate))
        samples += Self.render(generator, 3333, blockFrames: 480)
        generator.play(try Self.tone([480, 620], level: -10, rate: rate))
        samples += Self.render(generator, 3333, blockFrames: 480)
        generator.stopTone()
        samples += Self.render(generator, 1000, blockFrames: 480)
        for (left, right) in zip(samples, samples.dropFirst()) {
            #expect(abs(Double(left) - Double(right)) <= bound)
        }
        #expect(samples.suffix(500).allSatisfy { $0 == 0 })
    }

    @Test func `the output does not depend on the block size`() throws {
        let outputs = try [80, 480, 1, 137, 960, 5000].map { blockFrames in
            let generator = ToneGenerator(format: AudioFormat(sampleRate: 48_000, channelCount: 2))
            for digit in DTMFDigit.all { generator.play(digit, for: .milliseconds(43), gap: .milliseconds(11)) }
            let spec = try #require(try CallProgressTones.of(country: "JP")[.ringback])
            generator.play(try PreparedTone(spec, sampleRate: 48_000), delay: 333)
            return Self.render(generator, 40_000, blockFrames: blockFrames)
        }
        for output in outputs { #expect(output == outputs[0]) }
    }

    @Test func `sound is added to what is there, in every channel, and limited`() {
        let digit = ToneTestSignal.digit("3")
        let alone = Self.mono()
        alone.play(digit, for: .milliseconds(100), gap: .zero)
        let tone = Self.render(alone, 800)
        let loud = ToneGenerator(format: AudioFormat(sampleRate: 8000, channelCount: 2))
        loud.play(digit, for: .milliseconds(100), gap: .zero)
        var block = [Int16](repeating: 0, count: 1600)
        for frame in 0..<800 {
            block[frame * 2] = 30_000
            block[frame * 2 + 1] = -30_000
        }
        let mixed = Self.render(loud, block: block)
        for frame in 0..<800 {
            #expect(mixed[frame * 2] == Int16(clamping: 30_000 + Int(tone[frame])))
            #expect(mixed[frame * 2 + 1] == Int16(clamping: -30_000 + Int(tone[frame])))
        }
    }

    @Test func `a full queue refuses`() {
        let generator = ToneGenerator(format: AudioFormat(sampleRate: 8000), queueCapacity: 2)
        let digit = ToneTestSignal.digit("1")
        #expect(generator.play(digit, for: .milliseconds(50), gap: .zero))
        #expect(generator.pause(for: .seconds(2)))
        #expect(!generator.play(digit, for: .milliseconds(50), gap: .zero))
        #expect(!generator.start(digit))
        generator.silence()
        #expect(!generator.isActive)
    }

    @Test func `a repeated cadence ends by itself`() throws {
        let cadence = Cadence([.milliseconds(100), .milliseconds(50)])
        let spec = ToneSpec(frequencies: [425], cadence: cadence, repeatCount: 3)
        #expect(spec.duration == .milliseconds(450))
        let generator = Self.mono()
        generator.play(try PreparedTone(spec, sampleRate: 8000), tag: 4)
        let samples = Self.render(generator, block: [Int16](repeating: 0, count: 5000))
        for round in 0..<3 {
            let start = round * 1200
            #expect(samples[(start + 100)..<(start + 700)].contains { abs(Int($0)) > 5000 })
            #expect(samples[(start + 800)..<(start + 1200)].allSatisfy { $0 == 0 })
        }
        #expect(generator.nextNotice()?.kind == .toneStarted)
        let end = generator.nextNotice()
        #expect(end?.kind == .toneEnded && end?.frameOffset == 3600 && end?.tag == 4)
    }
}
