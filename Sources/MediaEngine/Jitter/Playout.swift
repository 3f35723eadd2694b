package import CallBasics
import RTP

/// The receiving end of a stream: packets go in when they come, sound comes out tick by tick.
///
/// A jitter buffer decides, a decoder carries out: it decodes, takes the copy of a lost packet from its successor
/// (FEC), conceals, or makes comfort noise: of the level that the sender told (RFC 3389), or else as the decoder does.
/// Thread: media; nothing allocates after `init`.
package final class Playout {
    /// Units per second of the time line that packets of all codecs lie on.
    static let timelineRate = 48_000

    /// The sound that comes out.
    package let format: AudioFormat
    /// The codecs that may come; the first takes every payload type that is none of the others'.
    let codecs: [Codec]

    /// A codec that packets may be of.
    package struct Codec {
        let payloadType: UInt8
        /// Gives the playout's format, after resampling where the codec's own is another.
        let decoder: any AudioDecoder
        /// What decodes, before any resampling.
        let own: any AudioDecoder
        let clockRate: Int

        /// The codec of packets of `payloadType`, whose time stamps count at `clockRate`.
        package init(payloadType: UInt8, decoder: any AudioDecoder, clockRate: Int) {
            self.init(payloadType: payloadType, decoder: decoder, own: decoder, clockRate: clockRate)
        }

        private init(payloadType: UInt8, decoder: any AudioDecoder, own: any AudioDecoder, clockRate: Int) {
            self.payloadType = payloadType
            self.decoder = decoder
            self.own = own
            self.clockRate = clockRate
        }

        /// The codec with samples of `format`, which has as many channels.
        func resampled(to format: AudioFormat) -> Codec {
            guard own.format.sampleRate != format.sampleRate else {
                return Codec(payloadType: payloadType, decoder: own, clockRate: clockRate)
            }
            let decoder = ResampledDecoder(own, to: format.sampleRate, longest: Playout.capacity)
            return Codec(payloadType: payloadType, decoder: decoder, own: own, clockRate: clockRate)
        }
    }

    // Of what follows one thread is the owner, and no access lasts longer than a call: checking each
    // (`@exclusivity(unchecked)` leaves that out) would be a waste of the tick.

    /// The decoder of what was played last.
    var decoder: any AudioDecoder
    @exclusivity(unchecked) private var alignment = TimestampAlignment(rate: Playout.timelineRate)
    @exclusivity(unchecked) var noise: ComfortNoise
    let buffer: JitterBuffer
    private let comfortNoiseClockRate: Int
    /// Brings sound that waits to this format when another playout gives way to this one.
    private let bridgeResampler: Resampler?

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
    /// What is to come.
    var expectedMedia = ExpectedMedia.sound
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
    /// The codecs that may still come; those behind them are of packets that wait.
    private let announcedCount: Int
    let bridgeFrameCount: Int
    /// Heard sound that is kept to be repeated.
    private let keptFrameCount: Int
    /// Sound that must wait to be shortened, and the time between two stretches.
    private let shortenFrameCount: Int
    private let stretchSpacing: Int

    /// A playout of packets of `codecs`, held back by `delay`.
    ///
    /// - Parameters:
    ///   - codecs: The codecs that may come, at least one; the format is the first one's, and all have as many channels.
    ///     Those of `former` stay for the packets of theirs that wait.
    ///   - delay: How long packets are held back; ignored with a `former` playout, whose packets go on waiting.
    ///   - comfortNoiseClockRate: That of the time stamps of comfort noise; nil when it is the first codec's.
    ///   - former: The playout whose place this one will take, by `takeOver`.
    package init(
        _ codecs: [Codec],
        delay: PlayoutDelay,
        comfortNoiseClockRate: Int? = nil,
        continuing former: Playout? = nil
    ) {
        let format = codecs[0].own.format
        self.format = format
        let kept = former.map { former in
            former.codecs.prefix(former.announcedCount).filter { old in
                old.own.format.channelCount == format.channelCount
                    && !codecs.contains { $0.payloadType == old.payloadType }
            }
        }
        announcedCount = codecs.count
        self.codecs = (codecs + (kept ?? [])).map { $0.resampled(to: format) }
        decoder = self.codecs[0].decoder
        buffer = former?.buffer ?? JitterBuffer(bounds: delay.bounds, rate: Self.timelineRate)
        bridgeResampler = former.flatMap { former in
            guard former.format.sampleRate != format.sampleRate else { return nil }
            return Resampler(
                from: former.format.sampleRate,
                to: format.sampleRate,
                channelCount: format.channelCount,
                quality: .low,
                maximumFrameCount: former.format.frameCount(in: Self.capacity)
            )
        }
        self.comfortNoiseClockRate = comfortNoiseClockRate ?? codecs[0].clockRate
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
    package var statistics: PlayoutStatistics {
        var statistics = counters
        statistics.buffer = buffer.statistics
        statistics.leapCount = alignment.leapCount
        statistics.concealedFrameCount &+= frameCount(of: statistics.buffer.concealedDuration)
        return statistics
    }

    /// Whether the statistics have changed since the last call, but for what the last packet has left to play.
    func takeNews() -> Bool {
        defer { hasNews = false }
        return hasNews
    }

    /// Takes the place of `former`, at the edge of a tick: what waits there, decoded or not, and all that is known of the
    /// source.
    package func takeOver(_ former: Playout) {
        alignment = former.alignment
        counters = former.counters
        counters.rescale(from: former.format.sampleRate, to: format.sampleRate)
        if let codec = codecs.first(where: { $0.own === former.currentCodec?.own }) { decoder = codec.decoder }
        hasDecoded = former.hasDecoded
        playsPackets = former.playsPackets
        hasNews = true
        tracer = former.tracer
        if former.noise.isOn { noise.goOn(from: former.noise) }
        let waiting = UnsafeBufferPointer(rebasing: former.samples[former.readIndex..<former.writeIndex]).span
        var free = samples.mutableSpan
        if let bridgeResampler {
            writeIndex = bridgeResampler.process(waiting, into: &free).produced &* format.channelCount
        } else {
            for index in 0..<waiting.count { free[index] = waiting[index] }
            writeIndex = waiting.count
        }
    }

    /// The codec of what was played last.
    private var currentCodec: Codec? { codecs.first { $0.decoder === decoder } }

    /// Takes a packet, and tells what became of it.
    @discardableResult
    package func insert(_ header: PacketHeader, payload: Span<UInt8>) -> InsertionResult {
        guard !header.isNumberOnly else { return buffer.insert(header, payload: payload, duration: 0) }
        hasNews = true
        var header = header
        let rate: Int
        let frameCount: Int
        if header.isComfortNoise {
            rate = comfortNoiseClockRate
            frameCount = payload.isEmpty ? 0 : noiseFrameCount
        } else {
            // In place: a copy of the codec would count its references.
            let index = index(of: header.payloadType)
            rate = codecs[index].clockRate
            frameCount = codecs[index].decoder.frameCount(of: payload)
            header.carriesCopy = frameCount > 0 && codecs[index].decoder.carriesFEC(payload)
        }
        let duration = units(frameCount)
        guard duration > 0, frameCount <= longestFrameCount else {
            counters.corruptCount &+= 1
            return .refused
        }
        counters.insertedCount &+= 1
        header.position = alignment.place(header, clockRate: rate, duration: duration)
        let result = buffer.insert(header, payload: payload, duration: duration)
        tracer?.noteArrival(buffer.statistics.arrivalDelayNanoseconds)
        return result
    }

    /// Whether the buffer has thrown packets away.
    var hasDiscarded: Bool { buffer.discarded.count > 0 }

    /// Moves the numbers of packets that the buffer threw away to `list`.
    func takeDiscarded(into list: inout PlayoutReport.Numbers) {
        for index in 0..<buffer.discarded.count { list.append(buffer.discarded.number(index)) }
        buffer.discarded.removeAll()
    }

    /// Another source begins: forgets what waits and what the decoder remembers.
    package func reset() {
        buffer.reset()
        decoder = codecs[0].decoder
        hasDecoded = false
        decoder.reset()
        noise.end()
        alignment.begin()
        stretcher.reset()
    }

    /// The source begins new numbers, with `number`, and new time stamps: what comes follows what waits.
    package func beginNumbers(at number: UInt16) {
        buffer.beginNumbers(at: number)
        alignment.beginNumbers()
    }

    /// The place among the codecs of the one of `payloadType`.
    @inline(__always)
    func index(of payloadType: UInt8) -> Int {
        for index in 1..<max(codecs.count, 1) where codecs[index].payloadType == payloadType { return index }
        return 0
    }

    /// Tells what is done to `trace`, a row for every 20 ms.
    ///
    /// Thread: control, before the first tick.
    func record(to trace: PlayoutTrace) {
        tracer = PlayoutTracer(trace)
    }

    /// Writes the frames that are due from `now` on.
    package func play(into block: inout MutableSpan<Int16>, at now: MediaTime) {
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
        if buffer.watchSilence(at: now, expecting: expectedMedia) { hasNews = true }
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
        tracer?.add(block.span, format: format, statistics: statistics, at: now)
    }

    /// Decoded samples that wait.
    var waitingCount: Int { writeIndex &- readIndex }

    private func units(_ frameCount: Int) -> Int {
        format.sampleRate == Self.timelineRate ? frameCount : frameCount &* Self.timelineRate / format.sampleRate
    }

    func frameCount(of duration: Int) -> Int {
        format.sampleRate == Self.timelineRate ? duration : duration &* format.sampleRate / Self.timelineRate
    }

    var freeSamples: MutableSpan<Int16> {
        @_lifetime(borrow self) get {
            let free = UnsafeMutableBufferPointer(rebasing: samples[writeIndex...])
            return _overrideLifetime(free.mutableSpan, borrowing: self)
        }
    }
}
