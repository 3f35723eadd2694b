import Glibc

/// Where the echo was found.
package struct EchoDelay: Hashable, Sendable, BitwiseCopyable {
    /// Frames at 16 kHz from a reference frame to the first of its echo in the capture.
    package var frameCount: Int
    /// The power of the correlation at its peak over its mean; chance alone hardly reaches 12.
    package var confidence: Float

    /// The delay as time.
    package var duration: Duration { .microseconds(frameCount * 125 / 2) }
}

/// Finds by how much the echo in what is captured lags behind what is played, 0 to 512 ms, and follows when it changes.
///
/// Both signals are whitened and correlated block by block in the frequency domain, 150 to 4000 Hz, with a memory of a
/// second; the first strong arrival counts, not the strongest. A new delay is believed when two evaluations agree.
/// Pure. Shape: mono `Int16` at 16 kHz. `process` allocates nothing, and its work is bounded: for 10 ms at most one
/// block, and two of the 32 stretches of 16 ms in which the peak is looked for.
/// Thread: one at a time, any.
package final class EchoDelayEstimator {
    /// The delay; nil until one was found.
    package private(set) var delay: EchoDelay?

    private let transform = FourierTransform(count: 512)
    private let real: UnsafeMutablePointer<Float>
    private let imaginary: UnsafeMutablePointer<Float>
    /// The block that fills, and for the reference the one before it, too.
    private let capture: UnsafeMutablePointer<Float>
    private let reference: UnsafeMutablePointer<Float>
    private let capturePower: UnsafeMutablePointer<Float>
    private let referencePower: UnsafeMutablePointer<Float>
    /// A window without edges, which would look like sounds of their own.
    private let taper: UnsafeMutablePointer<Float>
    /// Whitened spectra of the last blocks of the reference, in a ring; real parts, then imaginary ones.
    private let history: UnsafeMutablePointer<Float>
    /// The correlation of each stretch, as a spectrum.
    private let correlation: UnsafeMutablePointer<Float>
    /// The highest power of the correlation in each millisecond.
    private let peaks: UnsafeMutablePointer<Float>

    private var filled = 0
    private var newest = 0
    private var blocksSinceSound = EchoDelayEstimator.stretchCount
    private var stretch = 0
    private var sum: Float = 0
    private var candidate: EchoDelay?
    private var hasNewBlocks = false
    /// Blocks in the correlation, as far as they matter.
    private var blockCount = 0

    /// An estimator that has heard nothing.
    package init() {
        real = .zeros(2 * Self.block)
        imaginary = .zeros(2 * Self.block)
        capture = .zeros(Self.block)
        reference = .zeros(2 * Self.block)
        taper = .zeros(Self.block)
        for index in 0..<Self.block {
            taper[index] = Float(0.5 - 0.5 * cos(2 * Double.pi * (Double(index) + 0.5) / Double(Self.block)))
        }
        capturePower = .zeros(Self.width)
        referencePower = .zeros(Self.width)
        history = .zeros(2 * Self.width * Self.stretchCount)
        correlation = .zeros(2 * Self.width * Self.stretchCount)
        peaks = .zeros(Self.stretchCount * Self.peaksPerStretch)
    }

    deinit {
        for memory in [
            real, imaginary, capture, reference, taper, capturePower, referencePower, history, correlation, peaks,
        ] { memory.deallocate() }
    }

    /// Hears a stretch of both signals, which begin at the same instant.
    ///
    /// - Parameters:
    ///   - captured: What the microphone gave, at most 160 frames.
    ///   - played: What was played, as many.
    package func process(captured: Span<Int16>, played: Span<Int16>) {
        let count = min(captured.count, played.count)
        for index in 0..<count {
            capture[filled] = Float(captured[index])
            reference[Self.block &+ filled] = Float(played[index])
            filled &+= 1
            if filled == Self.block {
                takeBlock()
                filled = 0
            }
        }
        for _ in 0..<2 { evaluateStretch() }
    }

    /// Takes over that the delay has changed by `frameCount` frames.
    func shift(by frameCount: Int) {
        correlation.update(repeating: 0, count: 2 * Self.width * Self.stretchCount)
        candidate = nil
        blockCount = 0
        delay?.frameCount += frameCount
    }

    /// Forgets everything: another card.
    package func reset() {
        delay = nil
        candidate = nil
        filled = 0
        newest = 0
        stretch = 0
        sum = 0
        hasNewBlocks = false
        blockCount = 0
        blocksSinceSound = Self.stretchCount
        reference.update(repeating: 0, count: 2 * Self.block)
        capturePower.update(repeating: 0, count: Self.width)
        referencePower.update(repeating: 0, count: Self.width)
        history.update(repeating: 0, count: 2 * Self.width * Self.stretchCount)
        correlation.update(repeating: 0, count: 2 * Self.width * Self.stretchCount)
    }

    /// Correlates a full block of the capture with the reference's last 512 ms.
    private func takeBlock() {
        var (captureEnergy, referenceEnergy): (Float, Float) = (0, 0)
        var index = 0
        while index < Self.block {
            let (near, far) = (capture[index], reference[Self.block &+ index])
            captureEnergy += near * near
            referenceEnergy += far * far
            real[index] = 0
            real[Self.block &+ index] = near * taper[index]
            imaginary[index] = reference[index]
            imaginary[Self.block &+ index] = far
            reference[index] = far
            index &+= 1
        }
        newest = newest == Self.stretchCount &- 1 ? 0 : newest &+ 1
        blocksSinceSound = referenceEnergy > Self.audibleEnergy ? 0 : min(blocksSinceSound &+ 1, Self.stretchCount)
        // Two real signals in one transform: the capture as its real, the reference as its imaginary part.
        transform.transform(real, imaginary)
        let past = history + newest &* 2 &* Self.width
        let isAudible = blocksSinceSound < Self.stretchCount && captureEnergy > Self.silentEnergy
        index = 0
        while index < Self.width {
            let bin = Self.lowestBin &+ index
            let mirror = 2 &* Self.block &- bin
            let nearReal = (real[bin] + real[mirror]) * 0.5
            let nearImaginary = (imaginary[bin] - imaginary[mirror]) * 0.5
            let farReal = (imaginary[bin] + imaginary[mirror]) * 0.5
            let farImaginary = (real[mirror] - real[bin]) * 0.5
            let farPower = farReal * farReal + farImaginary * farImaginary
            let farStep = referencePower[index] == 0 ? 1 : Self.powerSmoothing
            referencePower[index] += (farPower - referencePower[index]) * farStep
            let farScale = 1 / (referencePower[index] + Self.leastPower).squareRoot()
            past[index] = farReal * farScale
            past[Self.width &+ index] = farImaginary * farScale
            let nearPower = nearReal * nearReal + nearImaginary * nearImaginary
            let nearStep = capturePower[index] == 0 ? 1 : Self.powerSmoothing
            capturePower[index] += (nearPower - capturePower[index]) * nearStep
            let nearScale = 1 / (capturePower[index] + Self.leastPower).squareRoot()
            real[bin] = nearReal * nearScale
            imaginary[bin] = nearImaginary * nearScale
            index &+= 1
        }
        guard isAudible else { return }
        hasNewBlocks = true
        blockCount = min(blockCount &+ 1, Self.fewestBlocks)
        accumulate()
    }

    /// Adds the capture's whitened block, which lies in `real` and `imaginary`, to the correlation.
    private func accumulate() {
        let (nearReal, nearImaginary) = (real + Self.lowestBin, imaginary + Self.lowestBin)
        for lag in 0..<Self.stretchCount {
            let slot = newest >= lag ? newest &- lag : newest &- lag &+ Self.stretchCount
            let far = history + slot &* 2 &* Self.width
            let sum = correlation + lag &* 2 &* Self.width
            var index = 0
            while index < Self.width {
                let (farReal, farImaginary) = (far[index], far[Self.width &+ index])
                sum[index] =
                    sum[index] * Self.memory + nearReal[index] * farReal + nearImaginary[index] * farImaginary
                sum[Self.width &+ index] =
                    sum[Self.width &+ index] * Self.memory + nearImaginary[index] * farReal
                    - nearReal[index] * farImaginary
                index &+= 1
            }
        }
    }

    /// Looks for peaks in the next 16 ms of lags; after the last, judges them all.
    private func evaluateStretch() {
        guard stretch > 0 || hasNewBlocks else { return }
        real.update(repeating: 0, count: 2 * Self.block)
        imaginary.update(repeating: 0, count: 2 * Self.block)
        let spectrum = correlation + stretch &* 2 &* Self.width
        (real + Self.lowestBin).update(from: spectrum, count: Self.width)
        (imaginary + Self.lowestBin).update(from: spectrum + Self.width, count: Self.width)
        // Positive frequencies only, so that the magnitude is the correlation's envelope.
        transform.transform(imaginary, real)
        var lag = 0
        for peak in 0..<Self.peaksPerStretch {
            var highest: Float = 0
            for _ in 0..<Self.block / Self.peaksPerStretch {
                let power = real[lag] * real[lag] + imaginary[lag] * imaginary[lag]
                sum += power
                highest = max(highest, power)
                lag &+= 1
            }
            peaks[stretch &* Self.peaksPerStretch &+ peak] = highest
        }
        stretch &+= 1
        guard stretch == Self.stretchCount else { return }
        judge()
        stretch = 0
        sum = 0
        hasNewBlocks = false
    }

    private func judge() {
        let peakCount = Self.stretchCount &* Self.peaksPerStretch
        var best = 0
        for index in 1..<peakCount where peaks[index] > peaks[best] { best = index }
        let mean = sum / Float(Self.stretchCount &* Self.block)
        guard mean > 0, blockCount == Self.fewestBlocks else { return }
        var first = max(best &- 30, 0)
        while peaks[first] < peaks[best] * 0.25 { first &+= 1 }
        let found = EchoDelay(
            frameCount: first &* (Self.block / Self.peaksPerStretch),
            confidence: peaks[best] / mean
        )
        guard found.confidence >= Self.leastConfidence else {
            candidate = nil
            return
        }
        if let candidate, abs(candidate.frameCount &- found.frameCount) <= 32 { delay = found }
        candidate = found
    }

    private static var block: Int { 256 }
    private static var stretchCount: Int { 32 }
    private static var peaksPerStretch: Int { 16 }
    /// 156 Hz.
    private static var lowestBin: Int { 5 }
    /// Bins up to 4 kHz.
    private static var width: Int { 124 }
    /// A second, in blocks.
    private static var memory: Float { 0.984 }
    private static var powerSmoothing: Float { 0.1 }
    /// A spectrum's power at which whitening ends: that of 3 units of noise.
    private static var leastPower: Float { 9 * 256 }
    /// A block of the reference that can be heard: -60 dBov.
    private static var audibleEnergy: Float { 256 * 32 * 32 }
    /// A block of the capture in which nothing is.
    private static var silentEnergy: Float { 256 }
    /// With fewer the correlation is not yet spread evenly over the lags, and any noise shows a peak.
    private static var fewestBlocks: Int { 40 }
    private static var leastConfidence: Float { 20 }
}
