import Foundation
@testable import MediaEngine
import Testing

/// The chirp that measures delay, found in noise, quiet, delayed by fractions and upside down.
@Suite struct ChirpProbeTests {
    private let probe = ChirpProbe(sampleRate: 48000)

    /// A recording of `frameCount` frames with the chirp from `delay` frames on, and noise of `noise` of its peak.
    private func recording(delay: Double, gain: Double, noise: Double, frameCount: Int = 48000) -> [Int16] {
        var generator = SeededGenerator(seed: 11)
        let whole = Int(delay.rounded(.down))
        let fraction = delay - Double(whole)
        return (0..<frameCount).map { index in
            func chirp(_ place: Int) -> Double {
                probe.samples.indices.contains(place) ? Double(probe.samples[place]) : 0
            }
            // Between two samples the slow chirp is nearly straight.
            let sound = (1 - fraction) * chirp(index - whole) + fraction * chirp(index - whole - 1)
            let random = Double(Int64(generator.next() % 20_001) - 10_000) / 10_000
            return Int16(clamping: Int((gain * (sound + random * noise * 9830)).rounded()))
        }
    }

    @Test(arguments: [
        (0.0, 1.0, 0.0), (1234, 1, 0), (1234.5, 1, 0), (40_000.25, 0.05, 0), (7200, -0.5, 0.1), (20_000, 0.3, 1),
        (43_200, 1, 0),
    ])
    func `the chirp is found where it is`(delay: Double, gain: Double, noise: Double) throws {
        let found = try #require(probe.detect(in: recording(delay: delay, gain: gain, noise: noise)))
        #expect(abs(found.frame - delay) <= (noise > 0 ? 1 : 0.3), "\(found)")
        #expect(found.confidence <= 1 && found.confidence > (noise > 0.5 ? 0.5 : 0.95), "\(found)")
    }

    @Test func `the louder of two is found`() throws {
        let first = recording(delay: 9000, gain: 0.4, noise: 0)
        let second = recording(delay: 21_000, gain: 1, noise: 0)
        let found = try #require(probe.detect(in: zip(first, second).map { $0 &+ $1 }))
        #expect(abs(found.frame - 21_000) < 0.5)
    }

    @Test func `silence, noise, tones and half a chirp are no chirp`() {
        #expect(probe.detect(in: []) == nil)
        #expect(probe.detect(in: [Int16](repeating: 0, count: 48000)) == nil)
        #expect(probe.detect(in: Array(probe.samples.dropLast())) == nil)
        #expect(probe.detect(in: recording(delay: 90_000, gain: 1, noise: 1)) == nil)
        let tone = (0..<48000).map { Int16(10_000 * sin(Double($0) * 2 * .pi * 1000 / 48000)) }
        #expect(probe.detect(in: tone) == nil)
    }

    @Test(arguments: [8000, 16000, 44100, 48000]) func `every codec's rate has its chirp`(rate: Int) throws {
        let probe = ChirpProbe(sampleRate: rate)
        #expect(probe.samples.count == rate / 10)
        let quiet = [Int16](repeating: 0, count: rate / 4)
        let found = try #require(probe.detect(in: quiet + probe.samples + quiet))
        #expect(abs(found.frame - Double(rate / 4)) < 0.1 && found.confidence > 0.999)
    }
}
