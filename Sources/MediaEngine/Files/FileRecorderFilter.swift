/// Records what it hears into a WAV file.
///
///     audio ──► recorder ──► (file)
///
/// Events: "dropped" with the frames lost, when the disk is too far behind for the ring between.
public final class FileRecorderFilter: Filter, @unchecked Sendable {
    /// What has been recorded.
    public struct Statistics: Hashable, Sendable, BitwiseCopyable {
        /// Frames handed to the file.
        public var frames = 0
        /// Frames lost because the disk was too far behind.
        public var framesDropped = 0

        /// All zero.
        public init() {}
    }

    /// The file's side, to be served in the background, and closed in the end.
    public let sink: WAVSink
    /// What has been recorded so far.
    ///
    /// Thread: any.
    public let statistics = LatestValue(Statistics())

    private var counters = Statistics()
    private var isRecording: Bool
    private let start: MediaTime

    /// A recorder into `sink`.
    ///
    /// - Parameters:
    ///   - sink: The file.
    ///   - start: The tick to begin with; nil waits for `startCommand`.
    public init(_ sink: WAVSink, start: MediaTime? = .zero) {
        self.sink = sink
        self.start = start ?? .zero
        isRecording = start != nil
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
    public convenience init(path: String, format: AudioFormat, start: MediaTime? = .zero) throws(WAVError) {
        self.init(WAVSink(try WAVWriter(path: path, format: format)), start: start)
    }

    /// Records from the next tick on.
    public var startCommand: GraphCommand { GraphCommand(to: self, "start") }

    /// Records no more, until started again.
    public var stopCommand: GraphCommand { GraphCommand(to: self, "stop") }

    /// Obeys "start" and "stop".
    ///
    /// Thread: media.
    public override func handle(_ command: GraphCommand) {
        if command.name == "start" { isRecording = true }
        if command.name == "stop" { isRecording = false }
    }

    /// Records the block.
    ///
    /// Thread: media.
    public override func process(_ io: borrowing FilterIO) {
        guard isRecording, io.time >= start else { return }
        let block = io.input()
        let dropped = sink.write(block.samples)
        counters.frames &+= block.frameCount &- dropped
        counters.framesDropped &+= dropped
        if dropped > 0 { io.emit("dropped", value: Int64(dropped)) }
        statistics.publish(counters)
    }
}
