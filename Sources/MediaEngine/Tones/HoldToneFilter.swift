/// A soft tone that comes back, for who is held: 425 Hz for 0.4 s every 5 s, at -30 dBov.
///
///     hold tone ─► audio
final class HoldToneFilter: Filter, @unchecked Sendable {
    private static let frequency = 425.0
    /// The sine's peak, whose level is -30 dBov.
    private static let amplitude: Float = 1036
    private static let (toneMilliseconds, periodMilliseconds, fadeMilliseconds) = (400, 5000, 20)

    private let oscillator: Oscillator
    private let (toneCount, periodCount, fadeCount): (Int, Int, Int)
    private let block: UnsafeMutableBufferPointer<Float>
    private var position = 0

    /// A tone of `format`, in every channel the same, in a graph whose tick lasts 10 ms at most.
    init(format: AudioFormat) {
        let format = format.portFormat
        let rate = format.sampleRate
        oscillator = Oscillator(frequency: Self.frequency, sampleRate: rate)
        toneCount = rate * Self.toneMilliseconds / 1000
        periodCount = rate * Self.periodMilliseconds / 1000
        fadeCount = max(rate * Self.fadeMilliseconds / 1000, 1)
        block = .allocate(capacity: rate / 10)
        block.initialize(repeating: 0)
        super.init(
            FilterDescription(name: "hold tone", purpose: "a soft tone for who is held", outputs: [.audio(format)])
        )
    }

    deinit {
        block.deallocate()
    }

    override func process(_ io: borrowing FilterIO) {
        let output = io.output()
        let frameCount = min(output.frameCount, block.count)
        var samples = output.mutableSamples
        for index in 0..<frameCount { block[index] = 0 }
        guard let first = block.baseAddress else { return }
        oscillator.add(to: first, count: frameCount, from: position, amplitude: Self.amplitude)
        for frame in 0..<frameCount {
            let place = (position &+ frame) % periodCount
            let edge = min(place, toneCount &- place)
            let share = Float(max(min(edge, fadeCount), 0)) / Float(fadeCount)
            let sample = Int16(clamping: Int32((block[frame] * share).rounded()))
            for channel in 0..<output.channelCount { samples[frame &* output.channelCount &+ channel] = sample }
        }
        position &+= frameCount
    }
}
