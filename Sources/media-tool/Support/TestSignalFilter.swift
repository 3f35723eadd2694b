import MediaEngine

/// Gives the built-in test signal for a time of any length, then silence.
///
///     test signal ─► audio
///
/// The signal repeats every 8 s, so that much is kept.
/// Events: "ended" in the tick of the last sample.
final class TestSignalFilter: Filter, @unchecked Sendable {
    private let table: UnsafeMutableBufferPointer<Int16>
    private let sampleCount: Int
    private var position = 0
    private var hasEnded = false

    init(format: AudioFormat, frameCount: Int) {
        let samples = TestSignal.samples(8, format)
        table = .allocate(capacity: samples.count)
        _ = table.initialize(from: samples)
        sampleCount = frameCount * format.channelCount
        super.init(
            FilterDescription(
                name: "test signal",
                purpose: "Gives chirps of half a second, one per second.",
                outputs: [.audio(format)]
            )
        )
    }

    deinit {
        table.deallocate()
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for index in samples.indices {
            samples[index] = position < sampleCount ? table[position % table.count] : 0
            position &+= 1
        }
        guard !hasEnded, position >= sampleCount else { return }
        hasEnded = true
        io.emit("ended", value: Int64(sampleCount))
    }
}
