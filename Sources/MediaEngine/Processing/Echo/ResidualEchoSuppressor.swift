import Glibc

/// Makes softer what an adaptive filter leaves of an echo, frequency by frequency.
///
/// What is left is taken to be a share of the estimated echo: in each band the least share that was seen in the last
/// 0.75 to 1.5 s with an echo, so that a near end that pauses now and then is not taken for echo. While only the far
/// end speaks the echo is overestimated and the floor is low; a near end lifts both at once.
/// Pure. Shape: mono at 16 kHz, 160 frames at a time, in windows that overlap by half. `process` allocates nothing.
/// Thread: one at a time, any.
/// Source: Ephraim and Malah, "Speech enhancement using a minimum mean-square error short-time spectral amplitude
/// estimator", IEEE Trans. ASSP 32 (1984), for the decision-directed ratio; Martin, "Noise power spectral density
/// estimation based on optimal smoothing and minimum statistics", IEEE Trans. SAP 9 (2001), for the minima.
final class ResidualEchoSuppressor {
    /// The time by which sound comes out later than it goes in.
    var latency: Duration { .milliseconds(10) }

    private let transform = RealPairTransform(count: ResidualEchoSuppressor.size)
    private let taper: UnsafeMutablePointer<Float>
    /// The spectra of what is left and of the estimate.
    private let left: HalfSpectra
    private let estimate: HalfSpectra
    private let silence: HalfSpectra
    /// The 10 ms before of what is left and of the estimate, and the second half of the last output.
    private let lastRemainder: UnsafeMutablePointer<Float>
    private let lastEstimate: UnsafeMutablePointer<Float>
    private let lastOutput: UnsafeMutablePointer<Float>
    /// By bin: the powers of the echo in what is left, and of the last output.
    private let echo: UnsafeMutablePointer<Float>
    private let lastPower: UnsafeMutablePointer<Float>
    private let bands: UnsafeMutableBufferPointer<Band>
    private var soundingTicks = 0
    /// How much of what is left is the near end, 0 to 1.
    private var nearShare: Float = 0

    private struct Band {
        let bins: Range<Int>
        /// Smoothed powers of what is left and of the estimate.
        var power: Float = 1
        var estimatePower: Float = 1
        /// The least share in this period and in the one before.
        var least: Float = 1
        var leastBefore: Float = 1
    }

    init() {
        taper = .zeros(2 * Self.hop)
        for index in 0..<2 * Self.hop {
            let angle = Double.pi * (Double(index) + 0.5) / Double(Self.hop)
            taper[index] = Float((0.5 - 0.5 * cos(angle)).squareRoot())
        }
        left = HalfSpectra(width: Self.width)
        estimate = HalfSpectra(width: Self.width)
        silence = HalfSpectra(width: Self.width)
        lastRemainder = .zeros(Self.hop)
        lastEstimate = .zeros(Self.hop)
        lastOutput = .zeros(Self.hop)
        echo = .zeros(Self.width)
        lastPower = .zeros(Self.width)
        let ranges = Self.bandRanges()
        bands = .allocate(capacity: ranges.count)
        for (index, range) in ranges.enumerated() { bands.initializeElement(at: index, to: Band(bins: range)) }
    }

    deinit {
        for spectra in [left, estimate, silence] { spectra.deallocate() }
        for memory in [taper, lastRemainder, lastEstimate, lastOutput, echo, lastPower] { memory.deallocate() }
        bands.deallocate()
    }

    /// Forgets how good the adaptive filter was.
    func reset() {
        for index in bands.indices { bands[index] = Band(bins: bands[index].bins) }
        echo.update(repeating: 0, count: Self.width)
        lastPower.update(repeating: 0, count: Self.width)
        soundingTicks = 0
        nearShare = 0
    }

    /// Works on 10 ms.
    ///
    /// - Parameters:
    ///   - remainder: What the adaptive filter left, 160 frames.
    ///   - estimate: The echo that it took away, as many.
    ///   - output: What is left of the 10 ms before.
    func process(
        remainder: UnsafeMutableBufferPointer<Float>,
        estimate: UnsafeMutableBufferPointer<Float>,
        into output: inout MutableSpan<Int16>
    ) {
        analyse(remainder, estimate)
        estimateEcho()
        applyGains()
        transform.synthesise(left, silence)
        let sound = transform.first
        for index in 0..<Self.hop {
            let sample = lastOutput[index] + sound[index] * taper[index]
            lastOutput[index] = sound[Self.hop &+ index] * taper[Self.hop &+ index]
            output[index] = Int16(max(-32768, min(32767, sample.rounded())))
        }
    }

