import Foundation
@testable import MediaEngine

/// How different two sounds are to an ear that forgives delay: a stand-in for PESQ where PESQ is not to be had.
///
/// Each 20 ms of the reference is compared, by the levels of 15 bands from 200 to 3600 Hz, with the sound that much
/// later, and the likest of the neighbours within 40 ms counts, so that a delay that changes slowly costs nothing.
/// Units: dB, the mean over bands and over the frames in which the reference is loud enough to be speech.
enum SpectralDistance {
    private static let bandCount = 15

    /// The distance of `heard` from `reference`, which it follows by about `delay`.
    static func between(
        _ reference: [Int16],
        _ heard: [Int16],
        format: AudioFormat,
        delay: Duration,
        from start: Duration = .seconds(2)
    ) -> Double {
        let hop = format.frameCount(in: .milliseconds(10))
        let expected = bands(reference, format, hop)
        let got = bands(Array(heard.dropFirst(format.frameCount(in: delay))), format, hop)
        var sum = 0.0
        var count = 0
        for index in format.frameCount(in: start) / hop..<expected.count {
            guard (expected[index].max() ?? 0) > 40 else { continue }
            let candidates = (-4...4).map { index + $0 }.filter(got.indices.contains)
            guard !candidates.isEmpty else { continue }
            sum += candidates.map { distance(expected[index], got[$0]) }.min() ?? 0
            count += 1
        }
        return count > 0 ? sum / Double(count) : .infinity
    }

    private static func distance(_ left: [Double], _ right: [Double]) -> Double {
        zip(left, right).map { abs(max($0, 20) - max($1, 20)) }.reduce(0, +) / Double(bandCount)
    }

    /// The levels of each band in dB, every 10 ms over 20 ms, by Goertzel's recurrence.
    private static func bands(_ samples: [Int16], _ format: AudioFormat, _ hop: Int) -> [[Double]] {
        let coefficients = (0..<bandCount).map { band in
            2 * cos(2 * .pi * (200 + Double(band) * 240) / Double(format.sampleRate))
        }
        let window = (0..<2 * hop).map { (index: Int) -> Double in
            let phase = Double.pi * (Double(index) + 0.5) / Double(hop)
            return 0.5 - 0.5 * cos(phase)
        }
        return stride(from: 0, to: max(0, samples.count - 2 * hop), by: hop).map { start in
            coefficients.map { coefficient in
                var (first, second) = (0.0, 0.0)
                for index in 0..<2 * hop {
                    let next = Double(samples[start + index]) * window[index] + coefficient * first - second
                    second = first
                    first = next
                }
                let power = first * first + second * second - coefficient * first * second
                return 10 * log10(max(power / Double(hop * hop), 1e-3))
            }
        }
    }
}
