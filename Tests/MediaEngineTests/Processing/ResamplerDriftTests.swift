import Foundation
@testable import MediaEngine
import TestSupport
import Testing

/// Following a clock that drifts.
///
/// `ResamplerTests` has fixed ratios.
@Suite struct ResamplerDriftTests {
    /// What a card uses.
    private static func follower(channelCount: Int = 1) -> Resampler {
        Resampler(
            from: 48_000,
            to: 48_000,
            channelCount: channelCount,
            quality: .low,
            followsDrift: true,
            maximumFrameCount: 480
        )
    }

    private func sine(_ frequency: Double, count: Int, rate: Int = 48_000, amplitude: Double = 16_000) -> [Int16] {
        (0..<count).map { Int16((amplitude * sin(2 * .pi * frequency * Double($0) / Double(rate))).rounded()) }
    }

    /// Feeds `input` in blocks that give 480 frames each; `tune` sets the ratio before each block.
    private func convert(
        _ input: [Int16],
        with resampler: Resampler,
        block: Int = 480,
        tune: (Int) -> Double = { _ in 0 }
    ) -> [Int16] {
        var (result, taken, number) = ([Int16](), 0, 0)
        while true {
            resampler.ppm = tune(number)
            let need = resampler.inputFrameCount(forOutput: block)
            guard taken + need <= input.count else { return result }
            var output = [Int16](repeating: 0, count: block)
            var span = output.mutableSpan
            let counts = resampler.process(input[taken..<taken + need].span, into: &span)
            #expect(counts.consumed == need && counts.produced == block)
            result += output
            taken += need
            number += 1
        }
    }

    @Test func `equal rates without a correction pass the input bit for bit, late by the delay`() {
        let input = sine(997, count: 9600)
        let resampler = Self.follower()
        let output = convert(input, with: resampler)
        #expect(resampler.delayFrameCount == 16)
        #expect(Array(output.dropFirst(16)) == Array(input.prefix(output.count - 16)))
    }

    @Test(
        arguments: [100.0, 1000, 3400, 8000, 15_000],
        thorough([37.0, -250, 1000, -2000], quick: [-2000])
    )
    func `a sine stays a sine`(frequency: Double, ppm: Double) {
        let input = sine(frequency, count: 20_000)
        let output = convert(input, with: Self.follower(), tune: { _ in ppm })
        let found = FittedSine(output[480...], frequency * (1 + ppm / 1e6), rate: 48_000)
        #expect(found.signalToNoise > 75, "\(found.signalToNoise) dB at \(frequency) Hz, \(ppm) ppm")
        #expect(abs(20 * log10(found.amplitude / 16_000)) < 0.05)
    }

    @Test func `a ratio that changes with every block makes no click`() {
        let input = sine(1000, count: 40_000)
        let output = convert(input, with: Self.follower()) { block in
            block % 2 == 0 ? 2000 : -2000
        }
        // The second difference of a smooth sine is at most its amplitude times the square of the angle per frame.
        let bound = 16_000 * pow(2 * Double.pi * 1000 * 1.002 / 48_000, 2) + 4
        for index in 482..<output.count {
            let bend = Double(output[index]) - 2 * Double(output[index - 1]) + Double(output[index - 2])
            #expect(abs(bend) < bound)
        }
    }

    @Test(arguments: [(8000, 48_000), (48_000, 8000), (44_100, 48_000), (48_000, 44_100), (48_000, 16_000)])
    func `a drift beside a change of the rate is followed`(from: Int, to: Int) {
        let input = sine(1000, count: from, rate: from)
        let resampler = Resampler(from: from, to: to, followsDrift: true)
        let output = convert(input, with: resampler, block: to / 100, tune: { _ in 20 })
        let found = FittedSine(output[(to / 20)...], 1000 * (1 + 20 / 1e6), rate: to).signalToNoise
        #expect(found > 80, "\(found) dB from \(from) to \(to)")
    }

    @Test func `a correction that ends leaves the ratio exact again`() {
        let resampler = Resampler(from: 44_100, to: 48_000, followsDrift: true)
        let input = [Int16](repeating: 0, count: 441)
        var output = [Int16](repeating: 0, count: 600)
        func produced(_ ticks: Int) -> Int {
            (0..<ticks).reduce(0) { sum, _ in
                var span = output.mutableSpan
                return sum + resampler.process(input.span, into: &span).produced
            }
        }
        #expect(produced(100) == 48_000)
        resampler.ppm = 1000
        #expect(abs(produced(1000) - 479_520) <= 1)
        resampler.ppm = 0
        #expect(abs(produced(1) - 480) <= 1)
        #expect((0..<thorough(3600, quick: 20)).allSatisfy { _ in produced(100) == 48_000 })
    }

    @Test func `the counts that are foretold come true, also channel by channel`() {
        let resampler = Self.follower(channelCount: 2)
        resampler.ppm = -777
        var output = [Int16](repeating: 0, count: 2 * 600)
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<400 {
            let frames = Int.random(in: 0...480, using: &generator)
            let foretold = resampler.outputFrameCount(forInput: frames)
            let input = (0..<2 * frames).map { $0 % 2 == 0 ? Int16(1000) : -2000 }
            var span = output.mutableSpan
            let counts = resampler.process(input.span, into: &span)
            #expect(counts.consumed == frames && counts.produced == foretold)
        }
        #expect(output[200] == 1000 && output[201] == -2000)
    }

    @Test func `silence stays silence, and after a reset nothing of the past is heard`() {
        let resampler = Self.follower()
        _ = convert(sine(1000, count: 4800), with: resampler, tune: { _ in 300 })
        resampler.reset()
        let output = convert([Int16](repeating: 0, count: 4800), with: resampler, tune: { _ in 300 })
        #expect(output.allSatisfy { $0 == 0 })
    }

    @Test func `full scale is clipped, not wrapped`() {
        let input = (0..<4800).map { $0 / 24 % 2 == 0 ? Int16.max : Int16.min }
        let output = convert(input, with: Self.follower(), tune: { _ in 500 })
        for index in 40..<output.count {
            // An edge lies between two samples.
            let place = Double(index) * 1.0005 - 15.5
            guard abs(place.remainder(dividingBy: 24)) > 0.6 else { continue }
            #expect(Int(place / 24) % 2 == 0 ? output[index] > 16_000 : output[index] < -16_000)
        }
        #expect(output.contains(.max) && output.contains(.min))
    }
}
