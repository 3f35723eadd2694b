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
    private var hasToldEnd = false

    /// A player of `samples`, which are interleaved frames of `format`.
    ///
    /// Where a tick holds no whole number of its frames, they are converted to 48000 Hz first, which may take milliseconds.
    package init(_ samples: [Int16], format: AudioFormat) {
        let (given, portFormat) = (samples.count / format.channelCount, format.portFormat)
        let isConverted = portFormat != format
        frameCount =
            isConverted ? (given * portFormat.sampleRate + format.sampleRate - 1) / format.sampleRate : given
        self.samples = .allocate(capacity: max(frameCount * format.channelCount, 1))
        self.samples.initialize(repeating: 0)
        if isConverted {
            Self.convert(samples, format, to: portFormat, into: self.samples)
        } else {
            for index in 0..<(given * format.channelCount) { self.samples[index] = samples[index] }
        }
        super.init(
            FilterDescription(
                name: "sample player",
                purpose: "plays \(format.duration(ofFrames: given).milliseconds / 1000) s from memory",
                outputs: [.audio(portFormat)]
            )
        )
    }

    private static func convert(
        _ samples: [Int16],
        _ format: AudioFormat,
        to other: AudioFormat,
        into target: UnsafeMutableBufferPointer<Int16>
    ) {
        let resampler = Resampler(
            from: format.sampleRate,
            to: other.sampleRate,
            channelCount: format.channelCount,
            quality: .high,
            skipsDelay: true
        )
        var all = target.mutableSpan
        var end = resampler.process(samples.span, into: &all).produced * format.channelCount
        while end < target.count {
            let rest = UnsafeMutableBufferPointer(rebasing: target[end...])
            var part = rest.mutableSpan
            let count = resampler.drain(into: &part)
            guard count > 0 else { return }
            end += count * format.channelCount
        }
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
        guard position >= end, !hasToldEnd else { return }
        ended.store(true, ordering: .releasing)
        // Who waits must hear of it: what finds no place is told in the next tick.
        hasToldEnd = offer(.ended(frameCount: frameCount), io)
    }
}
