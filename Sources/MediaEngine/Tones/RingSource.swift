import CallBasics

/// The sound of a ringing telephone: a cadenced tone, or recorded samples with a pause after each round.
///
/// Units: positions in frames.
/// Thread: made on the control side, then used by one thread; allocates only when made.
package final class RingSource {
    /// The shape of the blocks.
    package let format: AudioFormat
    /// Silence between two rounds of recorded samples unless another is given.
    package static let defaultPause: Duration = .seconds(2)

    private let tone: PreparedTone?
    private let generator: ToneGenerator
    private let mixer: ToneMixer
    private let samples: UnsafeMutablePointer<Int16>
    private let frameCount: Int
    private let roundFrameCount: Int
    private var position = 0
    /// The frame at which the ring is silent for good, or `Int.max` while it rings.
    private var end = 0

    /// A ring of the tone `spec`.
    ///
    /// Throws: `ToneError` when the tone cannot be played in `format`.
    package init(tone spec: ToneSpec, format: AudioFormat) throws(ToneError) {
        tone = try PreparedTone(spec, sampleRate: format.sampleRate)
        self.format = format
        generator = ToneGenerator(format: format)
        mixer = ToneMixer(format: format)
        samples = .allocate(capacity: 1)
        frameCount = 0
        roundFrameCount = 0
    }

    /// A ring of recorded interleaved `samples`, which have the sample rate of `format`, with `pause` after each round.
    ///
    /// Mono samples sound in every channel; several channels become mono as their mean.
    /// Throws: `ToneError` when there are no samples, or their channels do not fit.
    package init(
        samples recorded: [Int16],
        channelCount: Int,
        format: AudioFormat,
        pause: Duration = RingSource.defaultPause
    ) throws(ToneError) {
        guard channelCount > 0, recorded.count >= channelCount else {
            throw ToneError(.unsuitableSamples, "The ring has no samples. Give a file with at least one frame.")
        }
        let channels = format.channelCount
        guard channelCount == channels || channelCount == 1 || channels == 1 else {
            throw ToneError(
                .unsuitableSamples,
                "A ring of \(channelCount) channels cannot be played in \(channels). "
                    + "Use mono, or \(channels) channels."
            )
        }
        self.format = format
        tone = nil
        generator = ToneGenerator(format: format)
        mixer = ToneMixer(format: format)
        let frames = recorded.count / channelCount
        frameCount = frames
        roundFrameCount = frames + max(0, format.frameCount(in: pause))
        samples = .allocate(capacity: frames * channels)
        for frame in 0..<frames {
            let source = recorded[(frame * channelCount)..<((frame + 1) * channelCount)]
            let mean = source.reduce(0) { $0 + Int($1) } / channelCount
            for channel in 0..<channels {
                let value = channelCount == channels ? source[source.startIndex + channel] : Int16(clamping: mean)
                (samples + (frame * channels + channel)).initialize(to: value)
            }
        }
    }

    deinit {
        samples.deallocate()
    }

    /// Whether something sounds, or will after a pause.
    package var isRinging: Bool { tone == nil ? position < end : generator.isActive }

    /// Begins the first round at the next frame; recorded samples that already ring go on.
    package func start() {
        if let tone {
            generator.play(tone)
        } else if end != .max {
            position = 0
            end = .max
        }
    }

    /// Fades over 5 ms.
    package func stop() {
        generator.stopTone()
        if end == .max { end = position &+ mixer.rampFrameCount }
    }

    /// Writes the next frames over `block`, a whole number of frames.
    package func render(into block: inout MutableSpan<Int16>) {
        block.update(repeating: 0)
        guard tone == nil else {
            generator.render(into: &block)
            while generator.nextNotice() != nil {}
            return
        }
        let channels = format.channelCount
        let frames = block.count / channels
        var frame = 0
        while frame < frames, position < end {
            let offset = position % roundFrameCount
            let isSounding = offset < frameCount
            let run = min(frames &- frame, end &- position, (isSounding ? frameCount : roundFrameCount) &- offset)
            if isSounding { copy(run, from: offset, to: &block, at: frame) }
            frame &+= run
            position &+= run
        }
    }

    private func copy(_ count: Int, from offset: Int, to block: inout MutableSpan<Int16>, at frame: Int) {
        let channels = format.channelCount
        let source = samples + offset &* channels
        let target = frame &* channels
        for index in 0..<(count &* channels) {
            block[target &+ index] = source[index]
        }
        guard end != .max else { return }
        for index in 0..<count {
            let gain = mixer.gain(at: .max / 2, of: .max / 2 &+ end &- position &- index)
            for channel in 0..<channels {
                let sample = target &+ index &* channels &+ channel
                block[sample] = Int16(clamping: Int((Float(block[sample]) * gain).rounded()))
            }
        }
    }
}
