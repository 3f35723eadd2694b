/// What a playout did.
public struct PlayoutStatistics: Sendable, BitwiseCopyable, Equatable {
    /// The jitter buffer's own counters.
    public internal(set) var buffer = JitterBufferStatistics()
    /// Packets that were taken, whatever became of them.
    public internal(set) var insertedCount = 0
    /// Packets rebuilt from the copy in their successor.
    public internal(set) var recoveredCount = 0
    /// Frames made by the decoder without a packet: what replaces loss, and comfort noise.
    public internal(set) var inventedFrameCount = 0
    /// Those of them that are comfort noise, where the sender left out sound.
    public internal(set) var comfortFrameCount = 0
    /// Packets whose payload the decoder refused.
    public internal(set) var corruptCount = 0
    /// Frames invented in place of packets that were lost, late or corrupt.
    public internal(set) var concealedFrameCount = 0
    /// Frames left out, because too much waited.
    public internal(set) var shortenedFrameCount = 0
    /// Frames added, to wait for longer.
    public internal(set) var lengthenedFrameCount = 0
    /// Frames played in all, silence before the first packet not among them.
    public internal(set) var playedFrameCount = 0
    /// The sum of the waits of all packets played, from arrival to sound.
    public internal(set) var totalWaitNanoseconds: Int64 = 0
    /// When the packet that was played last began to sound.
    public internal(set) var lastPlayTime = MediaTime.zero
    /// When the packet that was played last has sounded to its end.
    public internal(set) var lastPlayEnd = MediaTime.zero
    /// The timestamp of the packet that was played last.
    public internal(set) var lastPlayTimestamp: UInt32 = 0
    /// Whether any packet has been played.
    public var hasPlayed: Bool { buffer.playedCount > 0 }

    /// Nothing yet.
    public init() {}

    /// The mean wait of the packets played, from arrival to sound; zero before the first.
    public var meanWait: Duration {
        buffer.playedCount == 0 ? .zero : .nanoseconds(totalWaitNanoseconds / Int64(buffer.playedCount))
    }
}

/// The receiving end of a stream: packets go in when they come, sound comes out tick by tick.
///
/// A jitter buffer decides, a decoder carries out: it decodes, takes the copy of a lost packet from its successor
/// (FEC), conceals, or makes comfort noise.
/// Thread: media; nothing allocates after `init`.
public final class Playout: @unchecked Sendable {
    /// The sound that comes out.
    public let format: AudioFormat
    private let decoder: any AudioDecoder
    private let buffer: any JitterBuffer
    private let clockRate: Int

    /// Sound that was heard, up to `readIndex` samples, and decoded sound that waits for its tick, up to `writeIndex`.
    private let samples: UnsafeMutableBufferPointer<Int16>
    private var readIndex = 0
    private var writeIndex = 0
    private var counters = PlayoutStatistics()
    /// The number of the packet that was rebuilt from its successor in this tick, if one was.
    private(set) var recoveredSequenceNumber: UInt16?
    /// Whether a packet has come or a decision was carried out since it was last asked.
    private var hasNews = false
    private let stretcher: TimeStretcher
    /// Frames played since sound was stretched last.
    private var framesSinceStretch = 0
    /// Whether a packet was decoded in this tick, and nothing invented.
    private var isSteady = false
    /// Whether what plays came in packets; not what is invented, or the silence when there is nothing.
    private(set) var playsPackets = false
    // One thread owns it, and no access lasts longer than a call, so checking each would be a waste of the tick.
    @exclusivity(unchecked) private var tracer: PlayoutTracer?

    /// A receiver should take packets of up to 200 ms (RFC 3551, section 4.2); FFmpeg sends G.711 in 128 ms.
    private static let longestPacket = Duration.milliseconds(200)
    /// The longest packet, on top of as much that waits.
    private static let capacity = Duration.milliseconds(460)
    /// Heard sound that is kept to be repeated.
    private let keptFrameCount: Int
    /// Sound that must wait to be shortened, and the time between two stretches.
    private let shortenFrameCount: Int
    private let stretchSpacing: Int

