import Glibc

/// Measures the eight DTMF frequencies every 2.5 ms over a window of 20 ms.
///
/// Samples are brought to 8 to 16 kHz and cut into slices of 2.5 ms, which are correlated with each frequency (one
/// Goertzel bin each, as a dot product, so that eight frequencies share a vector register), once rising and once
/// falling. A falling slice and the rising one before it make a triangle; eight of them, turned to one common phase
/// and weighted by a raised cosine, make a window without steps, under which row and column do not disturb each
/// other. So windows overlap for the price of one pass
/// over the samples, and the turn of a bin's phase between two windows tells the frequency to a fraction of a hertz.
/// Thread: one thread at a time; allocates only when made.
final class DTMFBank {
    /// What was measured over one window.
    struct Step: BitwiseCopyable {
        /// Rows in elements 0 to 3, columns in 4 to 7.
        var real: SIMD8<Float>
        var imaginary: SIMD8<Float>
        /// Mean square of the sine in each bin, in squared samples.
        var power: SIMD8<Float>
        /// Mean square of the whole signal without its constant part.
        var totalPower: Float
    }

    /// Input frames per slice.
    let sliceFrameCount: Int
    /// Input frames by which the low-pass filter delays.
    let delayFrameCount: Int
    /// Slices per second.
    let sliceRate: Double
    /// The bins' frequencies in Hz.
    let frequencies: SIMD8<Float>

    static var sliceCount: Int { 8 }
    /// The middle of a step's window, in slices from the beginning of the step's own.
    static var centre: Double { 0.5 - Double(sliceCount) / 2 }

    private let decimation: Int
    private let baseFrameCount: Int
    private let tapCount: Int
    private let taps: UnsafeMutablePointer<Float>
    private let inbox: UnsafeMutablePointer<Float>
    private let base: UnsafeMutablePointer<Float>
    private let cosines: UnsafeMutablePointer<SIMD8<Float>>
    private let sines: UnsafeMutablePointer<SIMD8<Float>>
    private let ramp: UnsafeMutablePointer<Float>
    private let slices: UnsafeMutablePointer<Slice>
    private let weights: UnsafeMutablePointer<Float>
    private let weightSum: Float
    private let turnReal: SIMD8<Float>
    private let turnImaginary: SIMD8<Float>
    private var phaseReal = SIMD8<Float>(repeating: 1)
    private var phaseImaginary = SIMD8<Float>(repeating: 0)
    /// What the last slice leaves to the triangle that it begins.
    private var rising = Slice()
    private var sliceIndex = 0
    private var filled = 0

    private struct Slice: BitwiseCopyable {
        var real = SIMD8<Float>()
        var imaginary = SIMD8<Float>()
        var energy: Float = 0
        var sum: Float = 0
    }

    /// A bank for `sampleRate` Hz, from 8000 up.
    init(sampleRate: Int) {
        precondition(sampleRate >= 8000)
        decimation = sampleRate / 8000
        let baseRate = Double(sampleRate) / Double(decimation)
        let frameCount = Int((baseRate / 400).rounded())
        baseFrameCount = frameCount
        sliceFrameCount = frameCount * decimation
        sliceRate = baseRate / Double(frameCount)

        // Hamming-windowed sinc, -6 dB at 4 kHz: what lies above 6.3 kHz, and would fold into the bins, is 50 dB down.
        tapCount = decimation == 1 ? 1 : (6 * decimation + 7) / 8 * 8
        delayFrameCount = (tapCount - 1) / 2
        taps = .allocate(capacity: tapCount)
        taps.initialize(repeating: 1, count: tapCount)
        if decimation > 1 { Self.designLowPass(taps, count: tapCount, cutoff: 4000 / Double(sampleRate)) }

        inbox = .allocate(capacity: tapCount - 1 + sliceFrameCount)
        inbox.initialize(repeating: 0, count: tapCount - 1 + sliceFrameCount)
        base = .allocate(capacity: baseFrameCount)
        base.initialize(repeating: 0, count: baseFrameCount)

        let (low, high) = (DTMFDigit.lowFrequencies, DTMFDigit.highFrequencies)
        let hertz = [low.0, low.1, low.2, low.3, high.0, high.1, high.2, high.3]
        frequencies = SIMD8(hertz.map { Float($0) })
        let radians = hertz.map { 2 * Double.pi * $0 / baseRate }
        cosines = .allocate(capacity: frameCount)
        sines = .allocate(capacity: frameCount)
        ramp = .allocate(capacity: frameCount)
        for frame in 0..<frameCount {
            (ramp + frame).initialize(to: (Float(frame) + 0.5) / Float(frameCount))
            (cosines + frame).initialize(to: SIMD8(radians.map { Float(cos($0 * Double(frame))) }))
            (sines + frame).initialize(to: SIMD8(radians.map { Float(-sin($0 * Double(frame))) }))
        }
        turnReal = SIMD8(radians.map { Float(cos($0 * Double(frameCount))) })
        turnImaginary = SIMD8(radians.map { Float(-sin($0 * Double(frameCount))) })

        slices = .allocate(capacity: Self.sliceCount)
        slices.initialize(repeating: Slice(), count: Self.sliceCount)
        weights = .allocate(capacity: Self.sliceCount)
        var sum: Float = 0
        for index in 0..<Self.sliceCount {
            let sine = sin(Double.pi * (Double(index) + 0.5) / Double(Self.sliceCount))
            (weights + index).initialize(to: Float(sine * sine))
            sum += weights[index]
        }
        weightSum = sum
    }

