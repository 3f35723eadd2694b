import CallBasics
import Synchronization

/// A call's sink that is the application itself: what is heard of the call comes as samples, block by block.
///
///     let ears = StreamSink(format: AudioFormat(sampleRate: 16000))
///     configuration.sink = .stream(ears)
///     for await block in ears { recogniser.hear(block.samples) }
///
/// Blocks that nobody takes wait in a queue of bounded length; when it is full, new ones are left out and counted.
/// Positions count the frames that were heard since the call began, those left out among them.
/// Shape: interleaved samples.
/// Thread: any. One call uses it, and ends it with its own end; a call that could not be made leaves it as it was. One task
/// iterates.
public final class StreamSink: AsyncSequence, Sendable {
    /// A piece of what was heard.
    public struct Block: Sendable {
        /// Frames heard before it.
        public let position: Int
        /// Its samples.
        public let samples: [Int16]
    }

    /// That somebody begins or stops to speak; positions in frames.
    public enum SpeechEvent: Sendable, Hashable {
        /// Speech begins at this position.
        case started(position: Int)
        /// It was over at this position: 200 ms of silence have followed it.
        case stopped(position: Int)
    }

    /// The samples that come.
    public let format: AudioFormat
    /// When the other side speaks.
    ///
    /// One task reads it; the newest 256 events wait for it. It finishes with the end of the call.
    public let speech: AsyncStream<SpeechEvent>

    let filter: StreamSinkFilter

    private let speechSink: AsyncStream<SpeechEvent>.Continuation
    private let blockFrameCount: Int
    private let state = Mutex(State())

    private struct State {
        var waiting: CheckedContinuation<Void, Never>?
        var hasEnded = false
    }

    /// A sink of samples of `format`.
    ///
    /// Where 10 ms are no whole number of frames, as at 22050 Hz, the first one of a rate computes the filter that converts it,
    /// which takes milliseconds, tens of them at worst.
    /// - Parameters:
    ///   - format: What comes, at any rate; the call's sound is converted.
    ///   - blockDuration: The length of each block.
    ///   - capacity: Sound that may wait.
    public init(
        format: AudioFormat,
        blockDuration: Duration = .milliseconds(20),
        capacity: Duration = .seconds(2)
    ) {
        self.format = format
        blockFrameCount = Swift.max(format.frameCount(in: blockDuration), 1)
        filter = StreamSinkFilter(format: format, capacity: Swift.max(capacity, blockDuration * 2))
        (speech, speechSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
    }

    /// Frames left out because nobody took what waited.
    public var lostFrameCount: Int { filter.lostFrameCount }

    /// Takes the next block if it is there.
    public func tryRead() -> Block? { filter.read(blockFrameCount) }

    /// Takes the next block; suspends until it is there, and answers nil once the call has ended or the task is cancelled.
    func read() async -> Block? {
        while true {
            if let block = tryRead() { return block }
            guard !Task.isCancelled, !state.withLock({ $0.hasEnded }) else { return nil }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let hasEnded = state.withLock { state in
                        if !state.hasEnded { state.waiting = continuation }
                        return state.hasEnded
                    }
                    guard !hasEnded else { return continuation.resume() }
                    filter.ask(for: blockFrameCount)
                    // What came in between is not told again.
                    if Task.isCancelled || filter.holds(blockFrameCount) { resume() }
                }
            } onCancel: {
                resume()
            }
        }
    }

    /// An iterator over the blocks.
    public func makeAsyncIterator() -> Iterator { Iterator(sink: self) }

    /// Takes block after block, until the call ends.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let sink: StreamSink

        /// The next block; nil once the call has ended.
        public mutating func next() async -> Block? { await sink.read() }
    }

    /// Takes what the filter tells.
    ///
    /// Thread: background.
    func handle(_ event: StreamSinkFilter.Event) {
        switch event {
        case .ready: resume()
        case .speechStarted(let position): speechSink.yield(.started(position: position))
        case .speechStopped(let position): speechSink.yield(.stopped(position: position))
        }
    }

    /// Whether its call has ended.
    var isClosed: Bool { state.withLock { $0.hasEnded } }

    /// The call has ended: what waits can still be taken, and nobody waits for more.
    func close() {
        state.withLock { $0.hasEnded = true }
        speechSink.finish()
        resume()
    }

    private func resume() {
        let waiting = state.withLock { $0.waiting.take() }
        waiting?.resume()
    }
}
