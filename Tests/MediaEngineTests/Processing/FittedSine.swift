import Foundation

/// The sine of one frequency that fits samples best, and what it leaves.
struct FittedSine {
    let amplitude: Double
    /// At the first sample, of a sine.
    let phase: Double
    /// Mean square of the rest.
    let noise: Double

    init(_ samples: ArraySlice<Int16>, _ frequency: Double, rate: Int) {
        var (ss, cc, sc, xs, xc) = (0.0, 0.0, 0.0, 0.0, 0.0)
        let angle = 2 * Double.pi * frequency / Double(rate)
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
        amplitude = (a * a + b * b).squareRoot()
        phase = atan2(b, a)
        var sum = 0.0
        for (index, sample) in samples.enumerated() {
            let rest = Double(sample) - a * sin(angle * Double(index)) - b * cos(angle * Double(index))
            sum += rest * rest
        }
        noise = sum / Double(samples.count)
    }

    /// In dB.
    var signalToNoise: Double { 10 * log10(amplitude * amplitude / 2 / noise) }
}
