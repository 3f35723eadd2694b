import Glibc

/// Estimates the echo of what is played and takes it away: a partitioned-block Kalman filter in the frequency domain,
/// with a second filter that is heard and changes only when the first has proved better.
///
///     played ──► background (adapts) ──► estimate ─► error ─► its own adaptation
///        │            │ copied when better, blended in while it is good
///        └─────► foreground ───────────► estimate ─► remainder
///
/// The Kalman filter weighs each correction by how uncertain the coefficient is against how much else is heard at that
/// frequency, so a near end that speaks slows it down without being detected. What still goes wrong while both
/// speak stays in the background.
/// Pure. Shape: mono at 16 kHz, 160 frames at a time. `process` allocates nothing. Thread: one at a time, any.
/// Source: Enzner and Vary, "Frequency-domain adaptive Kalman filter for acoustic echo control in hands-free
/// telephones", Signal Processing 86 (2006); Ochiai et al., "Echo canceler with two echo path models", IEEE Trans.
/// Communications 25 (1977).
final class KalmanEchoFilter {
    private let transform = RealPairTransform(count: KalmanEchoFilter.size)
    private let partCount: Int
    /// The echo path as each filter knows it, part by part.
    private let background: HalfSpectra
    private let foreground: HalfSpectra
    /// What was played in the last ticks, the newest at `newest`; one more than the parts.
    private let past: HalfSpectra
    /// The variance of each coefficient of the background.
    private let uncertainty: UnsafeMutablePointer<Float>
    /// That of a part's coefficients before anything is known: an echo that fades by 22 dB over the tail.
    private let prior: UnsafeMutablePointer<Float>
    /// What else the microphone hears: the power of the error.
    private let observationNoise: UnsafeMutablePointer<Float>
    /// The error of the last tick, and the correction per unit of what was played.
    private let error: HalfSpectra
    private let correction: HalfSpectra
    /// The power of the error that the uncertainty explains, and one over that of the whole error.
    private let explained: UnsafeMutablePointer<Float>
    private let gain: UnsafeMutablePointer<Float>
    private let window: UnsafeMutablePointer<Float>
    /// The background's error in this tick.
    private let backgroundError: UnsafeMutablePointer<Float>

    private var newest = 0
    private var constrained = 0
    private var farMemory: Float = 0
    private var captureMemory: Float = 0
    private var remainderMemory: Float = 0
    /// Smoothed energies: of the capture, and of what either filter leaves.
    private var captureEnergy: Float = 1
    private var backgroundEnergy: Float = 1
    private var foregroundEnergy: Float = 1

    /// A filter of `tailFrameCount` frames, a multiple of 160, that knows nothing.
    init(tailFrameCount: Int) {
        partCount = tailFrameCount / Self.hop
        background = HalfSpectra(width: Self.width, count: partCount)
        foreground = HalfSpectra(width: Self.width, count: partCount)
        past = HalfSpectra(width: Self.width, count: partCount + 1)
        uncertainty = .zeros(partCount * Self.width)
        prior = .zeros(partCount)
        observationNoise = .zeros(Self.width)
        error = HalfSpectra(width: Self.width)
        correction = HalfSpectra(width: Self.width)
        explained = .zeros(Self.width)
        gain = .zeros(Self.width)
        window = .zeros(Self.size)
        backgroundError = .zeros(Self.hop)
        for part in 0..<partCount { prior[part] = 0.03 * pow(10, -2.2 * Float(part) / Float(partCount)) }
        reset()
    }

    deinit {
        for spectra in [background, foreground, past, error, correction] { spectra.deallocate() }
        for memory in [uncertainty, prior, observationNoise, explained, gain, window, backgroundError] {
            memory.deallocate()
        }
    }

    /// Forgets everything.
    func reset() {
        background.clear()
        foreground.clear()
        past.clear()
        error.clear()
        for part in 0..<partCount {
            (uncertainty + part * Self.width).update(repeating: prior[part], count: Self.width)
        }
        observationNoise.update(repeating: Self.firstObservationNoise, count: Self.width)
        window.update(repeating: 0, count: Self.size)
        backgroundError.update(repeating: 0, count: Self.hop)
        (farMemory, captureMemory, remainderMemory) = (0, 0, 0)
        (captureEnergy, backgroundEnergy, foregroundEnergy) = (1, 1, 1)
    }

    /// Takes the echo out of 10 ms.
    ///
    /// - Parameters:
    ///   - captured: What the microphone gave, 160 frames.
    ///   - far: What was played, of which the first echo is due, as many.
    ///   - remainder: What is left, as many.
    func process(
        captured: UnsafeMutableBufferPointer<Float>,
        far: UnsafeMutableBufferPointer<Int16>,
        remainder: UnsafeMutableBufferPointer<Float>
    ) {
        hear(far)
        adapt()
        constrain()
        estimate()
        judge(captured, remainder)
    }

    /// Transforms what was played, and the last error with it: two real signals in one transform.
    private func hear(_ far: UnsafeMutableBufferPointer<Int16>) {
        let overlap = Self.size - Self.hop
        window.update(from: window + Self.hop, count: overlap)
        for index in 0..<Self.hop {
            let sample = Float(far[index])
            window[overlap &+ index] = sample - Self.preemphasis * farMemory
            farMemory = sample
        }
        transform.first.update(from: window, count: Self.size)
        transform.second.update(repeating: 0, count: overlap)
        (transform.second + overlap).update(from: backgroundError, count: Self.hop)
        newest = newest == partCount ? 0 : newest &+ 1
        transform.analyse(into: past.part(newest), error)
    }

