import Foundation
@testable import MediaEngine
import TestSupport
import Testing

/// What the filters pass, and what they keep out.
///
/// Frequencies are parts of half the lower rate.
@Suite struct ResamplerQualityTests {
    private static let rates = thorough(
        [
            (8000, 16_000), (8000, 48_000), (16_000, 48_000), (44_100, 48_000), (11_025, 16_000), (22_050, 48_000),
            (16_000, 8000), (48_000, 8000), (48_000, 16_000), (48_000, 44_100), (44_100, 16_000), (96_000, 48_000),
        ],
        quick: [(8000, 48_000), (48_000, 16_000), (44_100, 48_000)]
    )

    /// The output for a loud sine and a soft one, without its first 100 ms.
    private func tones(
        _ frequency: Double,
        and soft: Double = 0,
        from: Int,
        to: Int,
        _ quality: Resampler.Quality
    ) -> ArraySlice<Int16> {
        let resampler = Resampler(from: from, to: to, quality: quality)
        let input = (0..<from / 2).map {
            let angle = 2 * .pi * Double($0) / Double(from)
            return Int16((30_000 * sin(frequency * angle) + 2000 * sin(soft * angle)).rounded())
        }
        var output = [Int16](repeating: 0, count: to / 2 + 1)
        var span = output.mutableSpan
        let counts = resampler.process(input.span, into: &span)
        #expect(counts.consumed == from / 2)
        return output[(to / 10)..<counts.produced]
    }

    @Test(
        arguments: rates,
        [(Resampler.Quality.low, 0.8), (.speech, 0.9), (.standard, 0.9), (.high, 0.91)]
    )
    func `the band passes within 0.1 dB, and without images`(
        rates: (from: Int, to: Int),
        shape: (quality: Resampler.Quality, band: Double)
    ) {
        let half = Double(min(rates.from, rates.to)) / 2
        for part in [0.031, 0.25, 0.5, 0.7, 0.8, 0.85, 0.9, 0.91] where part <= shape.band {
            let output = tones(part * half, from: rates.from, to: rates.to, shape.quality)
            let sine = FittedSine(output, part * half, rate: rates.to)
            let level = 20 * log10(sine.amplitude / 30_000)
            #expect(abs(level) < 0.1, "\(level) dB at \(part)")
            let clean = shape.quality == .low || shape.quality == .speech ? 80.0 : 90
            #expect(sine.signalToNoise > clean, "\(sine.signalToNoise) dB at \(part)")
        }
    }

    @Test(
        arguments: rates.filter { $0.0 > $0.1 },
        [(Resampler.Quality.low, 1.11), (.speech, 1.09), (.standard, 1.07), (.high, 1)]
    )
    func `what is too high for the lower rate does not come back as an alias`(
        rates: (from: Int, to: Int),
        shape: (quality: Resampler.Quality, edge: Double)
    ) {
        let half = Double(rates.to) / 2
        let clean = shape.quality == .low || shape.quality == .speech ? -80.0 : -90
        for part in [0, 0.01, 0.1, 0.33, 0.62, 0.87, 1.41, 2.3].map({ shape.edge + $0 }) {
            guard part * half < Double(rates.from) / 2 else { continue }
            // The soft sine passes, and keeps what is smaller than a step of 16 bits from being rounded away.
            let soft = 0.137 * half
            let output = tones(part * half, and: soft, from: rates.from, to: rates.to, shape.quality)
            let level = 10 * log10(FittedSine(output, soft, rate: rates.to).noise * 2 / (30_000 * 30_000))
            #expect(level < clean, "\(level) dB at \(part)")
        }
    }
}
