import Glibc

/// Measures by how much sound is delayed: plays a chirp, and finds it in what was recorded.
///
/// A chirp of 100 ms sweeps from 400 to 3200 Hz, so that every codec and every loudspeaker lets it pass; a matched filter
/// finds it to a fraction of a millisecond, also in noise as loud as itself.
/// Pure: samples in, a place out.
/// Thread: control; it allocates.
package struct ChirpProbe: Sendable {
    /// Where a chirp was found.
    package struct Detection: Sendable, Hashable {
        /// The frame at which the chirp begins, with its fraction.
        package var frame: Double
        /// How alike the place is to the chirp: 1 is the chirp itself, 0 nothing of it.
        package var confidence: Double
    }

    /// The shape of the samples: mono.
    package let format: AudioFormat
    /// The chirp.
    package let samples: [Int16]

    /// How long the chirp is.
    package static let duration = Duration.milliseconds(100)
    /// What is found with less confidence is no chirp.
    package static let leastConfidence = 0.15

    private static let frequencies = (first: 400.0, last: 3200.0)
    private static let edge = 0.01
    /// Noise alone has its highest peak at less than five times its mean square root.
    private static let leastPeak = 8.0

    /// A probe at `sampleRate`, with a chirp of `peak` of full scale.
    package init(sampleRate: Int, peak: Double = 0.3) {
        format = AudioFormat(sampleRate: sampleRate)
        let count = format.frameCount(in: Self.duration)
        let length = Double(count) / Double(sampleRate)
        let slope = (Self.frequencies.last - Self.frequencies.first) / length
        samples = (0..<count).map { index in
            let time = Double(index) / Double(sampleRate)
            let phase = 2 * Double.pi * (Self.frequencies.first * time + slope * time * time / 2)
            let fromEdge = min(time, length - time)
            let window = fromEdge >= Self.edge ? 1 : 0.5 - 0.5 * cos(.pi * fromEdge / Self.edge)
            return Int16((sin(phase) * window * min(max(peak, 0), 1) * 32767).rounded())
        }
    }

    /// Finds the chirp in `recording`, the place that is most alike when there are several; nil when there is none.
    package func detect(in recording: [Int16]) -> Detection? {
        guard recording.count >= samples.count else { return nil }
        let correlation = correlate(recording)
        let placeCount = recording.count - samples.count + 1
        var best = 0
        var power = 0.0
        for index in 0..<placeCount {
            let value = abs(correlation[index])
            power += value * value
            if value > abs(correlation[best]) { best = index }
        }
        let rms = (power / Double(placeCount)).squareRoot()
        guard rms > 0, isPeak(abs(correlation[best]), over: rms, of: placeCount) else { return nil }
        let energy = recording[best..<(best + samples.count)].reduce(0.0) { $0 + Double($1) * Double($1) }
        let own = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
        guard energy > 0, own > 0 else { return nil }
        let confidence = min(abs(correlation[best]) / (energy * own).squareRoot(), 1)
        guard confidence >= Self.leastConfidence else { return nil }
        return Detection(frame: Double(best) + fraction(correlation, best, placeCount), confidence: confidence)
    }

    /// Over few places a chirp is itself a good part of the mean, so that only its likeness can be asked for.
    private func isPeak(_ value: Double, over rms: Double, of placeCount: Int) -> Bool {
        placeCount < 4 * samples.count || value >= Self.leastPeak * rms
    }

    /// How far the top of a parabola through the peak and its neighbours lies beside the peak.
    private func fraction(_ correlation: [Double], _ best: Int, _ placeCount: Int) -> Double {
        guard best > 0, best + 1 < placeCount else { return 0 }
        let (left, top, right) = (abs(correlation[best - 1]), abs(correlation[best]), abs(correlation[best + 1]))
        let bend = left - 2 * top + right
        guard bend < 0 else { return 0 }
        return min(max((left - right) / (2 * bend), -0.5), 0.5)
    }

    /// The correlation of `recording` with the chirp at every place.
    private func correlate(_ recording: [Int16]) -> [Double] {
        var size = 2
        while size < recording.count + samples.count { size *= 2 }
        let transform = FourierTransform(count: size)
        func spectrum(_ samples: [Int16]) -> (real: [Float], imaginary: [Float]) {
            var real = samples.map { Float($0) } + [Float](repeating: 0, count: size - samples.count)
            var imaginary = [Float](repeating: 0, count: size)
            transform.transform(&real, &imaginary)
            return (real, imaginary)
        }
        var (real, imaginary) = spectrum(recording)
        let chirp = spectrum(samples)
        for index in 0..<size {
            let (a, b, c, d) = (real[index], imaginary[index], chirp.real[index], chirp.imaginary[index])
            real[index] = a * c + b * d
            imaginary[index] = b * c - a * d
        }
        // The inverse is the transform with the parts exchanged.
        transform.transform(&imaginary, &real)
        return real.map { Double($0) / Double(size) }
    }
}
