/// Records two sounds into the channels of one WAV file.
///
///     left  ──┐
///             ├─► recorder ──► (file)
///     right ──┘
final class StereoRecorderFilter: Filter, @unchecked Sendable {
    /// The file's side, to be served in the background, and closed in the end.
    let sink: WAVSink
    /// One block, interleaved.
    private let frames: UnsafeMutableBufferPointer<Int16>

    /// A recorder into `sink`, which has two channels, of a graph whose tick lasts `tickDuration`.
    init(_ sink: WAVSink, tickDuration: Duration) {
        precondition(sink.format.channelCount == 2)
        self.sink = sink
        frames = .allocate(capacity: sink.format.frameCount(in: tickDuration) * 2)
        frames.initialize(repeating: 0)
        let channel = AudioFormat(sampleRate: sink.format.sampleRate)
        super.init(
            FilterDescription(
                name: "stereo recorder",
                purpose: "Records two sounds into the channels of one WAV file.",
                inputs: [.audio(channel, name: "left"), .audio(channel, name: "right")]
            )
        )
    }

    deinit {
        frames.deallocate()
    }

    /// Records the blocks.
    ///
    /// Thread: media.
    override func process(_ io: borrowing FilterIO) {
        let (left, right) = (io.input(0), io.input(1))
        let (leftSamples, rightSamples) = (left.samples, right.samples)
        for frame in 0..<min(left.frameCount, frames.count / 2) {
            frames[2 &* frame] = leftSamples[frame]
            frames[2 &* frame &+ 1] = rightSamples[frame]
        }
        _ = sink.write(frames.span)
    }
}
