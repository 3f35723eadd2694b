import Foundation
import Testing

@testable import MediaEngine

@Suite struct TimeStretcherTests {
    /// Sound in memory of its own, with room to grow.
    private final class Sound {
        let samples: UnsafeMutablePointer<Int16>
        var count: Int

        init(_ count: Int, _ value: (Int) -> Double) {
            samples = .allocate(capacity: count * 2)
            samples.initialize(repeating: 0, count: count * 2)
            for index in 0..<count { samples[index] = Int16(value(index).rounded()) }
            self.count = count
        }

        deinit { samples.deallocate() }

        /// The largest difference of neighbours.
        var largestStep: Int {
            (1..<count).map { abs(Int(samples[$0]) - Int(samples[$0 - 1])) }.max() ?? 0
        }
    }

    private static func tone(_ frequency: Double, _ rate: Int, count: Int) -> Sound {
        Sound(count) { 8000 * sin(2 * .pi * frequency * Double($0) / Double(rate)) }
    }

    @Test(arguments: [8000, 16000, 48000], [110.0, 200, 395, 1000])
    func `a tone keeps its shape, shorter and longer`(_ rate: Int, _ frequency: Double) {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: rate))
        let count = rate / 20
        let sound = Self.tone(frequency, rate, count: count)
        let natural = sound.largestStep
        let removed = stretcher.shorten(sound.samples, start: rate / 100, end: count, limit: count, isUrgent: false)
        sound.count -= removed
        #expect(removed >= rate / 400)
        #expect(sound.largestStep <= natural * 11 / 10 + 1)
        let longer = Self.tone(frequency, rate, count: count)
        let added = stretcher.lengthen(longer.samples, start: rate / 50, end: count, limit: count, isUrgent: false)
        longer.count += added
        #expect(added >= rate / 200)
        #expect(longer.largestStep <= natural * 11 / 10 + 1)
    }

    @Test func `a cut is a whole number of periods`() {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: 8000))
        let sound = Self.tone(200, 8000, count: 400)
        let removed = stretcher.shorten(sound.samples, start: 0, end: 400, limit: 400, isUrgent: false)
        #expect(removed % 40 == 0, "200 Hz has 40 samples a period, and \(removed) were removed")
        #expect(removed > 0)
    }

    @Test func `no more is cut than allowed`() {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: 8000))
        let sound = Self.tone(200, 8000, count: 400)
        #expect(stretcher.shorten(sound.samples, start: 0, end: 400, limit: 50, isUrgent: false) == 40)
        #expect(stretcher.shorten(sound.samples, start: 0, end: 360, limit: 19, isUrgent: false) == 0)
        #expect(stretcher.shorten(sound.samples, start: 0, end: 90, limit: 80, isUrgent: false) == 0)
    }

    @Test func `noise is left alone, unless it is urgent and there is a likeness`() {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: 8000))
        var generator = SeededGenerator(seed: 5)
        let noise = Sound(4000) { _ in Double(Int(generator.next() % 16000) - 8000) }
        var refused = 0
        for start in stride(from: 0, to: 3000, by: 100) {
            let cut = stretcher.shorten(noise.samples, start: start, end: start + 300, limit: 100, isUrgent: false)
            refused += cut == 0 ? 1 : 0
        }
        #expect(refused == 30)
    }

    @Test func `a pause may be cut anywhere`() {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: 8000))
        var generator = SeededGenerator(seed: 5)
        let hiss = Sound(400) { _ in Double(Int(generator.next() % 40) - 20) }
        #expect(stretcher.shorten(hiss.samples, start: 0, end: 400, limit: 100, isUrgent: false) == 100)
        #expect(stretcher.lengthen(hiss.samples, start: 150, end: 300, limit: 100, isUrgent: false) == 100)
    }

    @Test func `what is repeated is what was heard, and what follows is complete`() {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: 8000))
        // A ramp on top of a tone: every sample is its own.
        let sound = Sound(480) { 4000 * sin(2 * .pi * Double($0) / 80) + Double($0) }
        let before = (0..<480).map { sound.samples[$0] }
        let added = stretcher.lengthen(sound.samples, start: 160, end: 480, limit: 120, isUrgent: false)
        #expect(added == 80)
        let after = (0..<480 + added).map { sound.samples[$0] }
        #expect(Array(after[..<160]) == Array(before[..<160]))
        // Behind the seam of 5 ms comes what lay a period earlier, then all of the rest.
        #expect(Array(after[200..<240]) == Array(before[120..<160]))
        #expect(Array(after[240...]) == Array(before[160...]))
    }

    @Test func `channels stay together`() {
        let stretcher = TimeStretcher(format: AudioFormat(sampleRate: 8000, channelCount: 2))
        let sound = Sound(800) { index in (index % 2 == 0 ? 8000 : -4000) * sin(2 * .pi * Double(index / 2) / 40) }
        let removed = stretcher.shorten(sound.samples, start: 0, end: 400, limit: 400, isUrgent: false)
        #expect(removed > 0)
        for frame in 0..<400 - removed {
            let (left, right) = (Int(sound.samples[frame * 2]), Int(sound.samples[frame * 2 + 1]))
            #expect(abs(left + 2 * right) <= 3)
        }
    }
}
