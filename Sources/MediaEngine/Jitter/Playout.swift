/// The receiving end of a stream: packets go in when they come, sound comes out tick by tick.
///
/// A jitter buffer decides, a decoder carries out: it decodes, takes the copy of a lost packet from its successor
/// (FEC), conceals, or makes comfort noise: of the level that the sender told (RFC 3389), or else as the decoder does.
/// Thread: media; nothing allocates after `init`.
public final class Playout: @unchecked Sendable {
    /// The sound that comes out.
    public let format: AudioFormat
    private let decoder: any AudioDecoder
    private let alternatives: [Alternative]
    /// The decoder of what was played last, where that is one of the alternatives.
    @exclusivity(unchecked) private var alternative: (any AudioDecoder)?
    @exclusivity(unchecked) private var alignment: TimestampAlignment
    @exclusivity(unchecked) private var noise: ComfortNoise
    private let buffer: any JitterBuffer
    private let clockRate: Int
    private let comfortNoiseClockRate: Int

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
    /// Over so much the old codec gives way to the new: at first it goes on alone, since a resampler begins with silence.
    private static let bridge = Duration.milliseconds(10)
    /// A packet of comfort noise stands for so much, and the silence behind it for the rest.
    private static let noise = Duration.milliseconds(10)
    private let noiseFrameCount: Int
    private let longestFrameCount: Int
    private let bridgeFrameCount: Int
    /// Heard sound that is kept to be repeated.
    private let keptFrameCount: Int
    /// Sound that must wait to be shortened, and the time between two stretches.
    private let shortenFrameCount: Int
    private let stretchSpacing: Int

    /// A decoder for packets of another payload type, which the sender may change to.
    public struct Alternative {
        let payloadType: UInt8
        let decoder: any AudioDecoder
        let clockRate: Int

        /// The decoder for `payloadType`, whose time stamps count at `clockRate`.
        public init(payloadType: UInt8, decoder: any AudioDecoder, clockRate: Int) {
            self.payloadType = payloadType
            self.decoder = decoder
            self.clockRate = clockRate
        }
    }

    /// A playout of what `decoder` decodes, in the order and at the time that `buffer` decides.
    ///
    /// - Parameters:
    ///   - decoder: Decodes packets of all payload types that have no decoder of their own.
    ///   - buffer: Decides.
    ///   - clockRate: That of the time stamps, in Hz.
    ///   - alternatives: Decoders for certain payload types, with as many channels.
    ///   - comfortNoiseClockRate: That of the time stamps of comfort noise; nil when it is `clockRate`.
    public init(
        decoder: any AudioDecoder,
        buffer: any JitterBuffer,
        clockRate: Int,
        alternatives: [Alternative] = [],
        comfortNoiseClockRate: Int? = nil
    ) {
        let format = decoder.format
        self.format = format
        self.decoder = decoder
        self.alternatives = alternatives.map { other in
            guard other.decoder.format.sampleRate != format.sampleRate else { return other }
            return Alternative(
                payloadType: other.payloadType,
                decoder: ResampledDecoder(other.decoder, to: format.sampleRate, longest: Self.capacity),
                clockRate: other.clockRate
            )
        }
        alignment = TimestampAlignment(clockRate: clockRate)
        self.buffer = buffer
        self.clockRate = clockRate
        self.comfortNoiseClockRate = comfortNoiseClockRate ?? clockRate
        noise = ComfortNoise(format: format)
        stretcher = TimeStretcher(format: format)
        noiseFrameCount = format.frameCount(in: Self.noise)
        longestFrameCount = format.frameCount(in: Self.longestPacket)
        bridgeFrameCount = format.frameCount(in: Self.bridge)
        keptFrameCount = format.frameCount(in: TimeStretcher.longestLag)
        shortenFrameCount = format.frameCount(in: TimeStretcher.longestLag + TimeStretcher.window)
        stretchSpacing = format.frameCount(in: .milliseconds(50))
        samples = .allocate(capacity: format.frameCount(in: Self.capacity) * format.channelCount)
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
        var rate = clockRate
        let frameCount: Int
        if header.isComfortNoise {
            rate = comfortNoiseClockRate
            frameCount = payload.isEmpty ? 0 : noiseFrameCount
        } else if let other = alternative(for: header.payloadType) {
            rate = other.clockRate
            header.carriesCopy = other.decoder.carriesFEC(payload)
            frameCount = other.decoder.frameCount(of: payload)
        } else {
            header.carriesCopy = decoder.carriesFEC(payload)
            frameCount = decoder.frameCount(of: payload)
        }
        let duration = units(frameCount)
        guard duration > 0, frameCount <= longestFrameCount else {
            counters.corruptCount &+= 1
            return .refused
        }
        counters.insertedCount &+= 1
        if !alternatives.isEmpty {
            header.rtpTimestamp = alignment.place(header, rate: rate, duration: duration)
        }
        let result = buffer.insert(header, payload: payload, duration: duration)
        tracer?.noteArrival(buffer.statistics.arrivalDelayNanoseconds)
        return result
    }

