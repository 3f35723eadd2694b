import CallBasics
import Synchronization

/// Plays what an application writes.
///
///     (application) ─► stream source ─► audio
///
/// Where a tick holds no whole number of the application's frames, as at 22050 Hz, it takes one more in some ticks and gives
/// 48000 Hz.
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
    /// Marks whose place has not been reached.
    private let marks: RingBuffer<StreamMark>
    /// What became of marks before them, and has found no place among the events yet.
    private let fates: RingBuffer<Event>
    private let capacity: Int
    /// All that was played, silence too; nil where nobody asks for it.
    private let record: FrameQueue?
    /// Nil where a tick holds whole frames of `format`.
    private let resampler: Resampler?
    /// Frames on their way from the queue to `resampler`.
    private let passing: UnsafeMutableBufferPointer<Int16>
    /// Frames taken out of the queue, played or thrown away.
    private let taken = Atomic<Int>(0)
    /// Everything before this frame is to be thrown away.
    private let flushed = Atomic<Int>(0)
    /// The number of the first mark behind that.
    private let flushedMarks = Atomic<UInt64>(0)
    private let isFinished = Atomic(false)
    private let paused = Atomic(false)
    private let wantsRoom = Atomic(false)

    // The media thread's own.
    private var nextMark: StreamMark?
    private var nextFate: Event?
    private var flushEnd = 0
    /// Whether the last block was paused.
    private var wasPaused = false
    private var hasSound = false
    private var soundStart = 0
    /// Whether the last that was told is that sound is there.
    private var isSoundTold = false
    private var hasEnded = false
    private let rampFrameCount: Int

    /// - Parameters:
    ///   - format: What is written.
    ///   - capacity: Sound that may wait.
    ///   - recordCapacity: What is kept of what was played, for who asks for it; nil for nothing.
    init(format: AudioFormat, capacity: Duration, recordCapacity: Duration? = nil) {
        self.format = format
        record = recordCapacity.map {
            FrameQueue(frameCount: format.frameCount(in: $0), channelCount: format.channelCount)
        }
        self.capacity = max(format.frameCount(in: capacity), format.frameCount(in: .milliseconds(20)))
        samples = RingBuffer(minimumCapacity: self.capacity * format.channelCount)
        marks = RingBuffer(minimumCapacity: Self.markCapacity)
        // Also for those that are between the two while they are counted.
        fates = RingBuffer(minimumCapacity: 2 * Self.markCapacity)
        rampFrameCount = max(format.frameCount(in: .milliseconds(5)), 1)
        let portFormat = format.portFormat
        var latency = Duration.zero
        if portFormat == format {
            (resampler, passing) = (nil, UnsafeMutableBufferPointer(start: nil, count: 0))
        } else {
            // One frame more than a tick holds, and another where it does not begin at one.
            let frameCount = format.frameCount(in: .milliseconds(10)) + 2
            let resampler = Resampler(
                from: format.sampleRate,
                to: portFormat.sampleRate,
                channelCount: format.channelCount,
                maximumFrameCount: frameCount
            )
            latency = format.duration(ofFrames: resampler.delayFrameCount)
            self.resampler = resampler
            passing = .allocate(capacity: frameCount * format.channelCount)
            passing.initialize(repeating: 0)
        }
        super.init(
            FilterDescription(
                name: "stream source",
                purpose: "plays what the application writes",
                outputs: [.audio(portFormat)],
                latency: latency
            )
        )
    }

    deinit {
        passing.deallocate()
    }

    // MARK: Control

    var position: Int { taken.load(ordering: .acquiring) }

    /// What was played at a position, counted in frames that were played with the silence among them; nil where it is not kept.
    func played(_ frameCount: Int, at position: Int) -> [Int16]? { record?.read(frameCount, at: position) }

    func hasPlayed(upTo end: Int) -> Bool { record?.reaches(end) ?? true }

    private var freeFrameCount: Int { capacity - samples.count / format.channelCount }

    var hasRoom: Bool { freeFrameCount > 0 }

    func write(_ source: Span<Int16>) -> Int {
        let frameCount = min(source.count / format.channelCount, max(freeFrameCount, 0))
        return samples.push(contentsOf: source.extracting(first: frameCount * format.channelCount))
            / format.channelCount
    }

    /// Answers false, and adds nothing, when too many have not been told of.
    func add(_ mark: StreamMark) -> Bool {
        marks.count + fates.count < Self.markCapacity && marks.push(mark)
    }

    /// What is still to be told of marks: those whose place has not been reached are dropped.
    ///
    /// Thread: control, once the media thread no longer touches the filter.
    func takeFates() -> [Event] {
        var events: [Event] = []
        while let fate = nextFate.take() ?? fates.pop() { events.append(fate) }
        while let mark = nextMark.take() ?? marks.pop() {
            events.append(mark.position <= position ? .played(mark) : .dropped(mark))
        }
        return events
    }

    /// Throws away what lies before `frame`, with the marks before number `mark`: one at the same frame that was set later
    /// lies behind it.
    func flush(to frame: Int, before mark: UInt64) {
        flushedMarks.store(mark, ordering: .relaxed)
        flushed.store(frame, ordering: .releasing)
    }

    func finish() { isFinished.store(true, ordering: .releasing) }

    /// Whether what waits stays; one that is set back after a `flush` lets nothing be heard that was flushed.
    var isPaused: Bool {
        get { paused.load(ordering: .relaxed) }
        set { paused.store(newValue, ordering: .releasing) }
    }

    /// Asks for an event once half of the queue is free.
    func askForRoom() { wantsRoom.store(true, ordering: .releasing) }

    // MARK: Media

    package override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var target = block.mutableSamples
        guard let resampler else { return play(into: &target, io) }
        let (channelCount, room) = (format.channelCount, passing.count / format.channelCount)
        let frameCount = min(resampler.inputFrameCount(forOutput: block.frameCount), room)
        let part = UnsafeMutableBufferPointer(rebasing: passing[..<(frameCount &* channelCount)])
        var waiting = part.mutableSpan
        play(into: &waiting, io)
        let produced = resampler.process(waiting.span, into: &target).produced
        for index in (produced &* channelCount)..<target.count { target[index] = 0 }
    }

    /// Fills `target` with what waits, and silence behind it, and tells what has happened.
    private func play(into target: inout MutableSpan<Int16>, _ io: borrowing FilterIO) {
        let frameCount = target.count / format.channelCount
        // Asked first: what is written after it is sound that comes after the end.
        let mayEnd = isFinished.load(ordering: .acquiring)
        let isPaused = paused.load(ordering: .acquiring)
        let end = flushed.load(ordering: .acquiring)
        var played = 0
        if end > flushEnd {
            passMarks()
            if !wasPaused { played = fadeOut(into: &target, before: end, frameCount) }
            throwAway(before: end)
        } else if isPaused {
            if !wasPaused { played = fadeOut(into: &target, before: .max, frameCount) }
        } else {
            played = samples.pop(into: &target) / format.channelCount
            if wasPaused { fadeIn(&target, played) }
            advance(by: played)
        }
        wasPaused = isPaused
        for index in (played &* format.channelCount)..<target.count { target[index] = 0 }
        record?.put(target.span)
        passMarks()
        tell(played: played, of: frameCount, mayEnd: mayEnd) { offer($0, io) }
        if wantsRoom.load(ordering: .relaxed), freeFrameCount >= capacity / 2 {
            wantsRoom.store(false, ordering: .relaxed)
            // Who waits must hear of it: what finds no place is told in the next tick.
            if !offer(.room, io) { wantsRoom.store(true, ordering: .relaxed) }
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

    /// Lets the first 5 ms after a pause grow louder.
    private func fadeIn(_ target: inout MutableSpan<Int16>, _ played: Int) {
        let (channelCount, count) = (format.channelCount, min(rampFrameCount, played))
        for index in 0..<(count &* channelCount) {
            let weight = index / channelCount &+ 1
            target[index] = Int16(truncatingIfNeeded: Int(target[index]) &* weight / (count &+ 1))
        }
    }

    private func throwAway(before end: Int) {
        let rest = max(end &- taken.load(ordering: .relaxed), 0)
        let dropped = samples.drop(rest &* format.channelCount) / format.channelCount
        flushEnd = end
        // Also what lies within the ramp, which is not heard as it was written.
        let limit = flushedMarks.load(ordering: .relaxed)
        while let mark = takeMark(upTo: end, before: limit) { fates.push(.dropped(mark)) }
        advance(by: dropped)
    }

    /// Notes the marks that have been played.
    private func passMarks() {
        while let mark = takeMark(upTo: taken.load(ordering: .relaxed)) { fates.push(.played(mark)) }
    }

    private func takeMark(upTo position: Int, before number: UInt64 = .max) -> StreamMark? {
        guard let mark = nextMark.take() ?? marks.pop() else { return nil }
        guard mark.position > position || mark.number >= number else { return mark }
        nextMark = mark
        return nil
    }

    /// Tells what has happened in a tick that played so many frames: what became of marks, and how the sound is.
    ///
    /// What finds no place is told in the next tick; places may become free at any moment, so the end looks whether all
    /// that comes before it has been told.
    func tell(played: Int, of blockFrameCount: Int, mayEnd: Bool, _ offer: (Event) -> Bool) {
        tellFates(offer)
        tellSound(played: played, of: blockFrameCount, mayEnd: mayEnd, offer)
    }

    private func tellFates(_ offer: (Event) -> Bool) {
        while let fate = nextFate.take() ?? fates.pop() {
            guard offer(fate) else {
                nextFate = fate
                return
            }
        }
    }

    private func tellSound(played: Int, of blockFrameCount: Int, mayEnd: Bool, _ offer: (Event) -> Bool) {
        let position = taken.load(ordering: .relaxed)
        if played > 0, !hasSound {
            hasSound = true
            soundStart = position &- played
        }
        tellSound(at: position, offer)
        guard played < blockFrameCount, samples.count == 0 else { return }
        hasSound = false
        guard mayEnd else { return tellSound(at: position, offer) }
        isSoundTold = false
        if !hasEnded, hasToldMarks { hasEnded = offer(.ended(position: position)) }
    }

    /// Whether no mark waits to be told.
    private var hasToldMarks: Bool {
        nextFate == nil && fates.count == 0 && nextMark == nil && marks.count == 0
    }

    /// Tells that sound is there again, or no longer, unless the last that was told says so.
    private func tellSound(at position: Int, _ offer: (Event) -> Bool) {
        guard hasSound != isSoundTold else { return }
        let event: Event = hasSound ? .resumed(position: soundStart) : .starved(position: position)
        if offer(event) { isSoundTold = hasSound }
    }

    private func advance(by frameCount: Int) {
        taken.store(taken.load(ordering: .relaxed) &+ frameCount, ordering: .releasing)
    }

    /// Marks that may wait to be told of.
    private static var markCapacity: Int { 1024 }
}
