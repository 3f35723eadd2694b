import Foundation
@testable import MediaEngine
import TestSupport
import Testing

@Suite struct PolyphaseResamplerTests {
    private static let rate = 48_000.0

    private func sine(_ frequency: Double, count: Int, rate: Double = rate, amplitude: Double = 16_000) -> [Int16] {
        (0..<count).map { Int16((amplitude * sin(2 * .pi * frequency * Double($0) / rate)).rounded()) }
    }

    /// Feeds `input` in blocks that give 480 frames each; `tune` sets the ratio before each block.
    private func convert(
        _ input: [Int16],
        with resampler: PolyphaseResampler,
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

    /// Signal to everything else in dB: the best sine of that frequency is taken out, the rest is noise.
    private func signalToNoise(_ samples: ArraySlice<Int16>, _ frequency: Double, rate: Double = rate) -> Double {
        var (ss, cc, sc, xs, xc) = (0.0, 0.0, 0.0, 0.0, 0.0)
        let angle = 2 * Double.pi * frequency / rate
        for (index, sample) in samples.enumerated() {
            let (s, c, x) = (sin(angle * Double(index)), cos(angle * Double(index)), Double(sample))
            ss += s * s
            cc += c * c
            sc += s * c
            xs += x * s
            xc += x * c
        }
        let determinant = ss * cc - sc * sc
        let (a, b) = ((xs * cc - xc * sc) / determinant, (xc * ss - xs * sc) / determinant)
        var (signal, noise) = (0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            let fitted = a * sin(angle * Double(index)) + b * cos(angle * Double(index))
            signal += fitted * fitted
            noise += (Double(sample) - fitted) * (Double(sample) - fitted)
        }
        return 10 * log10(signal / noise)
    }

    @Test func `equal rates without a correction pass the input bit for bit, late by the delay`() {
        let input = sine(997, count: 9600)
        let resampler = PolyphaseResampler(from: 48_000, to: 48_000)
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
        let output = convert(input, with: PolyphaseResampler(from: 48_000, to: 48_000), tune: { _ in ppm })
        let found = signalToNoise(output[480...], frequency * (1 + ppm / 1e6))
        #expect(found > 75, "\(found) dB at \(frequency) Hz, \(ppm) ppm")
        let power = output[480...].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(output.count - 480)
        #expect(abs(10 * log10(power * 2) - 20 * log10(16_000)) < 0.05)
    }

    @Test func `a ratio that changes with every block makes no click`() {
        let input = sine(1000, count: 40_000)
        let output = convert(input, with: PolyphaseResampler(from: 48_000, to: 48_000)) { block in
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
    func `fixed changes of the rate fall out`(from: Int, to: Int) {
        let input = sine(1000, count: from, rate: Double(from))
        let resampler = PolyphaseResampler(from: from, to: to)
        let output = convert(input, with: resampler, block: to / 100, tune: { _ in 20 })
        let found = signalToNoise(output[(to / 20)...], 1000 * (1 + 20 / 1e6), rate: Double(to))
        #expect(found > 70, "\(found) dB from \(from) to \(to)")
    }

    @Test func `what is too high for the lower rate does not come back as an alias`() {
        let output = convert(sine(5000, count: 48_000), with: PolyphaseResampler(from: 48_000, to: 8000), block: 80)
        let power = output[800...].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(output.count - 800)
        #expect(10 * log10(power * 2 + 1e-9) < 20 * log10(16_000) - 60)
    }

    @Test func `the counts that are foretold come true, also channel by channel`() {
        let resampler = PolyphaseResampler(from: 48_000, to: 48_000, channelCount: 2, maximumFrameCount: 480)
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
        let resampler = PolyphaseResampler(from: 48_000, to: 48_000)
        _ = convert(sine(1000, count: 4800), with: resampler, tune: { _ in 300 })
        resampler.reset()
        let output = convert([Int16](repeating: 0, count: 4800), with: resampler, tune: { _ in 300 })
        #expect(output.allSatisfy { $0 == 0 })
    }

    @Test func `full scale is clipped, not wrapped`() {
        let input = (0..<4800).map { $0 / 24 % 2 == 0 ? Int16.max : Int16.min }
        let output = convert(input, with: PolyphaseResampler(from: 48_000, to: 48_000), tune: { _ in 500 })
        for index in 40..<output.count where index % 24 == 12 { #expect(abs(Int(output[index])) > 20_000) }
    }
}
