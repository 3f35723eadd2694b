/// The receiving end of a stream: packets go in when they come, sound comes out tick by tick.
///
/// A jitter buffer decides, a decoder carries out: it decodes, takes the copy of a lost packet from its successor
/// (FEC), conceals, or makes comfort noise: of the level that the sender told (RFC 3389), or else as the decoder does.
/// Thread: media; nothing allocates after `init`.
public final class Playout: @unchecked Sendable {
    /// The sound that comes out.
    public let format: AudioFormat
    let decoder: any AudioDecoder
    let alternatives: [Alternative]

    // Of what follows one thread is the owner, and no access lasts longer than a call: checking each
    // (`@exclusivity(unchecked)` leaves that out) would be a waste of the tick.

    /// The decoder of what was played last, where that is one of the alternatives.
    @exclusivity(unchecked) var alternative: (any AudioDecoder)?
    @exclusivity(unchecked) private var alignment: TimestampAlignment
    @exclusivity(unchecked) var noise: ComfortNoise
    let buffer: any JitterBuffer
    private let clockRate: Int
    private let comfortNoiseClockRate: Int
    /// Whether time stamps of several clock rates may come.
    private let alignsTimestamps: Bool

    /// Sound that was heard, up to `readIndex` samples, and decoded sound that waits for its tick, up to `writeIndex`.
    let samples: UnsafeMutableBufferPointer<Int16>
    private var readIndex = 0
    var writeIndex = 0
    @exclusivity(unchecked) var counters = PlayoutStatistics()
    /// The number of the packet that was rebuilt from its successor in this tick, if one was.
    var recoveredSequenceNumber: UInt16?
    /// Whether a packet has come or a decision was carried out since it was last asked.
    var hasNews = false
    private let stretcher: TimeStretcher
    /// Frames played since sound was stretched last.
    private var framesSinceStretch = 0
    /// Whether a packet was decoded in this tick, and nothing invented.
    var isSteady = false
    /// Whether the source has been heard: its first packet changes no codec.
    var hasDecoded = false
    /// Whether what was decoded last came in a packet of sound; not what is invented, or the silence when there is nothing.
    var playsPackets = false
    @exclusivity(unchecked) private var tracer: PlayoutTracer?

    /// A receiver should take packets of up to 200 ms (RFC 3551, section 4.2); FFmpeg sends G.711 in 128 ms.
    private static let longestPacket = Duration.milliseconds(200)
    /// The longest packet, on top of as much that waits.
    private static let capacity = Duration.milliseconds(460)
    /// Over so much the old codec gives way to the new: at first it goes on alone, since a resampler begins with silence.
    private static let bridge = Duration.milliseconds(10)
    /// A packet of comfort noise stands for so much, and the silence behind it for the rest.
    private static let noiseDuration = Duration.milliseconds(10)
    let noiseFrameCount: Int
    private let longestFrameCount: Int
    let bridgeFrameCount: Int
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
        alignsTimestamps = !alternatives.isEmpty || self.comfortNoiseClockRate != clockRate
        noise = ComfortNoise(format: format)
        stretcher = TimeStretcher(format: format)
        noiseFrameCount = format.frameCount(in: Self.noiseDuration)
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
        if alignsTimestamps {
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
        hasDecoded = false
        decoder.reset()
        noise.end()
        alignment = TimestampAlignment(clockRate: clockRate)
        stretcher.reset()
    }

    /// The decoder for packets of `payloadType`, where that is not the stream's own.
    @inline(__always)
    func alternative(for payloadType: UInt8) -> Alternative? {
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
    func withDecoder<Result>(_ body: (any AudioDecoder) -> Result) -> Result {
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
        hasNews = true
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

    /// Moves what waits, and as much heard sound as may be repeated, to the front.
    func makeRoom() {
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
    var waitingCount: Int { writeIndex &- readIndex }

    // Most codecs have one rate for both, and divisions are dear.

    private func units(_ frameCount: Int) -> Int {
        clockRate == format.sampleRate ? frameCount : frameCount &* clockRate / format.sampleRate
    }

    func frameCount(of duration: Int) -> Int {
        clockRate == format.sampleRate ? duration : duration &* format.sampleRate / clockRate
    }

    var freeSamples: MutableSpan<Int16> {
        @_lifetime(borrow self) get {
            let free = UnsafeMutableBufferPointer(rebasing: samples[writeIndex...])
            return _overrideLifetime(free.mutableSpan, borrowing: self)
        }
    }
}