    /// A playout of what `decoder` decodes, in the order and at the time that `buffer` decides.
    public init(decoder: any AudioDecoder, buffer: any JitterBuffer, clockRate: Int) {
        format = decoder.format
        self.decoder = decoder
        self.buffer = buffer
        self.clockRate = clockRate
        stretcher = TimeStretcher(format: decoder.format)
        keptFrameCount = decoder.format.frameCount(in: TimeStretcher.longestLag)
        shortenFrameCount = decoder.format.frameCount(in: TimeStretcher.longestLag + TimeStretcher.window)
        stretchSpacing = decoder.format.frameCount(in: .milliseconds(50))
        let frameCount = decoder.format.frameCount(in: Self.capacity)
        samples = .allocate(capacity: frameCount * decoder.format.channelCount)
        samples.initialize(repeating: 0)
    }

    deinit {
        samples.deallocate()
    }

    /// What was done so far.
    public var statistics: PlayoutStatistics {
        var statistics = counters
        statistics.buffer = buffer.statistics
        statistics.concealedFrameCount &+= frameCount(of: statistics.buffer.concealedDuration)
        return statistics
    }

    /// Whether the statistics have changed since the last call, but for what the last packet has left to play.
    func takeNews() -> Bool {
        defer { hasNews = false }
        return hasNews
    }

    /// Takes a packet, and tells what became of it.
    @discardableResult
    public func insert(_ header: PacketHeader, payload: Span<UInt8>) -> InsertionResult {
        guard !header.isNumberOnly else { return buffer.insert(header, payload: payload, duration: 0) }
        hasNews = true
        var header = header
        header.carriesCopy = decoder.carriesFEC(payload)
        let frameCount = decoder.frameCount(of: payload)
        let duration = frameCount &* clockRate / format.sampleRate
        guard duration > 0, frameCount <= format.frameCount(in: Self.longestPacket) else {
            counters.corruptCount &+= 1
            return .refused
        }
        counters.insertedCount &+= 1
        let result = buffer.insert(header, payload: payload, duration: duration)
        tracer?.noteArrival(buffer.statistics.arrivalDelayNanoseconds)
        return result
    }

    /// Another source begins: forgets what waits and what the decoder remembers.
    public func reset() {
        buffer.reset()
        decoder.reset()
        stretcher.reset()
    }

    /// Tells what is done to `trace`, a row for every 20 ms.
    ///
    /// Thread: control, before the first tick.
    func record(to trace: PlayoutTrace) {
        tracer = PlayoutTracer(trace)
    }

    /// Writes the frames that are due from `now` on.
    public func play(into block: inout MutableSpan<Int16>, at now: MediaTime) {
        isSteady = false
        var isIdle = false
        recoveredSequenceNumber = nil
        while waitingCount < block.count {
            guard perform(buffer.decide(at: now), at: now) else {
                isIdle = true
                playsPackets = false
                break
            }
        }
        if isSteady { stretch(blockCount: block.count, at: now) }
        let ready = min(waitingCount, block.count)
        for index in 0..<ready { block[index] = samples[readIndex &+ index] }
        readIndex &+= ready
        counters.playedFrameCount &+= ready / format.channelCount
        framesSinceStretch &+= ready / format.channelCount
        if isIdle {
            for index in ready..<block.count { block[index] = 0 }
        }
        trace(block, at: now)
    }

    // MARK: Stretching

    /// Shortens or lengthens what waits, if the buffer wishes it and the sound allows it.
    private func stretch(blockCount: Int, at now: MediaTime) {
        let wish = buffer.wishedStretch(at: now, pending: units(waitingCount / format.channelCount))
        guard wish != 0, let base = samples.baseAddress else { return }
        let isUrgent = buffer.isUrgent(wish)
        guard isUrgent || framesSinceStretch >= stretchSpacing else { return }
        let channelCount = format.channelCount
        let limit = abs(frameCount(of: wish))
        var change = 0
        if wish < 0 {
            while waitingCount < blockCount &+ shortenFrameCount &* channelCount,
                perform(buffer.playAhead(), at: now)
            {}
            change = -stretcher.shorten(
                base,
                start: readIndex / channelCount,
                end: writeIndex / channelCount,
                limit: min(limit, (waitingCount &- blockCount) / channelCount),
                isUrgent: isUrgent
            )
        } else {
            makeRoom()
            change = stretcher.lengthen(
                base,
                start: readIndex / channelCount,
                end: writeIndex / channelCount,
                limit: limit,
                isUrgent: isUrgent
            )
        }
        guard change != 0 else { return }
        let shift = Duration.nanoseconds(Int64(change) * 1_000_000_000 / Int64(format.sampleRate))
        if change < 0 {
            counters.shortenedFrameCount &-= change
        } else {
            counters.lengthenedFrameCount &+= change
        }
        counters.lastPlayTime += shift
        counters.lastPlayEnd += shift
        writeIndex &+= change &* channelCount
        buffer.stretched(by: units(change))
        framesSinceStretch = 0
        hasNews = true
    }

