import CallBasics
import Synchronization

/// What a player of a file or of samples tells.
package enum PlayerEvent: Sendable, BitwiseCopyable {
    /// The last sample has been played, this tick; so many frames were in all.
    case ended(frameCount: Int)
}

/// Plays samples from memory once, and silence after them.
///
///     (memory) ─► sample player ─► audio
package final class SamplePlayerFilter: ControlledFilter<Never, PlayerEvent>, @unchecked Sendable {
    private let samples: UnsafeMutableBufferPointer<Int16>
    private let frameCount: Int
    private let ended = Atomic(false)
    private var position = 0

    /// A player of `samples`, which are interleaved frames of `format`.
    package init(_ samples: [Int16], format: AudioFormat) {
        self.samples = .allocate(capacity: max(samples.count, 1))
        self.samples.initialize(repeating: 0)
        for (index, sample) in samples.enumerated() { self.samples[index] = sample }
        frameCount = samples.count / format.channelCount
        super.init(
            FilterDescription(
                name: "sample player",
                purpose: "plays \(format.duration(ofFrames: frameCount).milliseconds / 1000) s from memory",
                outputs: [.audio(format)]
            )
        )
    }

    deinit {
        samples.deallocate()
    }

    /// Whether the last sample has been played.
    ///
    /// Thread: any.
    package var isFinished: Bool { ended.load(ordering: .acquiring) }

    package override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var target = block.mutableSamples
        let end = frameCount &* block.channelCount
        let count = min(end &- position, target.count)
        for index in 0..<count { target[index] = samples[position &+ index] }
        for index in count..<target.count { target[index] = 0 }
        position &+= count
        guard position >= end, !ended.load(ordering: .relaxed) else { return }
        ended.store(true, ordering: .releasing)
        emit(.ended(frameCount: frameCount), io)
    }
}
