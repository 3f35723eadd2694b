import CallBasics
import Synchronization

/// A call's source that is the application itself: it writes samples when it has some, and the call speaks them.
///
///     let voice = StreamSource(format: AudioFormat(sampleRate: 24000))
///     configuration.source = .stream(voice)
///     try await voice.write(samples)          // waits while too much is queued
///     let end = voice.mark()                  // told as played, or as dropped by a flush
///     voice.flush()                           // silent from the next packet on
///
/// What is written waits in a queue of bounded length, at any rate, and is brought to the call's. Positions count the frames
/// that were written, at their rate. The media thread never waits for the application: where nothing waits, it sends silence, and
/// tells so.
/// Shape: interleaved samples, whole frames.
/// Thread: any. One call uses it, and ends it with its own end; a call that could not be made leaves it as it was.
public final class StreamSource: Sendable {
    /// What happened to what was written; positions in frames.
    public enum Event: Sendable, Hashable {
        /// Everything before the mark has been played.
        case played(StreamMark)
        /// The mark was set before a `flush` that threw away what it ended, or in what had not been played when the call ended.
        case dropped(StreamMark)
        /// Nothing waits any more: the call sends silence from this position on.
        case starved(position: Int)
        /// Sound is there again.
        case resumed(position: Int)
        /// All has been played after `finish`; what became of the marks before it has been told.
        case ended(position: Int)
    }

    /// The samples that are written.
    public let format: AudioFormat
    /// What happens to what was written.
    ///
    /// One task reads it; the newest 2048 events wait for it, twice as many as marks can. It finishes with the end of the
    /// call, not with `finish`.
    public let events: AsyncStream<Event>

    let filter: StreamSourceFilter

    private struct State {
        /// Frames that were written.
        var written = 0
        var nextMark: UInt64 = 0
        /// Times that `flush` was called: what was being written then is not gone on with.
        var flushCount = 0
        var isFinished = false
        var isClosed = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// Who is told in the place of `events`.
        var listener: (@Sendable (Event) -> Void)?
    }

    private let eventSink: AsyncStream<Event>.Continuation
    private let state = Mutex(State())

    /// A source of samples of `format`.
    ///
    /// Where 10 ms are no whole number of frames, as at 22050 Hz, the first one of a rate computes the filter that converts it,
    /// which takes milliseconds, tens of them at worst.
    /// - Parameters:
    ///   - format: What is written.
    ///   - capacity: Sound that may wait before `write` does.
    public convenience init(format: AudioFormat, capacity: Duration = .seconds(2)) {
        self.init(format: format, capacity: capacity, recordCapacity: nil)
    }

