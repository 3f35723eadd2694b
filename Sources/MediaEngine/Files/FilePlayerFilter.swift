import Synchronization

/// Plays a WAV file into the graph: the file's first sample is the first sample out, and silence follows its last.
///
///     (file) ──► player ──► audio
package final class FilePlayerFilter: ControlledFilter<Never, PlayerEvent>, @unchecked Sendable {
    /// The file's side, to be served in the background.
    package let feed: WAVFeed

    private let ended = Atomic(false)
    private var playedFrameCount = 0
    private var hasToldEnd = false

    /// A player of `feed`.
    package init(_ feed: WAVFeed) {
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
    package convenience init(
        path: String,
        format: AudioFormat,
        repetition: FileRepetition = .once
    ) throws(WAVError) {
        self.init(WAVFeed(try WAVReader(path: path), format: format, repetition: repetition))
    }

    /// Whether the last sample has been played.
    ///
    /// Thread: any.
    package var isFinished: Bool { ended.load(ordering: .acquiring) }

    /// Plays the next block.
    ///
    /// Thread: media.
    package override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        let count = feed.read(into: &samples)
        for index in count..<max(count, samples.count) { samples[index] = 0 }
        playedFrameCount &+= count / feed.format.channelCount
        guard !hasToldEnd, feed.isEnded else { return }
        ended.store(true, ordering: .releasing)
        // Who waits must hear of it: what finds no place is told in the next tick.
        hasToldEnd = offer(.ended(frameCount: playedFrameCount), io)
    }
}
