import CallBasics
import Synchronization

/// Gives an application what is heard, and tells when somebody speaks.
///
///     audio ─► stream sink ─► (application)
///
/// Where a tick holds no whole number of the application's frames, as at 22050 Hz, it takes 48000 Hz and gives one more in
/// some ticks.
/// Thread: `process` media; the rest control, one at a time.
package final class StreamSinkFilter: ControlledFilter<Never, StreamSinkFilter.Event>, @unchecked Sendable {
    /// What happened; positions in frames.
    package enum Event: Sendable, BitwiseCopyable {
        /// As much waits as was asked for.
        case ready
        case speechStarted(position: Int)
        case speechStopped(position: Int)
    }

    private let format: AudioFormat
    private let frames: FrameQueue
    private let wanted = Atomic<Int>(0)
    /// Nil where a tick holds whole frames of `format`.
    private let resampler: Resampler?
    /// What `resampler` gives in a tick.
    private let converted: UnsafeMutableBufferPointer<Int16>

    // The media thread's own.
    private var position = 0
    private var activity = VoiceActivity()
    private var speechStart = 0
    private var speechEnd = 0
    /// Whether the last that was told is that somebody speaks.
    private var isSpeechTold = false

    init(format: AudioFormat, capacity: Duration) {
        self.format = format
        frames = FrameQueue(frameCount: format.frameCount(in: capacity), channelCount: format.channelCount)
        let portFormat = format.portFormat
        var latency = Duration.zero
        if portFormat == format {
            (resampler, converted) = (nil, UnsafeMutableBufferPointer(start: nil, count: 0))
        } else {
            let resampler = Resampler(
                from: portFormat.sampleRate,
                to: format.sampleRate,
                channelCount: format.channelCount
            )
            latency = portFormat.duration(ofFrames: resampler.delayFrameCount)
            self.resampler = resampler
            converted = .allocate(capacity: (format.frameCount(in: .milliseconds(10)) + 2) * format.channelCount)
            converted.initialize(repeating: 0)
        }
        super.init(
            FilterDescription(
                name: "stream sink",
                purpose: "gives the application what is heard",
                inputs: [.audio(portFormat)],
                latency: latency
            )
        )
    }

    deinit {
        converted.deallocate()
    }

    // MARK: Control

    var lostFrameCount: Int { frames.lostFrameCount }

    func holds(_ frameCount: Int) -> Bool { frames.holds(frameCount) }

    /// Asks for an event once so much waits.
    func ask(for frameCount: Int) { wanted.store(frameCount, ordering: .releasing) }

    func read(_ frameCount: Int) -> StreamSink.Block? {
        // Asked first: a gap is told before what comes behind it.
        guard frames.holds(frameCount) else { return nil }
        let position = frames.position()
        return frames.read(frameCount).map { StreamSink.Block(position: position, samples: $0) }
    }

    // MARK: Media

    package override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        guard let resampler else { return take(block.samples, io) }
        var target = converted.mutableSpan
        let produced = resampler.process(block.samples, into: &target).produced
        take(target.span.extracting(first: produced &* format.channelCount), io)
    }

    private func take(_ block: Span<Int16>, _ io: borrowing FilterIO) {
        let frameCount = block.count / format.channelCount
        hear(block, frameCount, io)
        frames.put(block)
        position &+= frameCount
        let wanted = wanted.load(ordering: .acquiring)
        guard wanted > 0, holds(wanted) else { return }
        self.wanted.store(0, ordering: .relaxed)
        guard !offer(.ready, io) else { return }
        // Who waits must hear of it: what finds no place is told in the next tick, unless other blocks are asked for.
        _ = self.wanted.compareExchange(expected: 0, desired: wanted, ordering: .relaxed)
    }

    private func hear(_ block: Span<Int16>, _ frameCount: Int, _ io: borrowing FilterIO) {
        let wasActive = activity.isActive
        let isActive = activity.process(block)
        if isActive, !wasActive { speechStart = position }
        // What finds no place is told in the next tick, unless it is over by then.
        if isActive != isSpeechTold {
            let event: Event =
                isActive ? .speechStarted(position: speechStart) : .speechStopped(position: speechEnd)
            if offer(event, io) { isSpeechTold = isActive }
        }
        if activity.isLoud { speechEnd = position &+ frameCount }
    }
}
