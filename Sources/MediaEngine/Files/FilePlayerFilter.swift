import Synchronization

/// Plays a WAV file into the graph: the file's first sample is the first sample out, and silence follows its last.
///
///     (file) ──► player ──► audio
///
/// Events: "ended" in the tick of the last sample, with the frames played.
public final class FilePlayerFilter: Filter, @unchecked Sendable {
    /// The file's side, to be served in the background.
    public let feed: WAVFeed

    private let ended = Atomic(false)
    private var playedFrameCount = 0
    private var hasEnded = false

    /// A player of `feed`.
    public init(_ feed: WAVFeed) {
        self.feed = feed
        super.init(
            FilterDescription(
                name: "file player",
                purpose: "Plays a WAV file, and silence after it.",
                outputs: [.audio(feed.format)]
            )
        )
    }

    /// Opens the file at `path` to be played as `format`.
    ///
    /// - Throws: `WAVError` when the file cannot be read.
    public convenience init(
        path: String,
        format: AudioFormat,
        repetition: WAVFeed.Repetition = .once
    ) throws(WAVError) {
        self.init(WAVFeed(try WAVReader(path: path), format: format, repetition: repetition))
    }

    /// Whether the last sample has been played.
    ///
    /// Thread: any.
    public var isFinished: Bool { ended.load(ordering: .acquiring) }

    /// Plays the next block.
    ///
    /// Thread: media.
    public override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        let count = feed.read(into: &samples)
        for index in count..<max(count, samples.count) { samples[index] = 0 }
        playedFrameCount &+= count / feed.format.channelCount
        guard !hasEnded, feed.isEnded else { return }
        hasEnded = true
        ended.store(true, ordering: .releasing)
        io.emit("ended", value: Int64(playedFrameCount))
    }
}
