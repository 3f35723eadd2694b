import Glibc
@testable import MediaEngine
import Testing

/// Two real signals in one transform, against the definition of the discrete Fourier transform.
@Suite struct RealPairTransformTests {
    @Test(arguments: [4, 8, 64, 512]) func `each signal has its own spectrum, and comes back from it`(count: Int) {
        var random = SeededGenerator(seed: UInt64(count))
        let signals = (0..<2).map { _ in (0..<count).map { _ in Float.random(in: -1...1, using: &random) } }
        let pair = RealPairTransform(count: count)
        let spectra = (0..<2).map { _ in HalfSpectra(width: pair.width) }
        defer { for spectrum in spectra { spectrum.deallocate() } }
        for index in 0..<count {
            pair.first[index] = signals[0][index]
            pair.second[index] = signals[1][index]
        }
        pair.analyse(into: spectra[0], spectra[1])
        for (signal, spectrum) in zip(signals, spectra) {
            for bin in 0..<pair.width {
                var (real, imaginary) = (0.0, 0.0)
                for (index, value) in signal.enumerated() {
                    let angle = -2 * Double.pi * Double(bin * index % count) / Double(count)
                    real += Double(value) * cos(angle)
                    imaginary += Double(value) * sin(angle)
                }
                #expect(abs(Double(spectrum.real[bin]) - real) < 1e-3)
                #expect(abs(Double(spectrum.imaginary[bin]) - imaginary) < 1e-3)
            }
        }
        pair.synthesise(spectra[0], spectra[1])
        for index in 0..<count {
            #expect(abs(pair.first[index] - signals[0][index]) < 1e-5)
            #expect(abs(pair.second[index] - signals[1][index]) < 1e-5)
        }
    }
}