    /// Corrects the background by the last error, which `past` without its newest explains.
    private func adapt() {
        explained.update(repeating: 0, count: Self.width)
        for part in 0..<partCount {
            let far = past.part(slot(part &+ 1))
            let variance = uncertainty + part &* Self.width
            for bin in 0..<Self.width { explained[bin] += far.power(bin) * variance[bin] }
        }
        for bin in 0..<Self.width {
            observationNoise[bin] += (error.power(bin) - observationNoise[bin]) * Self.observationNoiseSmoothing
            gain[bin] = 1 / (explained[bin] * Self.share + observationNoise[bin] + 1)
            correction.real[bin] = error.real[bin] * gain[bin]
            correction.imaginary[bin] = error.imaginary[bin] * gain[bin]
        }
        for part in 0..<partCount {
            let (far, path) = (past.part(slot(part &+ 1)), background.part(part))
            let variance = uncertainty + part &* Self.width
            let least = Self.processNoise * Self.processNoisePrior * prior[part]
            for bin in 0..<Self.width {
                let (real, imaginary) = (far.real[bin], far.imaginary[bin])
                let (errorReal, errorImaginary) = (correction.real[bin], correction.imaginary[bin])
                path.real[bin] += variance[bin] * (real * errorReal + imaginary * errorImaginary)
                path.imaginary[bin] += variance[bin] * (real * errorImaginary - imaginary * errorReal)
                let learnt = Self.share * variance[bin] * far.power(bin) * gain[bin]
                variance[bin] =
                    (1 - Self.processNoise) * (1 - learnt) * variance[bin]
                    + Self.processNoise * path.power(bin) + least
            }
        }
    }

    /// Makes some of the background's parts no longer than a part is, which the corrections do not keep: two at a time,
    /// each of which has a real response, in one transform there and one back.
    private func constrain() {
        for _ in 0..<min(Self.constrainedPairs, (partCount + 1) / 2) {
            let first = constrained
            let second = min(first &+ 1, partCount &- 1)
            constrained = first &+ 2 >= partCount ? 0 : first &+ 2
            transform.synthesise(background.part(first), background.part(second))
            (transform.first + Self.hop).update(repeating: 0, count: Self.size - Self.hop)
            (transform.second + Self.hop).update(repeating: 0, count: Self.size - Self.hop)
            transform.analyse(into: background.part(first), background.part(second))
        }
    }

    /// Leaves the background's estimate at the end of the transform's first signal, the foreground's at that of the second.
    private func estimate() {
        let (back, fore) = (correction, error)
        back.clear()
        fore.clear()
        for part in 0..<partCount {
            let far = past.part(slot(part))
            back.add(far, times: background.part(part))
            fore.add(far, times: foreground.part(part))
        }
        transform.synthesise(back, fore)
    }

    /// Subtracts both estimates, and decides which is heard.
    private func judge(
        _ captured: UnsafeMutableBufferPointer<Float>,
        _ remainder: UnsafeMutableBufferPointer<Float>
    ) {
        let overlap = Self.size - Self.hop
        let (backEstimate, foreEstimate) = (transform.first + overlap, transform.second + overlap)
        var (before, back, fore): (Float, Float, Float) = (0, 0, 0)
        for index in 0..<Self.hop {
            let sample = captured[index] - Self.preemphasis * captureMemory
            captureMemory = captured[index]
            backgroundError[index] = sample - backEstimate[index]
            remainder[index] = sample - foreEstimate[index]
            before += sample * sample
            back += backgroundError[index] * backgroundError[index]
            fore += remainder[index] * remainder[index]
        }
        captureEnergy += (before - captureEnergy) * Self.energySmoothing
        backgroundEnergy += (back - backgroundEnergy) * Self.energySmoothing
        foregroundEnergy += (fore - foregroundEnergy) * Self.energySmoothing
        if backgroundEnergy < foregroundEnergy * Self.clearlyLess {
            foreground.copy(background)
            foregroundEnergy = backgroundEnergy
            for index in 0..<Self.hop {
                remainder[index] += (backgroundError[index] - remainder[index]) * Float(index) / Float(Self.hop)
            }
        } else if backgroundEnergy > foregroundEnergy * Self.clearlyMore {
            background.copy(foreground)
            backgroundEnergy = foregroundEnergy
            for index in 0..<Self.hop { backgroundError[index] = remainder[index] }
        } else if backgroundEnergy < captureEnergy * Self.goodShare {
            foreground.approach(background, by: Self.blending)
        }
        for index in 0..<Self.hop {
            remainderMemory = remainder[index] + Self.preemphasis * remainderMemory
            remainder[index] = remainderMemory
        }
    }

    private func slot(_ age: Int) -> Int { newest >= age ? newest &- age : newest &- age &+ partCount &+ 1 }

    private static var hop: Int { EchoCanceller.frameCount }
    private static var size: Int { 512 }
    private static var width: Int { size / 2 + 1 }
    /// New frames among those transformed.
    private static var share: Float { Float(hop) / Float(size) }
    private static var preemphasis: Float { 0.9 }
    /// 100 ms.
    private static var observationNoiseSmoothing: Float { 0.1 }
    private static var firstObservationNoise: Float { 1000 }
    /// How much of an echo path is another after 10 ms, in power; the path's own, and in terms of the prior.
    private static var processNoise: Float { 0.0002 }
    private static var processNoisePrior: Float { 2 }
    private static var constrainedPairs: Int { 2 }
    /// 200 ms.
    private static var energySmoothing: Float { 0.05 }
    private static var clearlyLess: Float { 0.93 }
    private static var clearlyMore: Float { 2 }
    /// With 13 dB less than was captured, hardly anyone else speaks.
    private static var goodShare: Float { 0.05 }
    /// A third of a second.
    private static var blending: Float { 0.03 }
}
