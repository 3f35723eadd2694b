import CallBasics
import Synchronization

/// Plays what an application writes.
///
///     (application) ─► stream source ─► audio
///
/// Thread: `process` media; the rest control, one at a time.
package final class StreamSourceFilter: ControlledFilter<Never, StreamSourceFilter.Event>, @unchecked Sendable {
    /// What happened; positions in frames.
    package enum Event: Sendable, BitwiseCopyable {
        case played(StreamMark)
        case dropped(StreamMark)
        case starved(position: Int)
        case resumed(position: Int)
        case ended(position: Int)
        /// There is room again for who waits for it.
        case room
    }

    private let format: AudioFormat
    private let samples: RingBuffer<Int16>
    private let marks: RingBuffer<StreamMark>
    private let capacity: Int
    /// Frames taken out of the queue, played or thrown away.
    private let taken = Atomic<Int>(0)
    /// Everything before this frame is to be thrown away.
    private let flushed = Atomic<Int>(0)
    private let isFinished = Atomic(false)
    private let wantsRoom = Atomic(false)

    // The media thread's own.
    private var nextMark: StreamMark?
    private var flushEnd = 0
    private var hasSound = false
    private var hasEnded = false
    private let rampFrameCount: Int

    init(format: AudioFormat, capacity: Duration) {
        self.format = format
        self.capacity = max(format.frameCount(in: capacity), format.frameCount(in: .milliseconds(20)))
        samples = RingBuffer(minimumCapacity: self.capacity * format.channelCount)
        marks = RingBuffer(minimumCapacity: 1024)
        rampFrameCount = max(format.frameCount(in: .milliseconds(5)), 1)
        super.init(
            FilterDescription(
                name: "stream source",
                purpose: "plays what the application writes",
                outputs: [.audio(format)]
            )
        )
    }

    // MARK: Control

    var position: Int { taken.load(ordering: .acquiring) }

    private var freeFrameCount: Int { capacity - samples.count / format.channelCount }

    var hasRoom: Bool { freeFrameCount > 0 }

    func write(_ source: Span<Int16>) -> Int {
        let frameCount = min(source.count / format.channelCount, max(freeFrameCount, 0))
        return samples.push(contentsOf: source.extracting(first: frameCount * format.channelCount))
            / format.channelCount
    }

    func add(_ mark: StreamMark) -> Bool { marks.push(mark) }

    func flush(to frame: Int) { flushed.store(frame, ordering: .releasing) }

    func finish() { isFinished.store(true, ordering: .releasing) }

    /// Asks for an event once half of the queue is free.
    func askForRoom() { wantsRoom.store(true, ordering: .releasing) }

    // MARK: Media

    package override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var target = block.mutableSamples
        // Asked first: what is written after it is sound that comes after the end.
        let mayEnd = isFinished.load(ordering: .acquiring)
        let end = flushed.load(ordering: .acquiring)
        var played = 0
        if end > flushEnd {
            tellMarks(io)
            played = fadeOut(into: &target, before: end, block.frameCount)
            throwAway(before: end, io)
        } else {
            played = samples.pop(into: &target) / format.channelCount
            advance(by: played)
        }
        for index in (played &* format.channelCount)..<target.count { target[index] = 0 }
        tellMarks(io)
        tellSound(played: played, of: block.frameCount, mayEnd: mayEnd, io)
        if wantsRoom.load(ordering: .relaxed), freeFrameCount >= capacity / 2 {
            wantsRoom.store(false, ordering: .relaxed)
            // Who waits must hear of it: what finds no place is told in the next tick.
            if !emit(.room, io) { wantsRoom.store(true, ordering: .relaxed) }
        }
    }

    /// Plays the last 5 ms before silence, growing quieter; answers the frames played.
    private func fadeOut(into target: inout MutableSpan<Int16>, before end: Int, _ blockFrameCount: Int) -> Int {
        let channelCount = format.channelCount
        let wanted = min(rampFrameCount, blockFrameCount, max(end &- taken.load(ordering: .relaxed), 0))
        var part = target._mutatingExtracting(first: wanted &* channelCount)
        let count = hasSound ? samples.pop(into: &part) / channelCount : 0
        for frame in 0..<count {
            let weight = count &- frame
            for channel in 0..<channelCount {
                let index = frame &* channelCount &+ channel
                part[index] = Int16(truncatingIfNeeded: Int(part[index]) &* weight / (count &+ 1))
            }
        }
        advance(by: count)
        return count
    }

    private func throwAway(before end: Int, _ io: borrowing FilterIO) {
        let rest = max(end &- taken.load(ordering: .relaxed), 0)
        let dropped = samples.drop(rest &* format.channelCount) / format.channelCount
        flushEnd = end
        while let mark = nextMark ?? marks.pop() {
            guard mark.position <= end else {
                nextMark = mark
                break
            }
            nextMark = nil
            // Also what lies within the ramp, which is not heard as it was written.
            emit(.dropped(mark), io)
        }
        advance(by: dropped)
    }

    private func tellMarks(_ io: borrowing FilterIO) {
        while let mark = nextMark ?? marks.pop() {
            guard mark.position <= taken.load(ordering: .relaxed) else {
                nextMark = mark
                return
            }
            nextMark = nil
            emit(.played(mark), io)
        }
    }

    private func tellSound(played: Int, of blockFrameCount: Int, mayEnd: Bool, _ io: borrowing FilterIO) {
        let position = taken.load(ordering: .relaxed)
        if played > 0, !hasSound {
            hasSound = true
            emit(.resumed(position: position &- played), io)
        }
        guard played < blockFrameCount, samples.count == 0 else { return }
        if mayEnd {
            guard !hasEnded else { return }
            hasEnded = true
            hasSound = false
            emit(.ended(position: position), io)
        } else if hasSound {
            hasSound = false
            emit(.starved(position: position), io)
        }
    }

    private func advance(by frameCount: Int) {
        taken.store(taken.load(ordering: .relaxed) &+ frameCount, ordering: .releasing)
    }
}
