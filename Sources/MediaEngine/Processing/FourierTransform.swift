import Glibc

/// The discrete Fourier transform of 2^n complex numbers, in place.
///
/// Pure: it owns tables only. The inverse, unscaled, is the transform with real and imaginary parts exchanged.
final class FourierTransform {
    /// Numbers in one transform.
    let count: Int

    /// The cosines of the stage with `half` butterflies begin at index `half`; `sines` likewise.
    private let cosines: UnsafeMutablePointer<Float>
    private let sines: UnsafeMutablePointer<Float>
    private let reversed: UnsafeMutablePointer<Int32>

    /// A transform of `count` numbers, a power of two from 4 on.
    init(count: Int) {
        precondition(count >= 4 && count & (count - 1) == 0)
        self.count = count
        cosines = .allocate(capacity: count)
        sines = .allocate(capacity: count)
        reversed = .allocate(capacity: count)
        cosines.initialize(repeating: 1, count: count)
        sines.initialize(repeating: 0, count: count)
        reversed.initialize(repeating: 0, count: count)
        var half = 1
        while half < count {
            for index in 0..<half {
                let angle = -Double.pi * Double(index) / Double(half)
                cosines[half + index] = Float(cos(angle))
                sines[half + index] = Float(sin(angle))
            }
            half *= 2
        }
        for index in 1..<count {
            reversed[index] = reversed[index / 2] / 2 + (index % 2 == 0 ? 0 : Int32(count / 2))
        }
    }

    deinit {
        cosines.deallocate()
        sines.deallocate()
        reversed.deallocate()
    }

    /// Transforms `count` numbers where they lie.
    func transform(_ real: UnsafeMutablePointer<Float>, _ imaginary: UnsafeMutablePointer<Float>) {
        var index = 1
        while index < count {
            let other = Int(reversed[index])
            if index < other {
                (real[index], real[other]) = (real[other], real[index])
                (imaginary[index], imaginary[other]) = (imaginary[other], imaginary[index])
            }
            index &+= 1
        }
        var quarter = 0
        while quarter < count {
            transformFour(real + quarter, imaginary + quarter)
            quarter &+= 4
        }
        var half = 4
        while half < count {
            var start = 0
            while start < count {
                combine(real + start, imaginary + start, half)
                start &+= 2 &* half
            }
            half &*= 2
        }
    }

    /// Transforms four numbers in reversed order, which needs no products.
    private func transformFour(_ real: UnsafeMutablePointer<Float>, _ imaginary: UnsafeMutablePointer<Float>) {
        let (sumReal, sumImaginary) = (real[0] + real[1], imaginary[0] + imaginary[1])
        let (differenceReal, differenceImaginary) = (real[0] - real[1], imaginary[0] - imaginary[1])
        let (otherSumReal, otherSumImaginary) = (real[2] + real[3], imaginary[2] + imaginary[3])
        let (otherDifferenceReal, otherDifferenceImaginary) = (real[2] - real[3], imaginary[2] - imaginary[3])
        (real[0], imaginary[0]) = (sumReal + otherSumReal, sumImaginary + otherSumImaginary)
        (real[1], imaginary[1]) = (differenceReal + otherDifferenceImaginary, differenceImaginary - otherDifferenceReal)
        (real[2], imaginary[2]) = (sumReal - otherSumReal, sumImaginary - otherSumImaginary)
        (real[3], imaginary[3]) = (differenceReal - otherDifferenceImaginary, differenceImaginary + otherDifferenceReal)
    }

    /// Makes one transform of twice the length from two that lie behind one another.
    private func combine(
        _ real: UnsafeMutablePointer<Float>,
        _ imaginary: UnsafeMutablePointer<Float>,
        _ half: Int
    ) {
        let (cosine, sine) = (cosines + half, sines + half)
        var index = 0
        while index < half {
            let other = index &+ half
            let turnedReal = real[other] * cosine[index] - imaginary[other] * sine[index]
            let turnedImaginary = real[other] * sine[index] + imaginary[other] * cosine[index]
            real[other] = real[index] - turnedReal
            imaginary[other] = imaginary[index] - turnedImaginary
            real[index] += turnedReal
            imaginary[index] += turnedImaginary
            index &+= 1
        }
    }
}
