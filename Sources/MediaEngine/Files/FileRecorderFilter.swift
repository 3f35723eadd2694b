/// Records what it hears into a WAV file.
///
///     audio ──► recorder ──► (file)
package final class FileRecorderFilter: Filter, @unchecked Sendable {
    /// What has been recorded.
    package struct Statistics: Hashable, Sendable, BitwiseCopyable {
        /// Frames handed to the file.
        package var frames = 0
        /// Frames lost because the disk was too far behind: in a file they are silent, in a pipe left out.
        package var framesDropped = 0

        /// Both together: how long was recorded.
        package var frameCount: Int { frames + framesDropped }

        /// All zero.
        package init() {}
    }

    /// The file's side, to be served in the background, and closed in the end.
    package let sink: WAVSink
    /// What has been recorded so far.
    ///
    /// Thread: any.
    package let statistics = LatestValue(Statistics())

    private var counters = Statistics()
    /// A recorder into `sink`.
    package init(_ sink: WAVSink) {
        self.sink = sink
        super.init(
            FilterDescription(
                name: "file recorder",
                purpose: "Records what it hears into a WAV file.",
                inputs: [.audio(sink.format)]
            )
        )
    }

    /// Creates the file at `path` to record `format`.
    ///
    /// - Throws: `WAVError` when the file cannot be written.
    package convenience init(path: String, format: AudioFormat) throws(WAVError) {
        self.init(WAVSink(try WAVWriter(path: path, format: format)))
    }

    /// Records the block.
    ///
    /// Thread: media.
    package override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        let dropped = sink.write(block.samples)
        counters.frames &+= block.frameCount &- dropped
        counters.framesDropped &+= dropped
        statistics.publish(counters)
    }
}
