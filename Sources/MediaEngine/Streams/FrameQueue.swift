import Synchronization

/// Frames on their way from the media thread to who reads them: what finds no room is left out, and counts as passed.
///
/// Shape: interleaved samples; positions count frames since the first, those left out among them.
/// Thread: `put` media; `holds` and `lostFrameCount` any; the rest one reader.
final class FrameQueue: @unchecked Sendable {
    /// A run of frames that were left out.
    private struct Gap: BitwiseCopyable {
        /// Frames put into the queue before it.
        let place: Int
        let frameCount: Int
    }

    private let channelCount: Int
    private let samples: RingBuffer<Int16>
    private let gaps = RingBuffer<Gap>(minimumCapacity: 256)
    private let lost = Atomic<Int>(0)

    // Of who reads.
    private var readCount = 0
    private var passedGaps = 0
    private var nextGap: Gap?

    // The media thread's own.
    private var putCount = 0
    private var openGap = 0

    /// A queue of at least so many frames.
    init(frameCount: Int, channelCount: Int) {
        self.channelCount = channelCount
        samples = RingBuffer(minimumCapacity: frameCount * channelCount)
    }

    // MARK: Media

    /// Adds a block, or leaves all of it out.
    func put(_ block: Span<Int16>) {
        let frameCount = block.count / channelCount
        guard samples.freeCount >= block.count, openGap == 0 || gaps.freeCount > 0 else {
            openGap &+= frameCount
            lost.wrappingAdd(frameCount, ordering: .relaxed)
            return
        }
        if openGap > 0 {
            gaps.push(Gap(place: putCount, frameCount: openGap))
            openGap = 0
        }
        samples.push(contentsOf: block)
        putCount &+= frameCount
    }

    // MARK: Who reads

    var lostFrameCount: Int { lost.load(ordering: .relaxed) }

    func holds(_ frameCount: Int) -> Bool { samples.count >= frameCount * channelCount }

    /// Where the next frame is that can be read.
    func position() -> Int {
        while let gap = nextGap ?? gaps.pop() {
            guard gap.place <= readCount else {
                nextGap = gap
                break
            }
            nextGap = nil
            passedGaps += gap.frameCount
        }
        return readCount + passedGaps
    }

    /// Takes so many frames if they are there.
    func read(_ frameCount: Int) -> [Int16]? {
        guard holds(frameCount) else { return nil }
        var block = [Int16](repeating: 0, count: frameCount * channelCount)
        var target = block.mutableSpan
        _ = samples.pop(into: &target)
        readCount += frameCount
        return block
    }

    /// Whether the frames before a position are there, or were left out; a gap that has not been passed is not counted.
    func reaches(_ end: Int) -> Bool {
        // Asked first: a gap is told before what comes behind it.
        let count = samples.count / channelCount
        return position() + count >= end
    }

    /// Takes the frames at a position, and throws away those before it; nil where some were left out, or are not there yet.
    func read(_ frameCount: Int, at wanted: Int) -> [Int16]? {
        while true {
            let count = samples.count / channelCount
            let missing = wanted - position()
            let run = nextGap.map { min($0.place - readCount, count) } ?? count
            guard missing > 0 else { return missing == 0 && run >= frameCount ? read(frameCount) : nil }
            let dropped = samples.drop(min(run, missing) * channelCount) / channelCount
            guard dropped > 0 else { return nil }
            readCount += dropped
        }
    }
}
