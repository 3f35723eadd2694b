import CallBasics

/// Records what a stream plays, from its first packet to the end of its last, gaps and what fills them included.
///
///     audio ──► playout recorder ──► (file)
///
/// Before the first packet there is nothing to record. After the last one the file goes on until it is closed, since
/// nobody knows yet that it was the last; `endFrame` then says how much of it to keep.
package final class PlayoutRecorderFilter: ControlledFilter<PlayoutRecorderFilter.Command, Never>, @unchecked Sendable {
    /// What it can be asked for.
    package enum Command: Sendable, BitwiseCopyable {
        /// Listens to another playout, which has taken the place of the one before, from now on.
        case follow(Unmanaged<PlayoutFilter>)
    }

    /// The file's side, to be served in the background, and closed with `endFrame` in the end.
    package let sink: WAVSink
    /// The frame of the file after the last packet's end.
    ///
    /// Thread: any.
    package let endFrame = LatestValue(0)

    private var playout: Unmanaged<PlayoutFilter>
    private var frameCount = 0
    private var playedCount = 0

    /// A recorder into `sink` of what comes from `playout`, by way of filters that do not delay it.
    package init(_ sink: WAVSink, of playout: PlayoutFilter) {
        self.sink = sink
        self.playout = .passUnretained(playout)
        super.init(
            FilterDescription(
                name: "playout recorder",
                purpose: "Records what is played, from the first packet to the end of the last.",
                inputs: [.audio(sink.format)]
            )
        )
    }

    package override func handle(_ command: Command) {
        switch command {
        case .follow(let playout): self.playout = playout
        }
    }

    /// Records the block.
    ///
    /// Thread: media.
    package override func process(_ io: borrowing FilterIO) {
        let statistics = playout._withUnsafeGuaranteedRef { $0.currentStatistics }
        guard statistics.hasPlayed else { return }
        let block = io.input()
        if statistics.buffer.playedCount != playedCount {
            playedCount = statistics.buffer.playedCount
            let rest = statistics.lastPlayEnd - io.time
            // Rounded to the nearest frame: the instants are rounded to nanoseconds.
            let frames = (rest.nanoseconds &* Int64(sink.format.sampleRate) &+ 500_000_000) / 1_000_000_000
            endFrame.publish(frameCount &+ Int(frames))
        }
        // Silence stands in the file for what finds no place.
        _ = sink.write(block.samples)
        frameCount &+= block.frameCount
    }
}
