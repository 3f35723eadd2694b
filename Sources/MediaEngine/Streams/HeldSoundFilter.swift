import Synchronization

/// Whether the other side hears the sound for who is held.
///
/// Thread: any.
final class HeldSoundControl: Sendable {
    private let playing = Atomic(false)

    var isPlaying: Bool {
        get { playing.load(ordering: .relaxed) }
        set { playing.store(newValue, ordering: .relaxed) }
    }
}

/// Sends the sound for who is held in place of what is said, as long as that is wanted, and goes over without a click.
///
///     said ────────────────────►┌────────────┐─► audio
///     sound for who is held ───►│ held sound │
///                               └────────────┘
///
/// A change is spread over one tick.
final class HeldSoundFilter: Filter, @unchecked Sendable {
    private let control: HeldSoundControl
    private var isPlaying: Bool

    /// A filter for audio of `format` that follows `control`, and begins as that is.
    init(format: AudioFormat, _ control: HeldSoundControl) {
        self.control = control
        isPlaying = control.isPlaying
        super.init(
            FilterDescription(
                name: "held sound",
                purpose: "sends a sound to who is held",
                inputs: [.audio(format), .audio(format, name: "held", isRequired: false)],
                outputs: [.audio(format)],
                worksInPlace: true
            )
        )
    }

    override func process(_ io: borrowing FilterIO) {
        let (said, held, output) = (io.input(), io.input(1), io.output())
        let wasPlaying = isPlaying
        isPlaying = control.isPlaying
        guard wasPlaying != isPlaying else { return output.copy(from: isPlaying ? held : said) }
        output.copy(from: said)
        var samples = output.mutableSamples
        fade(&samples, held.samples, channelCount: output.channelCount, comesIn: isPlaying)
    }
}

/// Goes evenly from `samples` to `other` when that comes in, else the other way.
@_noAllocation @_noLocks
private func fade(_ samples: inout MutableSpan<Int16>, _ other: Span<Int16>, channelCount: Int, comesIn: Bool) {
    let frameCount = Float(max(samples.count / channelCount, 1))
    for index in 0..<min(samples.count, other.count) {
        let done = Float(index / channelCount &+ 1) / frameCount
        let share = comesIn ? done : 1 - done
        let (first, second) = (Float(samples[index]), Float(other[index]))
        samples[index] = Int16(clamping: Int32(first + (second - first) * share))
    }
}
