import MediaEngine

/// Records what a card hears, with the time of each block, on a thread of its own.
final class ChirpListener {
    /// Where a block begins in the recording, and when it was heard.
    struct Mark: BitwiseCopyable {
        var frame: Int
        var time: MediaTime
    }

    /// What was heard, at the cards' rate.
    private(set) var samples: [Int16] = []
    private(set) var marks: [Mark] = []

    private let session: CardSession
    private let recorder = BlockRecorderFilter(format: CallEngine.cardFormat)

    /// Begins to listen to `card`.
    ///
    /// - Throws: `CardError` when the card does not open.
    init(_ card: any SoundCard) async throws {
        session = try CardSession()
        do {
            let capture = try await session.open(card, .capture).filter
            var graph = Graph()
            try graph.connect(capture, to: recorder)
            try session.run(graph, pacer: CardPacer(capture: capture, playback: nil), name: "listener")
        } catch {
            await session.stop()
            throw error
        }
    }

    /// Records until a second after the last chirp of `source`, or Ctrl-C, and calls `look` with the time again and again.
    func listen(to source: ChirpSourceFilter, _ look: (MediaTime) -> Void) async {
        let start = MonotonicClock.current
        let length = ChirpSourceFilter.settling + ChirpSourceFilter.interval * (source.count + 1)
        var progress = ProgressLine(total: length.roundedSeconds)
        defer { progress.clear() }
        while await Interruption.wait(.milliseconds(50)) {
            take()
            let now = MonotonicClock.current
            look(now)
            progress.show((now - start).roundedSeconds)
            guard now < start + length else { return }
        }
    }

    /// Why the recording is not whole; nil when the card stayed.
    var failure: ToolFailure? { session.watch.failure(at: MonotonicClock.current) }

    /// Ends the recording.
    func stop() async { await session.stop() }

    /// The time at which `frame` of the recording was heard.
    func time(ofFrame frame: Double) -> MediaTime {
        let mark = marks.last { Double($0.frame) <= frame } ?? marks.first ?? Mark(frame: 0, time: .zero)
        let seconds = (frame - Double(mark.frame)) / Double(CallEngine.cardFormat.sampleRate)
        return mark.time + .nanoseconds(Int64(seconds * 1e9))
    }

    /// The first frame that was heard at `time` or later.
    func frame(at time: MediaTime) -> Int {
        guard let mark = marks.last(where: { $0.time <= time }) else { return 0 }
        return min(mark.frame + CallEngine.cardFormat.frameCount(in: time - mark.time), samples.count)
    }

    private func take() {
        while let mark = recorder.marks.pop() { marks.append(mark) }
        while let sample = recorder.samples.pop() { samples.append(sample) }
    }
}

/// Hands samples and the time of each block to another thread.
///
///     audio ──► block recorder ──► (another thread)
private final class BlockRecorderFilter: Filter, @unchecked Sendable {
    let samples = RingBuffer<Int16>(minimumCapacity: 1 << 18)
    let marks = RingBuffer<ChirpListener.Mark>(minimumCapacity: 1 << 10)
    private var frameCount = 0

    init(format: AudioFormat) {
        super.init(
            FilterDescription(name: "block recorder", purpose: "Records with times.", inputs: [.audio(format)])
        )
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        // A mark without its samples would shift all that follows.
        guard samples.freeCount >= block.frameCount, marks.freeCount > 0 else { return }
        marks.push(ChirpListener.Mark(frame: frameCount, time: io.time))
        frameCount &+= samples.push(contentsOf: block.samples)
    }
}