    /// Carries out one decision; answers false when nothing is due.
    private func perform(_ decision: PlayoutDecision, at now: MediaTime) -> Bool {
        makeRoom()
        switch decision {
        case .idle:
            return false
        case .play:
            isSteady = true
            playsPackets = true
            playFirst(at: now)
        case .recover(let duration):
            isSteady = false
            playsPackets = true
            recover(frameCount: frameCount(of: duration), duration: duration)
        case .conceal(let duration):
            isSteady = false
            playsPackets = false
            conceal(frameCount: frameCount(of: duration))
        case .comfort(let duration):
            isSteady = false
            counters.comfortFrameCount &+= conceal(frameCount: frameCount(of: duration))
        }
        hasNews = true
        return true
    }

    private func playFirst(at now: MediaTime) {
        let waiting = format.duration(ofFrames: waitingCount / format.channelCount)
        let (header, expected, decoded) = buffer.withFirst { header, payload in
            var target = freeSamples
            return (header, decoder.frameCount(of: payload), decoder.decode(payload, into: &target))
        }
        buffer.removeFirst()
        let playTime = now + waiting
        counters.totalWaitNanoseconds &+= playTime.nanoseconds(since: header.arrival)
        counters.lastPlayTime = playTime
        counters.lastPlayEnd = playTime + format.duration(ofFrames: decoded > 0 ? decoded : expected)
        counters.lastPlayTimestamp = header.rtpTimestamp
        guard decoded > 0 else {
            counters.corruptCount &+= 1
            counters.concealedFrameCount &+= conceal(frameCount: expected)
            return
        }
        writeIndex &+= decoded &* format.channelCount
    }

    private func recover(frameCount: Int, duration: Int) {
        let (successor, recovered) = buffer.withFirst { header, payload in
            var target = freeSamples
            return (header.sequenceNumber, decoder.decodeFEC(in: payload, frameCount: frameCount, into: &target))
        }
        guard recovered > 0 else {
            buffer.recoveryFailed(duration: duration)
            conceal(frameCount: frameCount)
            return
        }
        counters.recoveredCount &+= 1
        recoveredSequenceNumber = successor &- 1
        writeIndex &+= recovered &* format.channelCount
    }

    /// Invents at most as many frames as fit, and answers how many.
    @discardableResult
    private func conceal(frameCount: Int) -> Int {
        let room = (samples.count &- writeIndex) / format.channelCount
        let count = min(max(frameCount, 1), room)
        var target = freeSamples
        decoder.conceal(frameCount: count, into: &target)
        counters.inventedFrameCount &+= count
        writeIndex &+= count &* format.channelCount
        return count
    }

    /// Moves what waits, and as much heard sound as may be repeated, to the front.
    private func makeRoom() {
        let kept = min(readIndex, keptFrameCount &* format.channelCount)
        let first = readIndex &- kept
        guard first > 0, let base = samples.baseAddress else { return }
        base.update(from: base + first, count: writeIndex &- first)
        writeIndex &-= first
        readIndex = kept
    }

    private func trace(_ block: borrowing MutableSpan<Int16>, at now: MediaTime) {
        guard tracer != nil else { return }
        tracer?.add(block.span, format: format, statistics: statistics, clockRate: clockRate, at: now)
    }

    /// Decoded samples that wait.
    private var waitingCount: Int { writeIndex &- readIndex }

    private func units(_ frameCount: Int) -> Int { frameCount &* clockRate / format.sampleRate }

    private func frameCount(of duration: Int) -> Int { duration &* format.sampleRate / clockRate }

    private var freeSamples: MutableSpan<Int16> {
        @_lifetime(borrow self) get {
            let free = UnsafeMutableBufferPointer(rebasing: samples[writeIndex...])
            return _overrideLifetime(free.mutableSpan, borrowing: self)
        }
    }
}