    /// As the other one; what it plays is kept for `played`, as much as `recordCapacity`.
    package init(format: AudioFormat, capacity: Duration, recordCapacity: Duration?) {
        self.format = format
        filter = StreamSourceFilter(format: format, capacity: capacity, recordCapacity: recordCapacity)
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(2048))
    }

    /// Sound that was written and waits to be played.
    public var queued: Duration {
        let written = state.withLock { $0.written }
        return format.duration(ofFrames: max(written - filter.position, 0))
    }

    /// Frames that have been played, or thrown away by `flush`.
    public var position: Int { filter.position }

    /// What was played, silence too, at a position that counts all frames since the call began, as a sink's blocks have it.
    ///
    /// What is before that is forgotten. Thread: one reader.
    /// - Returns: So many frames; nil where they are not kept.
    package func played(_ frameCount: Int, at position: Int) -> [Int16]? { filter.played(frameCount, at: position) }

    /// Whether all before a position has been played, as `played` counts it.
    ///
    /// In a tick a call hears first, and plays then.
    package func hasPlayed(upTo end: Int) -> Bool { filter.hasPlayed(upTo: end) }

    /// Adds samples, as many as there is room for.
    ///
    /// - Parameter samples: Whole frames.
    /// - Returns: The frames that were taken.
    @discardableResult
    public func tryWrite(_ samples: Span<Int16>) -> Int {
        state.withLock { state in
            guard !state.isFinished else { return 0 }
            let taken = filter.write(samples)
            state.written += taken
            return taken
        }
    }

    /// Adds samples, unless it was flushed since `flushCount`; answers the frames that were taken, nil when there will be none.
    private func tryWrite(_ samples: Span<Int16>, ifNotFlushedSince flushCount: Int) -> Int? {
        state.withLock { state in
            guard !state.isFinished, state.flushCount == flushCount else { return nil }
            let taken = filter.write(samples)
            state.written += taken
            return taken
        }
    }

    /// Adds samples; suspends while too much waits, so that whoever makes them goes no faster than they are spoken.
    ///
    /// A `flush` ends it, too: what has not been taken by then never is.
    /// - Parameter samples: Whole frames; what is left of one at the end is not taken.
    /// - Throws: `CancellationError` when the task is cancelled; some of the samples may have been taken.
    public func write(_ samples: [Int16]) async throws {
        var next = 0
        let flushCount = state.withLock { $0.flushCount }
        while samples.count - next >= format.channelCount {
            try Task.checkCancellation()
            guard let taken = tryWrite(samples.span.extracting(next...), ifNotFlushedSince: flushCount) else { return }
            next += taken * format.channelCount
            guard samples.count - next >= format.channelCount else { return }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isOver = state.withLock { state in
                        let isOver = state.isFinished || state.flushCount != flushCount
                        if !isOver { state.waiting.append(continuation) }
                        return isOver
                    }
                    guard !isOver else { return continuation.resume() }
                    filter.askForRoom()
                    // What came in between is not told again.
                    if Task.isCancelled || filter.hasRoom { resumeWriters() }
                }
            } onCancel: {
                resumeWriters()
            }
        }
    }

    /// Marks the end of what was written so far: an event tells when it is played, or that it was dropped.
    ///
    /// One that is set after a `flush` lies behind it, also where nothing has been written in between: it is told as played as
    /// soon as the flush is done.
    ///
    /// - Returns: The mark; nil when 1024 marks wait, and once the call has ended.
    @discardableResult
    public func mark() -> StreamMark? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            let mark = StreamMark(number: state.nextMark, position: state.written)
            guard filter.add(mark) else { return nil }
            state.nextMark += 1
            return mark
        }
    }

    /// Throws away what waits, with the marks in it and at its end, and what a `write` that is suspended still holds: the call
    /// is silent from the next packet on, after a ramp of 5 ms, until more is written.
    public func flush() {
        state.withLock { state in
            state.flushCount += 1
            filter.flush(to: state.written, before: state.nextMark)
        }
        resumeWriters()
    }

    /// Whether the call sends silence, and what waits stays where it is.
    ///
    /// It goes quiet and comes back by a ramp of 5 ms; what was heard of the ramp is not heard again. Marks are told when what is
    /// before them has been played, and what was thrown away by a `flush` stays away.
    public var isPaused: Bool {
        get { filter.isPaused }
        set { filter.isPaused = newValue }
    }

    /// Ends the source: what waits is played, then `ended` is told, and nothing more is taken.
    public func finish() {
        state.withLock { state in
            state.isFinished = true
            filter.finish()
        }
        resumeWriters()
    }

    /// Takes what the filter tells.
    ///
    /// Thread: background.
    func handle(_ event: StreamSourceFilter.Event) {
        switch event {
        case .played(let mark): tell(.played(mark))
        case .dropped(let mark): tell(.dropped(mark))
        case .starved(let position): tell(.starved(position: position))
        case .resumed(let position): tell(.resumed(position: position))
        case .ended(let position): tell(.ended(position: position))
        case .room: resumeWriters()
        }
    }

    private func tell(_ event: Event) {
        if let listener = state.withLock(\.listener) { listener(event) } else { eventSink.yield(event) }
    }

    /// Has all that happens from now on told to `listener`, and not by `events`, which still finishes with the call.
    ///
    /// It is told at once: on the background thread, in virtual time within `advance`. Before the first sound is written.
    package func redirectEvents(to listener: @escaping @Sendable (Event) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Whether its call has ended.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// The call has ended: whoever writes hears no more but of the marks that wait, and nobody waits.
    ///
    /// Thread: control, once the media thread no longer touches the filter.
    func close() {
        state.withLock { $0.isClosed = true }
        finish()
        for event in filter.takeFates() { handle(event) }
        eventSink.finish()
    }

    private func resumeWriters() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

/// A place in what was written to a `StreamSource`.
public struct StreamMark: Sendable, Hashable, BitwiseCopyable {
    /// Which mark it is, counted from 0.
    package let number: UInt64
    /// Frames written before it.
    public let position: Int
}
