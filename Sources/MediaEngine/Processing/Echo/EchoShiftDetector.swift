import Glibc

/// Notices that the echo has moved against its estimate by a few ms: samples were lost in an xrun, or doubled.
///
/// The canceller's estimate of the echo is the echo itself as long as it is right. When samples are lost, the two still
/// look alike, apart from the shift, which their correlation shows after a tenth of a second of sound; the adaptive
/// filter alone would take seconds.
/// Pure. Shape: mono `Int16` at 16 kHz. Thread: one at a time, any.
final class EchoShiftDetector {
    private let transform = FourierTransform(count: 1024)
    private let real: UnsafeMutablePointer<Float>
    private let imaginary: UnsafeMutablePointer<Float>
    /// The last 1024 samples of what was captured and of the estimate.
    private let capture: UnsafeMutablePointer<Float>
    private let estimate: UnsafeMutablePointer<Float>
    private let correlation: UnsafeMutablePointer<Float>
    /// A window without edges, which would look like sounds of their own.
    private let taper: UnsafeMutablePointer<Float>
    private var filled = 0
    private var candidate = 0
    private var holdOff = 0
    /// Blocks in the correlation, the older ones for less.
    private var weight: Float = 0

    init() {
        real = .zeros(Self.window)
        imaginary = .zeros(Self.window)
        capture = .zeros(Self.window)
        estimate = .zeros(Self.window)
        correlation = .zeros(2 * Self.width)
        taper = .zeros(Self.window)
        for index in 0..<Self.window {
            let angle = 2 * Double.pi * (Double(index) + 0.5) / Double(Self.window)
            taper[index] = Float(0.5 - 0.5 * cos(angle))
        }
    }

    deinit {
        for memory in [real, imaginary, capture, estimate, correlation, taper] { memory.deallocate() }
    }

    /// Hears what was captured and what the canceller made of it.
    ///
    /// - Parameters:
    ///   - captured: What the microphone gave.
    ///   - remainder: What the linear canceller left of it, as many samples.
    /// - Returns: The samples by which the echo came later than estimated, negative for earlier; 0 nearly always.
    func process(captured: Span<Int16>, remainder: Span<Int16>) -> Int {
        var shift = 0
        for index in 0..<min(captured.count, remainder.count) {
            let near = Float(captured[index])
            capture[filled] = near
            estimate[filled] = near - Float(remainder[index])
            filled &+= 1
            if filled == Self.window {
                shift = evaluate()
                filled = Self.window / 2
                capture.update(from: capture + filled, count: filled)
                estimate.update(from: estimate + filled, count: filled)
            }
        }
        return shift
    }

    /// Forgets what it has heard, and rests until the adaptive filter has seen the reference in its new place.
    func reset() {
        filled = 0
        holdOff = Self.rest
        forget()
    }

    private func forget() {
        correlation.update(repeating: 0, count: 2 * Self.width)
        weight = 0
        candidate = 0
    }

    private func evaluate() -> Int {
        var (near, far, left): (Float, Float, Float) = (0, 0, 0)
        for index in 0..<Self.window {
            let isInner = index >= Self.window / 4 && index < Self.window / 4 * 3
            real[index] = isInner ? capture[index] * taper[2 &* (index &- Self.window / 4)] : 0
            imaginary[index] = estimate[index] * taper[index]
            near += capture[index] * capture[index]
            far += estimate[index] * estimate[index]
            let difference = capture[index] - estimate[index]
            left += difference * difference
        }
        guard holdOff == 0 else {
            holdOff &-= 1
            return 0
        }
        guard near > Self.audibleEnergy, far > near * 0.1 else { return 0 }
        // An estimate that fits has not moved; so what is remembered is only of the time since it ceased to fit.
        guard left > near * 0.1 else {
            forget()
            return 0
        }
        transform.transform(real, imaginary)
        let nearFloor = near * Self.whiteningFloor
        let farFloor = far * Self.whiteningFloor
        for index in 0..<Self.width {
            let bin = Self.lowestBin &+ index
            let mirror = Self.window &- bin
            let nearReal = (real[bin] + real[mirror]) * 0.5
            let nearImaginary = (imaginary[bin] - imaginary[mirror]) * 0.5
            let farReal = (imaginary[bin] + imaginary[mirror]) * 0.5
            let farImaginary = (real[mirror] - real[bin]) * 0.5
            let nearPower = nearReal * nearReal + nearImaginary * nearImaginary + nearFloor
            let farPower = farReal * farReal + farImaginary * farImaginary + farFloor
            let scale = 1 / (nearPower * farPower).squareRoot()
            let sum = correlation + 2 &* index
            sum[0] = sum[0] * Self.memory + (nearReal * farReal + nearImaginary * farImaginary) * scale
            sum[1] = sum[1] * Self.memory + (nearImaginary * farReal - nearReal * farImaginary) * scale
        }
        weight = weight * Self.memory + 1
        return findPeak()
    }

    private func findPeak() -> Int {
        real.update(repeating: 0, count: Self.window)
        imaginary.update(repeating: 0, count: Self.window)
        for index in 0..<Self.width {
            real[Self.lowestBin &+ index] = correlation[2 &* index]
            imaginary[Self.lowestBin &+ index] = correlation[2 &* index &+ 1]
        }
        transform.transform(imaginary, real)
        let range = Self.window / 4
        var (best, highest, sum): (Int, Float, Float) = (0, 0, 0)
        for lag in -range..<range {
            let power = self.power(at: lag)
            sum += power
            if power > highest { (best, highest) = (lag, power) }
        }
        let unmoved = max(power(at: -1), power(at: 0), power(at: 1))
        let most = Float(Self.width) * weight
        let isClear =
            highest > 2.5 * unmoved && highest > most * most * Self.leastLikeness
            && highest * Float(2 * range) > sum * Self.leastConfidence
        defer { candidate = isClear ? best : 0 }
        guard isClear, candidate == best else { return 0 }
        return best
    }

    private func power(at lag: Int) -> Float {
        let index = lag & (Self.window &- 1)
        return real[index] * real[index] + imaginary[index] * imaginary[index]
    }

    private static var window: Int { 1024 }
    /// 125 Hz.
    private static var lowestBin: Int { 8 }
    /// Bins up to 6 kHz.
    private static var width: Int { 376 }
    /// 160 ms, in blocks of 32 ms.
    private static var memory: Float { 0.82 }
    private static var whiteningFloor: Float { 0.001 }
    /// The share of the power of a correlation of equals at which two are held to be the same but for the shift.
    private static var leastLikeness: Float { 0.01 }
    /// The power of the peak over the mean.
    private static var leastConfidence: Float { 20 }
    /// A window that can be heard: -60 dBov.
    private static var audibleEnergy: Float { 1024 * 32 * 32 }
    /// Blocks without a judgement after the reference was moved.
    private static var rest: Int { 8 }
}
