/// Spectra of real signals, one behind another: the lower half of each, as the upper one mirrors it.
///
/// It only points at its memory; whoever makes it deallocates it. Thread: one at a time, any.
struct HalfSpectra: BitwiseCopyable {
    let real: UnsafeMutablePointer<Float>
    let imaginary: UnsafeMutablePointer<Float>
    /// Numbers in one spectrum.
    let width: Int
    private let count: Int

    /// `count` spectra of `width` zeros each.
    init(width: Int, count: Int = 1) {
        self.width = width
        self.count = count
        real = .zeros(width * count)
        imaginary = .zeros(width * count)
    }

    private init(_ real: UnsafeMutablePointer<Float>, _ imaginary: UnsafeMutablePointer<Float>, width: Int) {
        (self.real, self.imaginary, self.width, count) = (real, imaginary, width, 1)
    }

    func deallocate() {
        real.deallocate()
        imaginary.deallocate()
    }

    /// One of the spectra.
    func part(_ index: Int) -> HalfSpectra {
        HalfSpectra(real + index &* width, imaginary + index &* width, width: width)
    }

    @inline(__always)
    func power(_ bin: Int) -> Float { real[bin] * real[bin] + imaginary[bin] * imaginary[bin] }

    func clear() {
        real.update(repeating: 0, count: width * count)
        imaginary.update(repeating: 0, count: width * count)
    }

    func copy(_ other: HalfSpectra) {
        real.update(from: other.real, count: width * count)
        imaginary.update(from: other.imaginary, count: width * count)
    }

    /// Moves by `step` of the way to `other`.
    func approach(_ other: HalfSpectra, by step: Float) {
        for index in 0..<width &* count {
            real[index] += (other.real[index] - real[index]) * step
            imaginary[index] += (other.imaginary[index] - imaginary[index]) * step
        }
    }

    /// Adds the product of two single spectra: a convolution.
    func add(_ left: HalfSpectra, times right: HalfSpectra) {
        for bin in 0..<width {
            real[bin] += left.real[bin] * right.real[bin] - left.imaginary[bin] * right.imaginary[bin]
            imaginary[bin] += left.real[bin] * right.imaginary[bin] + left.imaginary[bin] * right.real[bin]
        }
    }
}
