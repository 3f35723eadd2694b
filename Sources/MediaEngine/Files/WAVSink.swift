import Synchronization

/// A WAV file on its way from the media thread: samples wait in a ring until they are written.
///
/// What finds no place there, because the disk is too far behind, is counted, and is silent in the file: what comes after
/// it stays where it belongs. Nothing is written for that, which would put the disk further behind; in a pipe, where
/// nothing can be skipped, the rest follows at once.
/// Thread: `write` media; the rest control or background.
package final class WAVSink: WaitingService, @unchecked Sendable {
    /// A run of frames that were left out.
    private struct Gap: BitwiseCopyable {
        /// Frames put into the ring before it.
        let place: Int
        let frameCount: Int
    }

    /// What `write` takes, and the file holds.
    package let format: AudioFormat

    private let writer: Mutex<WAVWriter?>
    private let finalFrameCount = Atomic(0)
    private let ring: RingBuffer<Int16>
    private let gaps: RingBuffer<Gap>
    private let dropped = Atomic(0)
    private let failureMessage = Mutex<WAVError?>(nil)
    private let listener = LossListener<WAVError>()
    let name: String
    private let pipe: PipeEnd?

    // The media thread's own, but that the last gap is read at the end.
    private var putCount = 0
    private let openGap = Atomic(0)

    // Of who holds the writer.
    private var takenCount = 0
    private var nextGap: Gap?
    private let chunk: UnsafeMutableBufferPointer<Int16>

    /// A sink into `writer`.
    ///
    /// - Parameters:
    ///   - writer: The file.
    ///   - slack: Sound that may wait for the disk before some is dropped.
    package init(_ writer: consuming sending WAVWriter, slack: Duration = .seconds(2)) {
        format = writer.format
        name = writer.path
        pipe = writer.pipe
        ring = RingBuffer(minimumCapacity: format.frameCount(in: slack) * format.channelCount)
        gaps = RingBuffer(minimumCapacity: 256)
        chunk = .allocate(capacity: 4096 / format.channelCount * format.channelCount)
        chunk.initialize(repeating: 0)
        self.writer = Mutex(writer)
    }

    deinit {
        chunk.deallocate()
    }

    /// Why samples no longer reach the file, or nil.
    package var failure: WAVError? { failureMessage.withLock { $0 } }

    /// Frames left out, because the disk was too far behind.
    package var droppedFrameCount: Int { dropped.load(ordering: .relaxed) }

    /// Whether it is a pipe, whose reader is waited for.
    package var waitsForOthers: Bool { pipe != nil }

    /// Frames in the file.
    package var frameCount: Int {
        writer.withLock { $0?.frameCount } ?? finalFrameCount.load(ordering: .acquiring)
    }

    /// Tells `handler` as soon as samples are lost, once for each reason.
    ///
    /// Thread: `handler` runs where the sink is served.
    func whenFailing(_ handler: @escaping @Sendable (WAVError) -> Void) {
        listener.set(handler)
    }

    // MARK: Media

    /// Adds whole frames, or leaves them all out when the disk is too far behind; answers the frames left out.
    ///
    /// Thread: media.
    package func write(_ samples: Span<Int16>) -> Int {
        let frameCount = samples.count / format.channelCount
        let gap = openGap.load(ordering: .relaxed)
        guard ring.freeCount >= samples.count, gap == 0 || gaps.freeCount > 0 else {
            openGap.store(gap &+ frameCount, ordering: .releasing)
            dropped.wrappingAdd(frameCount, ordering: .relaxed)
            return frameCount
        }
        if gap > 0 {
            gaps.push(Gap(place: putCount, frameCount: gap))
            openGap.store(0, ordering: .releasing)
        }
        ring.push(contentsOf: samples)
        putCount &+= frameCount
        return 0
    }

    // MARK: Background

    /// Writes what waits.
    package func serve() {
        let isOpen = writer.withLock { writer in
            if let writer { move(into: writer) }
            return writer != nil
        }
        if isOpen { listener.tell(failure, gap: droppedFrameCount > 0 ? incomplete : nil) }
    }

    /// Waits no longer than need be for the reader of a pipe: the file is to be closed.
    package func hurry() { pipe?.hurry() }

    /// Writes what waits, completes the header and closes the file; what comes later is dropped.
    ///
    /// - Parameter frameCount: Frames to keep, when the file holds more; nil keeps all. A pipe keeps all.
    /// - Throws: `WAVError` when some samples could not be written.
    package func close(keeping frameCount: Int? = nil) throws(WAVError) {
        hurry()
        let isComplete = try writer.withLock { writer throws(WAVError) in
            guard let open = writer.take() else { return true }
            move(into: open)
            skip(openGap.exchange(0, ordering: .acquiring), in: open)
            if let frameCount { try open.truncate(to: frameCount) }
            finalFrameCount.store(open.frameCount, ordering: .releasing)
            try open.close()
            return droppedFrameCount == 0
        }
        if let failure { throw failure }
        if !isComplete { throw incomplete }
    }

    private func move(into writer: WAVWriter) {
        while true {
            // Asked first: the gaps before what waits by now are there, too.
            let waiting = ring.count
            nextGap = nextGap ?? gaps.pop()
            var limit = min(waiting, chunk.count)
            if let gap = nextGap {
                guard gap.place > takenCount else {
                    skip(gap.frameCount, in: writer)
                    nextGap = nil
                    continue
                }
                limit = min(limit, (gap.place - takenCount) * format.channelCount)
            }
            guard limit > 0 else { return }
            var target = UnsafeMutableBufferPointer(rebasing: chunk[..<limit]).mutableSpan
            let count = ring.pop(into: &target)
            takenCount += count / format.channelCount
            write(count, into: writer)
        }
    }

    private func skip(_ frameCount: Int, in writer: WAVWriter) {
        attempt { () throws(WAVError) in try writer.skip(frameCount) }
    }

    /// Writes the first samples of the chunk.
    private func write(_ count: Int, into writer: WAVWriter) {
        attempt { () throws(WAVError) in try writer.write(UnsafeBufferPointer(rebasing: chunk[..<count]).span) }
    }

    /// Does `body` unless something has failed before.
    private func attempt(_ body: () throws(WAVError) -> Void) {
        guard failure == nil else { return }
        do throws(WAVError) { try body() } catch { failureMessage.withLock { $0 = error } }
    }

    private var incomplete: WAVError {
        let milliseconds = droppedFrameCount * 1000 / format.sampleRate
        return WAVError(
            .incomplete,
            "\(name) lacks \(milliseconds) ms of sound: its disk or reader was too far behind. Write to a faster one."
        )
    }
}
