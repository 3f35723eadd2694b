/// Convolves a signal with a long impulse response, in blocks in the frequency domain.
///
/// What it gives comes late by one block. Pure. Thread: one at a time, any.
package final class BlockConvolver {
    /// Samples by which the output lags behind.
    package static var block: Int { 256 }

    private typealias Spectrum = (real: UnsafeMutablePointer<Float>, imaginary: UnsafeMutablePointer<Float>)

    private let transform = FourierTransform(count: 2 * BlockConvolver.block)
    private let response: Spectrum
    private let past: Spectrum
    private let work: Spectrum
    /// The block before, and the one that fills.
    private let input: UnsafeMutablePointer<Float>
    private let output: UnsafeMutablePointer<Float>
    private let partCount: Int
    private var filled = 0
    private var newest = 0

    /// A convolver with `response`.
    package init(_ response: [Float]) {
        let (block, size) = (Self.block, 2 * Self.block)
        partCount = max((response.count + block - 1) / block, 1)
        self.response = (.zeros(partCount * size), .zeros(partCount * size))
        past = (.zeros(partCount * size), .zeros(partCount * size))
        work = (.zeros(size), .zeros(size))
        input = .zeros(size)
        output = .zeros(block)
        for (index, value) in response.enumerated() {
            self.response.real[index / block * size + index % block] = value / Float(size)
        }
        for part in 0..<partCount {
            transform.transform(self.response.real + part * size, self.response.imaginary + part * size)
        }
    }

    deinit {
        for spectrum in [response, past, work] {
            spectrum.real.deallocate()
            spectrum.imaginary.deallocate()
        }
        input.deallocate()
        output.deallocate()
    }

    /// Takes the next sample, and gives the one of a block before.
    package func next(_ sample: Float) -> Float {
        let result = output[filled]
        input[Self.block + filled] = sample
        filled += 1
        if filled == Self.block {
            convolveBlock()
            filled = 0
        }
        return result
    }

    private func convolveBlock() {
        let size = 2 * Self.block
        newest = newest == partCount - 1 ? 0 : newest + 1
        let (real, imaginary) = (past.real + newest * size, past.imaginary + newest * size)
        real.update(from: input, count: size)
        imaginary.update(repeating: 0, count: size)
        transform.transform(real, imaginary)
        input.update(from: input + Self.block, count: Self.block)
        work.real.update(repeating: 0, count: size)
        work.imaginary.update(repeating: 0, count: size)
        for part in 0..<partCount {
            let slot = (newest - part + partCount) % partCount * size
            let (pastReal, pastImaginary) = (past.real + slot, past.imaginary + slot)
            let (partReal, partImaginary) = (response.real + part * size, response.imaginary + part * size)
            var bin = 0
            while bin < size {
                work.real[bin] += pastReal[bin] * partReal[bin] - pastImaginary[bin] * partImaginary[bin]
                work.imaginary[bin] += pastReal[bin] * partImaginary[bin] + pastImaginary[bin] * partReal[bin]
                bin &+= 1
            }
        }
        transform.transform(work.imaginary, work.real)
        output.update(from: work.real + Self.block, count: Self.block)
    }
}
