import Foundation
@testable import MediaEngine
import TestSupport
import Testing

/// Minutes of sound that comes close to digits and holds none; `Scripts/talk-off` does it with half an hour of speech.
///
/// All is made here: harmonics of a voice under moving resonances, and chords of the tempered scale. It is harder than
/// life: nothing masks anything, and pitches stand still for long.
@Suite struct DTMFTalkOffTests {
    /// Pitches up to `top` Hz, gliding by `glide` (a share), trembling by `vibrato` (a share).
    @Test(arguments: [(350.0, 0.5, 0.0), (500, 0.05, 0), (700, 0.2, 0.02)])
    func `a minute and a half of a voice holds no digit`(top: Double, glide: Double, vibrato: Double) throws {
        for seed in UInt64(1)...thorough(3, quick: 1) {
            let samples = Self.voice(seed: seed, seconds: 30, top: top, glide: glide, vibrato: vibrato)
            #expect(try ToneTestSignal.digits(in: samples, rate: 8000) == "", "seed \(seed)")
        }
    }

    @Test(arguments: [(2, 4), (3, 4), (4, 2), (6, 1), (8, 4)])
    func `a minute of music holds no digit`(harmonicCount: Int, voiceCount: Int) throws {
        for seed in UInt64(1)...thorough(2, quick: 1) {
            let samples = Self.music(seed: seed, seconds: 30, harmonicCount: harmonicCount, voiceCount: voiceCount)
            #expect(try ToneTestSignal.digits(in: samples, rate: 8000) == "", "seed \(seed)")
        }
    }

    /// What the two tests above would be worth nothing without.
    @Test func `a digit between two words is heard`() throws {
        var samples = Self.voice(seed: 1, seconds: 2, top: 350, glide: 0.5, vibrato: 0)
        var digit = ToneTestSignal(rate: 8000)
        digit.silence(40)
        digit.add(.init(digit: ToneTestSignal.digit("5")), 60)
        digit.silence(40)
        samples += digit.int16 + Self.voice(seed: 2, seconds: 2, top: 350, glide: 0.5, vibrato: 0)
        #expect(try ToneTestSignal.digits(in: samples, rate: 8000) == "5")
    }

    private static func voice(seed: UInt64, seconds: Int, top: Double, glide: Double, vibrato: Double) -> [Int16] {
        var random = ToneTestRandom(seed: seed)
        var samples: [Int16] = []
        while samples.count < seconds * 8000 {
            let length = Int((0.05 + 0.4 * random.uniform()) * 8000)
            guard random.uniform() > 0.2 else {
                let gain = 300 + 3000 * random.uniform()
                samples += (0..<length).map { _ in Int16(clamping: Int(random.gaussian() * gain)) }
                continue
            }
            let pitch = 80 + (top - 80) * random.uniform()
            let slide = (random.uniform() - 0.5) * glide
            let tremble = vibrato * random.uniform()
            let first = 300 + 700 * random.uniform()
            let second = 900 + 1500 * random.uniform()
            let width = 60 + 100 * random.uniform()
            var gains: [Double] = []
            var phase = 0.0
            for index in 0..<length {
                let time = Double(index) / Double(length)
                let frequency = pitch * (1 + slide * time) * (1 + tremble * sin(Double(index) * 0.004))
                phase += frequency / 8000
                if index % 40 == 0 {
                    gains = (1...max(1, Int(3600 / frequency))).map { harmonic in
                        let hertz = Double(harmonic) * frequency
                        let (a, b) = ((hertz - first) / width, (hertz - second) / width)
                        return 1 / (1 + a * a) + 0.7 / (1 + b * b) + 0.3 / Double(harmonic)
                    }
                }
                samples.append(Int16(clamping: Int(6000 * sin(.pi * time) * harmonics(gains, at: phase))))
            }
        }
        return samples
    }

    private static func music(seed: UInt64, seconds: Int, harmonicCount: Int, voiceCount: Int) -> [Int16] {
        var random = ToneTestRandom(seed: seed)
        var samples: [Int16] = []
        while samples.count < seconds * 8000 {
            let length = Int((0.08 + 0.5 * random.uniform()) * 8000)
            let decay = random.uniform() * 8
            var chord = [Double](repeating: 0, count: length)
            for _ in 0...Int(random.uniform() * Double(voiceCount) * 0.999) {
                let note = 440 * pow(2, Double(Int(random.uniform() * 40) - 24) / 12)
                let gains = (1...harmonicCount).filter { Double($0) * note < 3800 }
                    .map { (0.3 + 0.7 * random.uniform()) / Double($0) }
                for index in 0..<length { chord[index] += harmonics(gains, at: note * Double(index) / 8000) }
            }
            let gain = 3000 + 5000 * random.uniform()
            for index in 0..<length {
                let envelope =
                    min(1, Double(index) / 80, Double(length - index) / 80) * exp(-decay * Double(index) / 8000)
                samples.append(Int16(clamping: Int(chord[index] * gain * envelope)))
            }
        }
        return samples
    }

    /// The sum of sines at 1, 2, 3 … turns of `phase`, by Chebyshev's recurrence, which needs one sine and one cosine.
    private static func harmonics(_ gains: [Double], at phase: Double) -> Double {
        let angle = 2 * .pi * (phase - phase.rounded())
        let twice = 2 * cos(angle)
        var (before, now) = (0.0, sin(angle))
        var sum = 0.0
        for gain in gains {
            sum += gain * now
            (before, now) = (now, twice * now - before)
        }
        return sum
    }
}
