import MediaEngine
import Synchronization

/// Gives the built-in test signal for a time of any length, then silence.
///
///     test signal ─► audio
///
/// The signal repeats, so that only its length is kept.
final class TestSignalFilter: Filter, @unchecked Sendable {
    private let table: UnsafeMutableBufferPointer<Int16>
    private let sampleCount: Int
    private let ended = Atomic(false)
    private var position = 0

    init(format: AudioFormat, frameCount: Int) {
        let samples = SpeechSignal.samples(format)
        table = .allocate(capacity: samples.count)
        _ = table.initialize(from: samples)
        sampleCount = frameCount * format.channelCount
        super.init(
            FilterDescription(
                name: "test signal",
                purpose: "Gives syllables and pauses as in speech.",
                outputs: [.audio(format)]
            )
        )
    }

    deinit {
        table.deallocate()
    }

    /// Whether the last sample has been given.
    ///
    /// Thread: any.
    var isFinished: Bool { ended.load(ordering: .acquiring) }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for index in samples.indices {
            samples[index] = position < sampleCount ? table[position % table.count] : 0
            position &+= 1
        }
        if position >= sampleCount { ended.store(true, ordering: .releasing) }
    }
}