    /// Another source begins: forgets what waits and what the decoder remembers.
    public func reset() {
        buffer.reset()
        alternative = nil
        decoder.reset()
        noise.end()
        alignment = TimestampAlignment(clockRate: clockRate)
        stretcher.reset()
    }

    /// The decoder for packets of `payloadType`, where that is not the stream's own.
    @inline(__always)
    private func alternative(for payloadType: UInt8) -> Alternative? {
        guard !alternatives.isEmpty else { return nil }
        for index in 0..<alternatives.count where alternatives[index].payloadType == payloadType {
            return alternatives[index]
        }
        return nil
    }

    /// Calls `body` with the decoder of what was played last.
    ///
    /// A stream of one codec reads a constant here, which nothing need keep alive.
    @inline(__always)
    private func withDecoder<Result>(_ body: (any AudioDecoder) -> Result) -> Result {
        guard let alternative else { return body(decoder) }
        return body(alternative)
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
        if isIdle { fillIdle(&block, from: ready) }
        trace(block, at: now)
    }

    /// Writes silence where nothing is due, or noise when the sender told of it last.
    private func fillIdle(_ block: inout MutableSpan<Int16>, from ready: Int) {
        guard noise.isOn else {
            for index in ready..<block.count { block[index] = 0 }
            return
        }
        noise.fill(&block, from: ready, to: block.count)
        let frameCount = (block.count &- ready) / format.channelCount
        counters.inventedFrameCount &+= frameCount
        counters.comfortFrameCount &+= frameCount
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
        var beginsNoise = false
        let (header, expected, decoded) = buffer.withFirst { header, payload in
            if header.isComfortNoise {
                beginsNoise = !noise.isOn
                noise.begin(payload)
                return (header, noiseFrameCount, 0)
            }
            let former = alternatives.isEmpty ? nil : change(to: header.payloadType)
            var target = freeSamples
            let decoded = withDecoder { $0.decode(payload, into: &target) }
            if let former, !noise.isOn { join(former, frameCount: decoded) }
            if decoded > 0 { noise.end() }
            return (header, decoded > 0 ? decoded : withDecoder { $0.frameCount(of: payload) }, decoded)
        }
        buffer.removeFirst()
        let playTime = now + waiting
        counters.totalWaitNanoseconds &+= playTime.nanoseconds(since: header.arrival)
        counters.lastPlayTime = playTime
        counters.lastPlayEnd = playTime + format.duration(ofFrames: expected)
        counters.lastPlayTimestamp = header.rtpTimestamp
        guard !header.isComfortNoise else {
            isSteady = false
            counters.comfortNoiseCount &+= 1
            playNoise(isFirst: beginsNoise)
            return
        }
        guard decoded > 0 else {
            counters.corruptCount &+= 1
            counters.concealedFrameCount &+= conceal(frameCount: expected)
            return
        }
        writeIndex &+= decoded &* format.channelCount
    }

