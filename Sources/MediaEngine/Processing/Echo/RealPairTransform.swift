/// The discrete Fourier transform of two real signals at once, as the real and the imaginary part of one.
///
/// Pure: it owns its memory. Thread: one at a time, any.
final class RealPairTransform {
    /// The signals, `count` numbers each; `analyse` takes them from here, and `synthesise` leaves them here.
    let first: UnsafeMutablePointer<Float>
    let second: UnsafeMutablePointer<Float>
    /// Numbers in half a spectrum.
    var width: Int { count / 2 + 1 }

    private let transform: FourierTransform
    private let count: Int

    /// A transform of `count` numbers, a power of two from 4 on.
    init(count: Int) {
        self.count = count
        transform = FourierTransform(count: count)
        first = .zeros(count)
        second = .zeros(count)
    }

    deinit {
        first.deallocate()
        second.deallocate()
    }

    /// Makes spectra of `first` and `second`, which are lost.
    func analyse(into left: HalfSpectra, _ right: HalfSpectra) {
        transform.transform(first, second)
        for bin in 0..<width {
            let mirror = (count &- bin) & (count &- 1)
            left.real[bin] = (first[bin] + first[mirror]) * 0.5
            left.imaginary[bin] = (second[bin] - second[mirror]) * 0.5
            right.real[bin] = (second[bin] + second[mirror]) * 0.5
            right.imaginary[bin] = (first[mirror] - first[bin]) * 0.5
        }
    }

    /// Makes the signals `first` and `second` of spectra.
    func synthesise(_ left: HalfSpectra, _ right: HalfSpectra) {
        let scale = 1 / Float(count)
        for bin in 0..<width {
            let mirror = (count &- bin) & (count &- 1)
            first[mirror] = (left.real[bin] + right.imaginary[bin]) * scale
            second[mirror] = (right.real[bin] - left.imaginary[bin]) * scale
            first[bin] = (left.real[bin] - right.imaginary[bin]) * scale
            second[bin] = (right.real[bin] + left.imaginary[bin]) * scale
        }
        transform.transform(second, first)
    }
}