    private func analyse(
        _ remainder: UnsafeMutableBufferPointer<Float>,
        _ echo: UnsafeMutableBufferPointer<Float>
    ) {
        let (first, second) = (transform.first, transform.second)
        for index in 0..<Self.hop {
            first[index] = lastRemainder[index] * taper[index]
            second[index] = lastEstimate[index] * taper[index]
            first[Self.hop &+ index] = remainder[index] * taper[Self.hop &+ index]
            second[Self.hop &+ index] = echo[index] * taper[Self.hop &+ index]
            lastRemainder[index] = remainder[index]
            lastEstimate[index] = echo[index]
        }
        (first + 2 * Self.hop).update(repeating: 0, count: Self.size - 2 * Self.hop)
        (second + 2 * Self.hop).update(repeating: 0, count: Self.size - 2 * Self.hop)
        transform.analyse(into: left, estimate)
    }

    /// Finds the power of the echo in what is left, and how much of the rest is the near end.
    private func estimateEcho() {
        var isSounding = false
        var near: Float = 0
        for index in bands.indices {
            let bins = bands[index].bins
            var (power, estimatePower): (Float, Float) = (0, 0)
            for bin in bins {
                power += left.power(bin)
                estimatePower += estimate.power(bin)
            }
            power /= Float(bins.count)
            estimatePower /= Float(bins.count)
            bands[index].power += (power - bands[index].power) * Self.powerSmoothing
            bands[index].estimatePower += (estimatePower - bands[index].estimatePower) * Self.powerSmoothing
            if estimatePower > Self.audiblePower {
                isSounding = true
                bands[index].least = min(bands[index].least, bands[index].power / (bands[index].estimatePower + 1))
            }
            let share = Self.bias * min(bands[index].least, bands[index].leastBefore)
            var sum: Float = 0
            for bin in bins {
                echo[bin] = max(share * estimate.power(bin), echo[bin] * Self.decay)
                sum += echo[bin]
            }
            let excess = max(power / (sum / Float(bins.count) + 1) - 1, 0)
            near += excess / (excess + 1)
        }
        let share = max(0, min(1, 3 * near / Float(bands.count) - 0.5))
        nearShare = share > nearShare ? share : nearShare + (share - nearShare) * Self.nearRelease
        guard isSounding else { return }
        soundingTicks &+= 1
        guard soundingTicks >= Self.period else { return }
        soundingTicks = 0
        for index in bands.indices {
            bands[index].leastBefore = bands[index].least
            bands[index].least = 1
        }
    }

    private func applyGains() {
        let excess = 1 + Self.farExcess * (1 - nearShare)
        let floor = Self.farFloor * pow(Self.nearFloor / Self.farFloor, nearShare)
        for bin in 0..<Self.width {
            let power = left.power(bin)
            let expected = (echo[bin] + 1) * excess
            let ratio = Self.memory * lastPower[bin] / expected + (1 - Self.memory) * max(power / expected - 1, 0)
            // Where there is hardly any echo, nothing is made softer.
            let presence = expected / (expected + Self.faintPower)
            let least = (presence * floor * floor + 1 - presence).squareRoot()
            let gain = max(ratio / (1 + ratio), least)
            lastPower[bin] = gain * gain * power
            left.real[bin] *= gain
            left.imaginary[bin] *= gain
        }
    }

    /// Two bins each up to 500 Hz, then a sixth of their frequency.
    private static func bandRanges() -> [Range<Int>] {
        var edges = Array(stride(from: 0, to: 16, by: 2))
        var edge = 16.0
        while edge < Double(width) {
            edges.append(Int(edge.rounded()))
            edge *= 1.16
        }
        edges.append(width)
        return zip(edges, edges.dropFirst()).map { $0..<$1 }
    }

    private static var hop: Int { EchoCanceller.frameCount }
    private static var size: Int { 512 }
    private static var width: Int { size / 2 + 1 }
    /// 30 ms.
    private static var powerSmoothing: Float { 0.3 }
    /// The power of a bin of the estimate that can be heard.
    private static var audiblePower: Float { 3000 }
    private static var faintPower: Float { 1000 }
    /// By how much the echo is more than its least.
    private static var bias: Float { 3 }
    /// What is left of an echo 10 ms later at the least: a room's reverberation.
    private static var decay: Float { 0.8 }
    /// Ticks with an echo over which the least share is looked for, twice.
    private static var period: Int { 75 }
    /// 100 ms.
    private static var nearRelease: Float { 0.1 }
    /// By how much the echo is overestimated, and the softest it is made, when the far end speaks alone: -40 dB.
    private static var farExcess: Float { 30 }
    private static var farFloor: Float { 0.01 }
    /// -12 dB.
    private static var nearFloor: Float { 0.25 }
    /// How much the last output counts in the ratio of near end and echo.
    private static var memory: Float { 0.9 }
}