    /// Plays what stands for a packet of comfort noise; where it follows sound, that dies away within it.
    private func playNoise(isFirst: Bool) {
        let (start, channelCount) = (writeIndex, format.channelCount)
        let count = conceal(frameCount: noiseFrameCount)
        counters.comfortFrameCount &+= count
        guard isFirst, start >= channelCount else { return }
        for index in start..<writeIndex {
            let rest = count &- (index &- start) / channelCount
            let last = Int(samples[start &- channelCount &+ (index &- start) % channelCount])
            samples[index] = Int16(clamping: Int(samples[index]) &+ last &* rest &* rest / (count &* count))
        }
    }

    /// Takes up the decoder for packets of `payloadType`; answers the one before it, when that is another.
    private func change(to payloadType: UInt8) -> (any AudioDecoder)? {
        let next = alternative(for: payloadType)?.decoder
        let former = alternative ?? decoder
        guard (next ?? decoder) !== former else { return nil }
        alternative = next
        (next ?? decoder).reset()
        // The first packet changes nothing.
        guard buffer.statistics.playedCount > 1 else { return nil }
        counters.codecChangeCount &+= 1
        return former
    }

    /// Lets what the `former` decoder would have gone on with give way to the `frameCount` frames just decoded.
    private func join(_ former: any AudioDecoder, frameCount: Int) {
        let start = writeIndex &+ max(frameCount, 0) &* format.channelCount
        let room = (samples.count &- start) / format.channelCount
        guard frameCount >= bridgeFrameCount, room >= bridgeFrameCount else { return }
        var continuation = UnsafeMutableBufferPointer(rebasing: samples[start...]).mutableSpan
        former.conceal(frameCount: bridgeFrameCount, into: &continuation)
        let half = bridgeFrameCount / 2
        for frame in 0..<bridgeFrameCount {
            let weight = max(frame &- half, 0)
            for channel in 0..<format.channelCount {
                let index = frame &* format.channelCount &+ channel
                let old = Int(continuation[index]) &* (half &- weight)
                samples[writeIndex &+ index] = Int16(
                    truncatingIfNeeded: (old &+ Int(samples[writeIndex &+ index]) &* weight) / half
                )
            }
        }
    }

    private func recover(frameCount: Int, duration: Int) {
        let (successor, recovered) = buffer.withFirst { header, payload in
            // What another codec encodes holds no copy of what was lost before it.
            guard alternatives.isEmpty || alternative(for: header.payloadType)?.decoder === alternative,
                !header.isComfortNoise
            else { return (header.sequenceNumber, 0) }
            var target = freeSamples
            let recovered = withDecoder { $0.decodeFEC(in: payload, frameCount: frameCount, into: &target) }
            return (header.sequenceNumber, recovered)
        }
        guard recovered > 0 else {
            buffer.recoveryFailed(duration: duration)
            conceal(frameCount: frameCount)
            return
        }
        noise.end()
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
        if noise.isOn {
            noise.fill(&target, from: 0, to: count &* format.channelCount)
        } else {
            withDecoder { $0.conceal(frameCount: count, into: &target) }
        }
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

    // Most codecs have one rate for both, and divisions are dear.

    private func units(_ frameCount: Int) -> Int {
        clockRate == format.sampleRate ? frameCount : frameCount &* clockRate / format.sampleRate
    }

    private func frameCount(of duration: Int) -> Int {
        clockRate == format.sampleRate ? duration : duration &* format.sampleRate / clockRate
    }

    private var freeSamples: MutableSpan<Int16> {
        @_lifetime(borrow self) get {
            let free = UnsafeMutableBufferPointer(rebasing: samples[writeIndex...])
            return _overrideLifetime(free.mutableSpan, borrowing: self)
        }
    }
}
