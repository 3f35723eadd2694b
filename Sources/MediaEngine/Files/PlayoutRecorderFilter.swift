/// Records what a stream plays, from its first packet to the end of its last, gaps and what fills them included.
///
///     audio ──► playout recorder ──► (file)
///
/// Before the first packet there is nothing to record. After the last one the file goes on until it is closed, since
/// nobody knows yet that it was the last; `endFrame` then says how much of it to keep.
public final class PlayoutRecorderFilter: Filter, @unchecked Sendable {
    /// The file's side, to be served in the background, and closed with `endFrame` in the end.
    public let sink: WAVSink
    /// The frame of the file after the last packet's end.
    ///
    /// Thread: any.
    public let endFrame = LatestValue(0)

    private let playout: PlayoutFilter
    private var frameCount = 0
    private var playedCount = 0

    /// A recorder into `sink` of what comes from `playout`, by way of filters that do not delay it.
    public init(_ sink: WAVSink, of playout: PlayoutFilter) {
        self.sink = sink
        self.playout = playout
        super.init(
            FilterDescription(
                name: "playout recorder",
                purpose: "Records what is played, from the first packet to the end of the last.",
                inputs: [.audio(sink.format)]
            )
        )
    }

    /// Records the block.
    ///
    /// Thread: media.
    public override func process(_ io: borrowing FilterIO) {
        let statistics = playout.currentStatistics
        guard statistics.hasPlayed else { return }
        let block = io.input()
        if statistics.buffer.playedCount != playedCount {
            playedCount = statistics.buffer.playedCount
            let rest = statistics.lastPlayEnd - io.time
            // Rounded to the nearest frame: the instants are rounded to nanoseconds.
            let frames = (rest.nanoseconds &* Int64(sink.format.sampleRate) &+ 500_000_000) / 1_000_000_000
            endFrame.publish(frameCount &+ Int(frames))
        }
        frameCount &+= block.frameCount &- sink.write(block.samples)
    }
}
