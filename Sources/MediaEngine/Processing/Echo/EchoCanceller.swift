import CallBasics

/// Takes the echo of what is played out of what is captured: an adaptive filter and residual suppression, with the
/// reference kept in line with the echo.
///
///     played ──► delay line ──► adaptive filter ──► (estimate)
///                    ▲                 ▼
///     captured ──────┴───────────────► − ──► residual suppression ──► output
///
/// The filter sees the reference late by the delay found less a few ms, so that a tail no longer than the room suffices.
/// When samples are lost on a card, the estimate and the echo part by as many, and the reference is moved along;
/// when the delay is another altogether, the filter begins anew.
/// Pure. Shape: mono `Int16` at 16 kHz, 10 ms at a time. `process` allocates nothing.
/// Thread: one at a time, any.
package final class EchoCanceller {
    /// Frames that each call of `process` takes and gives.
    package static var frameCount: Int { 160 }
    /// Frames per second.
    package static var sampleRate: Int { 16000 }

    /// What was found and done.
    package private(set) var statistics = EchoStatistics()

    private let adaptive: KalmanEchoFilter
    private let residual: ResidualEchoSuppressor?
    private let noise: NoiseSuppressor?
    private let delays = EchoDelayEstimator()
    private let shifts = EchoShiftDetector()
    /// What was played, in a ring.
    private let played: UnsafeMutablePointer<Int16>
    private let far: UnsafeMutableBufferPointer<Int16>
    /// What was captured, without a constant.
    private let heard: UnsafeMutableBufferPointer<Int16>
    /// The same, then the estimate of the echo; and what is left without it.
    private let sound: UnsafeMutableBufferPointer<Float>
    private let left: UnsafeMutableBufferPointer<Float>
    private let remainder: UnsafeMutableBufferPointer<Int16>
    private let tailFrameCount: Int

    private var constant: Float = 0
    private var position = 0
    private var referenceDelay = 0
    private var framesSinceFar = EchoCanceller.ringSize
    private var framesAstray = 0
    private var ticksOff = 0
    private var hasConverged = false
    /// Whether the reference was ever put where an estimate wants it.
    private var isPlaced = false
    /// Before and after the adaptive filter, over half a second.
    private var recentCapture: Float = 0
    private var recentRemainder: Float = 0
    private var reduction = EchoReduction()

    /// A canceller of echoes that last for `tail`, 20 to 500 ms.
    ///
    /// - Parameters:
    ///   - tail: How long echoes last.
    ///   - suppressesResidual: Whether what the adaptive filter leaves of them is made softer.
    ///   - suppressesNoise: Whether noise is, too.
    package init(
        tail: Duration = .milliseconds(100),
        suppressesResidual: Bool = true,
        suppressesNoise: Bool = false
    ) {
        let blocks = Int(max(2, min(50, (tail.milliseconds / 10).rounded(.up))))
        tailFrameCount = blocks * Self.frameCount
        adaptive = KalmanEchoFilter(tailFrameCount: tailFrameCount)
        residual = suppressesResidual ? ResidualEchoSuppressor() : nil
        noise = suppressesNoise ? NoiseSuppressor(sampleRate: Self.sampleRate) : nil
        played = .zeros(Self.ringSize)
        far = .zeros(Self.frameCount)
        heard = .zeros(Self.frameCount)
        sound = .zeros(Self.frameCount)
        left = .zeros(Self.frameCount)
        remainder = .zeros(Self.frameCount)
        statistics.tail = .milliseconds(10 * blocks)
    }

    deinit {
        played.deallocate()
        far.deallocate()
        heard.deallocate()
        sound.deallocate()
        left.deallocate()
        remainder.deallocate()
    }

    /// The time by which sound comes out later than it goes in.
    package var latency: Duration { (residual?.latency ?? .zero) + (noise?.latency ?? .zero) }

    /// Takes the echo out of 10 ms.
    ///
    /// - Parameters:
    ///   - captured: What the microphone gave.
    ///   - reference: What was played at the same time; its echo comes later.
    ///   - output: What was captured without the echo.
    package func process(
        captured: Span<Int16>,
        reference: Span<Int16>,
        into output: inout MutableSpan<Int16>
    ) {
        precondition(captured.count == Self.frameCount && reference.count == Self.frameCount)
        precondition(output.count == Self.frameCount)
        delays.process(captured: captured, played: reference)
        follow()
        delayReference(reference)
        cancel(captured)
        let shift = shifts.process(
            captured: UnsafeBufferPointer(heard).span,
            remainder: UnsafeBufferPointer(remainder).span
        )
        if shift != 0, hasConverged { realign(by: shift) }
        let isFar = framesSinceFar < tailFrameCount
        let (capturedBefore, _) = measure(UnsafeBufferPointer(heard).span)
        watch(captured: capturedBefore, isFar: isFar)
        if let residual {
            residual.process(remainder: left, estimate: sound, into: &output)
        } else {
            for index in 0..<Self.frameCount { output[index] = remainder[index] }
        }
        noise?.process(&output)
        guard isFar else { return }
        let (remaining, _) = measure(output.span)
        reduction.note(captured: capturedBefore, remaining: remaining)
        statistics.returnLossEnhancement = reduction.value
    }

    /// Moves the reference, because echoes come later by `frameCount` frames at 16 kHz than until now, or earlier if it
    /// is negative: that many were lost in the capture, or in the playback.
    package func realign(by frameCount: Int) {
        let wanted = referenceDelay + frameCount
        shifts.reset()
        ticksOff = 0
        guard wanted >= 0, wanted <= Self.longestDelay else { return restart() }
        referenceDelay = wanted
        delays.shift(by: frameCount)
        statistics.realignmentCount &+= 1
    }

    /// Forgets everything: other cards.
    package func reset() {
        delays.reset()
        statistics.delay = nil
        referenceDelay = 0
        isPlaced = false
        reduction = EchoReduction()
        recentCapture = 0
        recentRemainder = 0
        restart()
    }

    /// Moves the reference when the delay was found to be far from what is assumed.
    private func follow() {
        guard let found = delays.delay else { return }
        statistics.delay = found.duration
        let lead = found.frameCount - referenceDelay
        let isOff = lead < Self.leastLead || lead > Self.mostLead
        // The first estimate is followed. From then on what works is left alone, whatever the estimate says, and what
        // worked until now is given a second.
        let isFirst = !isPlaced
        isPlaced = true
        ticksOff = isOff && (isFirst || !isWorking) ? ticksOff &+ 1 : 0
        guard ticksOff > (isFirst || !hasConverged ? 0 : 100) else { return }
        let wanted = min(max(found.frameCount - Self.wantedLead, 0), Self.longestDelay)
        guard wanted != referenceDelay else { return }
        referenceDelay = wanted
        restart()
    }

    /// Whether the adaptive filter has taken away 6 dB lately.
    private var isWorking: Bool { recentRemainder < recentCapture * Self.workingShare }

    private func restart() {
        hasConverged = false
        ticksOff = 0
        adaptive.reset()
        residual?.reset()
        shifts.reset()
        framesAstray = 0
        statistics.restartCount &+= 1
    }

    /// Puts the reference into the ring, and into `far` what was played `referenceDelay` ago.
    private func delayReference(_ reference: Span<Int16>) {
        let mask = Self.ringSize &- 1
        var energy: Int32 = 0
        for index in 0..<Self.frameCount { played[(position &+ index) & mask] = reference[index] }
        let start = position &- referenceDelay
        for index in 0..<Self.frameCount {
            let sample = played[(start &+ index) & mask]
            far[index] = sample
            energy &+= (Int32(sample) &* Int32(sample)) &>> 8
        }
        position = (position &+ Self.frameCount) & mask
        framesSinceFar = energy > Self.audibleEnergy ? 0 : min(framesSinceFar &+ Self.frameCount, Self.ringSize)
    }

    /// Runs the adaptive filter on what was captured, without a constant that some cards add.
    private func cancel(_ captured: Span<Int16>) {
        for index in 0..<Self.frameCount {
            let sample = Float(captured[index])
            sound[index] = sample - constant
            heard[index] = Self.rounded(sound[index])
            constant += sound[index] * Self.constantSmoothing
        }
        adaptive.process(captured: sound, far: far, remainder: left)
        for index in 0..<Self.frameCount {
            sound[index] -= left[index]
            remainder[index] = Self.rounded(left[index])
        }
    }

    private static func rounded(_ sample: Float) -> Int16 { Int16(max(-32768, min(32767, sample.rounded()))) }

    /// Judges the adaptive filter, and begins anew when more comes out of it than goes in for long.
    private func watch(captured: Int64, isFar: Bool) {
        let (remaining, _) = measure(UnsafeBufferPointer(remainder).span)
        framesAstray = remaining > 2 &* captured &+ Self.slightEnergy ? framesAstray &+ 1 : 0
        if framesAstray > 20 { restart() }
        guard isFar else { return }
        recentCapture += (Float(captured) - recentCapture) * Self.recentSmoothing
        recentRemainder += (Float(remaining) - recentRemainder) * Self.recentSmoothing
        if isWorking { hasConverged = true }
    }

    /// 13 Hz.
    private static var constantSmoothing: Float { 0.005 }
    /// A power of two, longer than the longest delay and a block.
    private static var ringSize: Int { 16384 }
    private static var longestDelay: Int { 8192 }
    /// Frames by which the echo's first arrival should come after the filter's first coefficient: 6 ms.
    private static var wantedLead: Int { 96 }
    private static var leastLead: Int { 16 }
    private static var mostLead: Int { 240 }
    /// 10 ms at -60 dBov, divided as in the sum.
    private static var audibleEnergy: Int32 { 160 * 32 * 32 / 256 }
    private static var slightEnergy: Int64 { 160 * 100 * 100 }
    /// Half a second of blocks in which the far end speaks.
    private static var recentSmoothing: Float { 0.02 }
    /// An adaptive filter that takes away 6 dB works.
    private static var workingShare: Float { 0.25 }
}