    deinit {
        taps.deallocate()
        inbox.deallocate()
        base.deallocate()
        cosines.deallocate()
        sines.deallocate()
        ramp.deallocate()
        slices.deallocate()
        weights.deallocate()
    }

    /// Takes frames from `frame` on, as the mean of their channels, up to the end of a slice; answers how many.
    func take(_ samples: Span<Int16>, channelCount: Int, from frame: Int) -> Int {
        let count = min(samples.count / channelCount &- frame, sliceFrameCount &- filled)
        let target = inbox + (tapCount &- 1 &+ filled)
        if channelCount == 1 {
            for index in 0..<count {
                target[index] = Float(samples[frame &+ index])
            }
        } else {
            let scale = 1 / Float(channelCount)
            for index in 0..<count {
                var sum: Int32 = 0
                for channel in 0..<channelCount {
                    sum &+= Int32(samples[(frame &+ index) &* channelCount &+ channel])
                }
                target[index] = Float(sum) * scale
            }
        }
        filled &+= count
        return count
    }

    /// The window that ends with the slice that has just been filled, or nil while the slice is not full.
    func nextStep() -> Step? {
        guard filled == sliceFrameCount else { return nil }
        filled = 0
        if decimation > 1 {
            decimate()
            correlate(UnsafePointer(base))
        } else {
            correlate(UnsafePointer(inbox))
        }
        return window()
    }

    private func correlate(_ source: UnsafePointer<Float>) {
        var real = SIMD8<Float>()
        var imaginary = SIMD8<Float>()
        var risingReal = SIMD8<Float>()
        var risingImaginary = SIMD8<Float>()
        var (energy, risingEnergy): (Float, Float) = (0, 0)
        var (sum, risingSum): (Float, Float) = (0, 0)
        for index in 0..<baseFrameCount {
            let sample = source[index]
            let risen = sample * ramp[index]
            real += sample * cosines[index]
            imaginary += sample * sines[index]
            risingReal += risen * cosines[index]
            risingImaginary += risen * sines[index]
            energy += sample * sample
            risingEnergy += sample * risen
            sum += sample
            risingSum += risen
        }
        real -= risingReal
        imaginary -= risingImaginary
        slices[sliceIndex] = Slice(
            real: rising.real + real * phaseReal - imaginary * phaseImaginary,
            imaginary: rising.imaginary + real * phaseImaginary + imaginary * phaseReal,
            energy: rising.energy + energy - risingEnergy,
            sum: rising.sum + sum - risingSum
        )
        rising = Slice(
            real: risingReal * phaseReal - risingImaginary * phaseImaginary,
            imaginary: risingReal * phaseImaginary + risingImaginary * phaseReal,
            energy: risingEnergy,
            sum: risingSum
        )
        sliceIndex = (sliceIndex &+ 1) & (Self.sliceCount &- 1)

        let nextReal = phaseReal * turnReal - phaseImaginary * turnImaginary
        let nextImaginary = phaseReal * turnImaginary + phaseImaginary * turnReal
        // One step of Newton's method keeps the length at 1.
        let correction = 1.5 - 0.5 * (nextReal * nextReal + nextImaginary * nextImaginary)
        phaseReal = nextReal * correction
        phaseImaginary = nextImaginary * correction
    }

    private func window() -> Step {
        var real = SIMD8<Float>()
        var imaginary = SIMD8<Float>()
        var energy: Float = 0
        var sum: Float = 0
        for index in 0..<Self.sliceCount {
            let slice = slices + ((sliceIndex &+ index) & (Self.sliceCount &- 1))
            let weight = weights[index]
            real += weight * slice.pointee.real
            imaginary += weight * slice.pointee.imaginary
            energy += weight * slice.pointee.energy
            sum += weight * slice.pointee.sum
        }
        let scale = 1 / (weightSum * Float(baseFrameCount))
        let mean = sum * scale
        return Step(
            real: real,
            imaginary: imaginary,
            power: (real * real + imaginary * imaginary) * (2 * scale * scale),
            totalPower: max(0, energy * scale - mean * mean)
        )
    }

    private func decimate() {
        for index in 0..<baseFrameCount {
            let start = UnsafeRawPointer(inbox + index &* decimation)
            let coefficients = UnsafeRawPointer(taps)
            var sum = SIMD8<Float>()
            var offset = 0
            while offset < tapCount &* 4 {
                sum +=
                    start.loadUnaligned(fromByteOffset: offset, as: SIMD8<Float>.self)
                    * coefficients.loadUnaligned(fromByteOffset: offset, as: SIMD8<Float>.self)
                offset &+= 32
            }
            base[index] = sum.sum()
        }
        inbox.update(from: inbox + sliceFrameCount, count: tapCount &- 1)
    }

    private static func designLowPass(_ taps: UnsafeMutablePointer<Float>, count: Int, cutoff: Double) {
        var sum = 0.0
        for index in 0..<count {
            let time = Double(index) - Double(count - 1) / 2
            let sinc = time == 0 ? 2 * cutoff : sin(2 * .pi * cutoff * time) / (.pi * time)
            let tap = sinc * (0.54 - 0.46 * cos(2 * .pi * Double(index) / Double(count - 1)))
            taps[index] = Float(tap)
            sum += tap
        }
        for index in 0..<count { taps[index] /= Float(sum) }
    }
}
