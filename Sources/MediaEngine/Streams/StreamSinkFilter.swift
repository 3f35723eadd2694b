import CallBasics
import Synchronization

/// Gives an application what is heard, and tells when somebody speaks.
///
///     audio ─► stream sink ─► (application)
///
/// Thread: `process` media; the rest control, one at a time.
package final class StreamSinkFilter: ControlledFilter<Never, StreamSinkFilter.Event>, @unchecked Sendable {
    /// What happened; positions in frames.
    package enum Event: Sendable, BitwiseCopyable {
        /// As much waits as was asked for.
        case ready
        case speechStarted(position: Int)
        case speechStopped(position: Int)
    }

    /// A run of frames that were left out.
    private struct Gap: BitwiseCopyable {
        /// Frames put into the queue before it.
        let place: Int
        let frameCount: Int
    }

    private let format: AudioFormat
    private let samples: RingBuffer<Int16>
    private let gaps: RingBuffer<Gap>
    private let wanted = Atomic<Int>(0)
    private let lost = Atomic<Int>(0)

    // Of who reads.
    private var readCount = 0
    private var passedGaps = 0
    private var nextGap: Gap?

    // The media thread's own.
    private var position = 0
    private var putCount = 0
    private var openGap = 0
    private var activity = VoiceActivity()
    private var speechEnd = 0

    init(format: AudioFormat, capacity: Duration) {
        self.format = format
        samples = RingBuffer(minimumCapacity: format.frameCount(in: capacity) * format.channelCount)
        gaps = RingBuffer(minimumCapacity: 256)
        super.init(
            FilterDescription(
                name: "stream sink",
                purpose: "gives the application what is heard",
                inputs: [.audio(format)]
            )
        )
    }

    // MARK: Control

    var lostFrameCount: Int { lost.load(ordering: .relaxed) }

    func holds(_ frameCount: Int) -> Bool { samples.count >= frameCount * format.channelCount }

    /// Asks for an event once so much waits.
    func ask(for frameCount: Int) { wanted.store(frameCount, ordering: .releasing) }

    func read(_ frameCount: Int) -> StreamSink.Block? {
        guard holds(frameCount) else { return nil }
        while let gap = nextGap ?? gaps.pop() {
            guard gap.place <= readCount else {
                nextGap = gap
                break
            }
            nextGap = nil
            passedGaps += gap.frameCount
        }
        var block = [Int16](repeating: 0, count: frameCount * format.channelCount)
        var target = block.mutableSpan
        _ = samples.pop(into: &target)
        defer { readCount += frameCount }
        return StreamSink.Block(position: readCount + passedGaps, samples: block)
    }

    // MARK: Media

    package override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        hear(block, io)
        if samples.freeCount >= block.samples.count, openGap == 0 || gaps.freeCount > 0 {
            if openGap > 0 {
                gaps.push(Gap(place: putCount, frameCount: openGap))
                openGap = 0
            }
            samples.push(contentsOf: block.samples)
            putCount &+= block.frameCount
        } else {
            openGap &+= block.frameCount
            lost.wrappingAdd(block.frameCount, ordering: .relaxed)
        }
        position &+= block.frameCount
        let wanted = wanted.load(ordering: .acquiring)
        guard wanted > 0, holds(wanted) else { return }
        self.wanted.store(0, ordering: .relaxed)
        guard !emit(.ready, io) else { return }
        // Who waits must hear of it: what finds no place is told in the next tick, unless other blocks are asked for.
        _ = self.wanted.compareExchange(expected: 0, desired: wanted, ordering: .relaxed)
    }

    private func hear(_ block: AudioBlock, _ io: borrowing FilterIO) {
        let wasActive = activity.isActive
        let isActive = activity.process(block.samples)
        if isActive, !wasActive {
            emit(.speechStarted(position: position), io)
        } else if wasActive, !isActive {
            emit(.speechStopped(position: speechEnd), io)
        }
        if activity.isLoud { speechEnd = position &+ block.frameCount }
    }
}
