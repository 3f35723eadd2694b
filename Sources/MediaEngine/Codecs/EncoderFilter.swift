import CallBasics

/// Whether packets are sent: the state that an `EncoderFilter` follows.
///
/// Thread: any.
final class SendingControl: Sendable {
    /// Why none are sent, if none are.
    private let switches = Switches()

    /// Makes `reason` for silence hold, or hold no longer.
    func set(_ reason: Switches.Reason, _ holds: Bool) { switches.set(reason, holds) }

    /// Whether `reason` for silence holds.
    func holds(_ reason: Switches.Reason) -> Bool { switches.holds(reason) }

    /// Whether there is no reason for silence.
    var isOn: Bool { switches.isOn }
}

/// Gathers samples into packets of the codec's length and encodes them.
///
///     audio ──►┌─────────┐──► packets
///              │ encoder │
///              └─────────┘
///
/// Packets carry the payload type, an RTP timestamp in units of the clock rate, and the marker on the first packet and
/// on the first after a silence. The timestamp is that of the packet's first frame and goes on through silence, whether
/// the codec leaves it out (DTX) or sending is off, so that the receiver sees how long it lasted.
/// Thread: as every filter.
/// Source: RFC 3550, section 5.1; RFC 3551, section 4.1.
package final class EncoderFilter: ControlledFilter<EncoderFilter.Command, EncoderFilter.Event>, @unchecked Sendable {
    /// What it can be asked for.
    package enum Command: Sendable, BitwiseCopyable {
        /// Another bitrate, in bit/s; a codec with one rate ignores it.
        case bitrate(Int)
        /// In-band FEC on or off, and the loss in percent that it is to stand.
        case fec(isOn: Bool, expectedLossPercent: Int)
        /// Goes on where another encoder is, in whose place it is put at the same edge of a tick: at its time stamp, with the
        /// samples that it has gathered.
        case takeOver(Unmanaged<EncoderFilter>)
    }

    /// What it tells.
    package enum Event: Sendable, BitwiseCopyable {
        /// Where another encoder was, it encodes in this tick of the so many that make a packet, from 0, as `phase` counts
        /// them.
        case placed(tick: Int, of: Int)
    }

    /// Counters since the filter was made; the newest values, readable from any thread.
    package let statistics = LatestValue(EncoderStatistics())

    private let encoder: any AudioEncoder
    private let payloadType: UInt8
    private let timestampStep: UInt32
    /// What waits for a packet: less than one, but for what a former encoder with longer packets has left.
    private let gathered: UnsafeMutablePointer<Int16>
    private let gatheredCapacity: Int
    private var gatheredCount = 0
    /// Samples in a packet.
    private let packetCount: Int
    /// Which tick of a packet is the first, until that is done.
    private var phase: Duration?
    /// Whether it is to be told in which tick packets are full.
    private var isPlaceNews = false
    private var timestamp: UInt32 = 0
    private var marksNext = true
    private let sending: SendingControl
    private let bridge: Resampler?
    private var bitrate: Int?
    private var usesFEC: Bool
    private var expectedLossPercent: Int
    private var counters = EncoderStatistics()

    /// A filter that encodes with a new encoder of `codec`.
    ///
    /// - Parameters:
    ///   - codec: The codec.
    ///   - configuration: What the encoder is to do.
    ///   - payloadType: The RTP payload type of the packets, 0 to 127.
    ///   - phase: At which times packets begin, counted from multiples of their length: the first one begins with as much
    ///     silence as that takes, so that the packets of many legs are not all full in the same tick. Nil begins at once.
    /// - Throws: `CodecError` when the codec cannot do what the configuration asks.
    package convenience init(
        codec: any AudioCodec,
        configuration: EncoderConfiguration,
        payloadType: UInt8,
        phase: Duration? = nil
    ) throws(CodecError) {
        try self.init(
            codec: codec,
            configuration: configuration,
            payloadType: payloadType,
            phase: phase,
            sending: SendingControl(),
            continuing: nil
        )
    }

    /// As the other, with `sending`, which says whether packets are sent, and the encoder whose place this one will take
    /// by `takeOver`; with a phase, that one has sent nothing.
    init(
        codec: any AudioCodec,
        configuration: EncoderConfiguration,
        payloadType: UInt8,
        phase: Duration?,
        sending: SendingControl,
        continuing former: EncoderFilter?
    ) throws(CodecError) {
        encoder = try codec.makeEncoder(configuration)
        self.payloadType = payloadType & 0x7F
        self.sending = sending
        let format = encoder.format
        let clockRate = codec.description.clockRate
        timestampStep = UInt32(clamping: encoder.frameCount * clockRate / format.sampleRate)
        self.phase = phase
        packetCount = encoder.frameCount * format.channelCount
        // A resampler may give some frames more than the ratio says.
        let inherited = former.map { $0.inheritedFrameCount * format.sampleRate / $0.format.sampleRate + 64 }
        gatheredCapacity = packetCount + (inherited ?? 0) * format.channelCount
        gathered = .allocate(capacity: gatheredCapacity)
        gathered.initialize(repeating: 0, count: gatheredCapacity)
        bridge = former.flatMap { former in
            guard former.format.sampleRate != format.sampleRate else { return nil }
            return Resampler(
                from: former.format.sampleRate,
                to: format.sampleRate,
                channelCount: format.channelCount,
                quality: .low,
                maximumFrameCount: former.inheritedFrameCount
            )
        }
        bitrate = configuration.bitrate
        initialBitrate = encoder.bitrate
        canUseFEC = encoder.canUseFEC
        usesFEC = configuration.usesFEC
        expectedLossPercent = configuration.expectedLossPercent
        super.init(
            FilterDescription(
                name: "\(codec.description.name) encoder",
                purpose: "Turns samples into \(codec.description.rtpmap) packets.",
                inputs: [.audio(format)],
                outputs: [.packets()],
                latency: format.duration(ofFrames: encoder.frameCount)
            )
        )
    }

    deinit {
        gathered.deallocate()
    }

    /// The samples that the filter takes.
    package var format: AudioFormat { encoder.format }

    /// By how much the codec itself delays sound.
    package var lookahead: Duration { encoder.lookahead }

    /// The bitrate that the encoder began with, in bit/s; nil when it has one rate.
    package let initialBitrate: Int?

    /// Whether the encoder has in-band FEC, and the receiver takes it.
    package let canUseFEC: Bool

    /// Audio in each packet.
    package var ptime: Duration { description.latency }

    package override func handle(_ command: Command) {
        switch command {
        case .bitrate(let bitrate): self.bitrate = bitrate
        case .fec(let isOn, let percent):
            usesFEC = isOn
            expectedLossPercent = min(max(percent, 0), 100)
        case .takeOver(let former):
            former._withUnsafeGuaranteedRef { takeOver($0) }
            return
        }
        encoder.adapt(bitrate: bitrate, usesFEC: usesFEC, expectedLossPercent: expectedLossPercent)
    }

    private func takeOver(_ former: EncoderFilter) {
        isPlaceNews = true
        guard phase == nil else { return beginAnew(after: former) }
        let count = min(former.gatheredCount, former.inheritedFrameCount * former.format.channelCount)
        let waiting = UnsafeBufferPointer(start: former.gathered, count: count).span
        // What the other rate's time stamp has come to is gone on from (RFC 7160, section 4.1): the present instant.
        let now = former.timestamp &+ former.units(ofSamples: count)
        var target = UnsafeMutableBufferPointer(start: gathered, count: gatheredCapacity).mutableSpan
        if let bridge {
            gatheredCount = bridge.process(waiting, into: &target).produced &* format.channelCount
        } else {
            gatheredCount = min(waiting.count, gatheredCapacity)
            for index in 0..<gatheredCount { target[index] = waiting[index] }
        }
        // One that has not begun leaves when to begin.
        phase = former.phase
        timestamp = now &- units(ofSamples: gatheredCount)
        marksNext = former.marksNext
        counters = former.counters
    }

    /// Goes on at the former encoder's time stamp, and with nothing else of it: it has sent nothing.
    private func beginAnew(after former: EncoderFilter) {
        timestamp = former.timestamp &+ former.units(ofSamples: former.gatheredCount)
        counters = former.counters
    }

    /// Frames that another encoder takes over at most.
    private var inheritedFrameCount: Int { 2 * encoder.frameCount }

    private func units(ofSamples count: Int) -> UInt32 {
        UInt32(clamping: count / format.channelCount &* Int(timestampStep) / encoder.frameCount)
    }

    // MARK: The tick

    /// Gathers the tick's samples and emits the packets that are then full.
    package override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        let samples = block.samples
        let packets = io.outputPackets()
        if let phase { begin(phase, io) }
        if isPlaceNews { tellPlace(io) }
        while gatheredCount >= packetCount { emitPacket(to: packets, at: io.time) }
        var taken = 0
        while taken < samples.count {
            let count = min(samples.count &- taken, packetCount &- gatheredCount)
            samples.extracting(taken..<taken &+ count).withUnsafeBufferPointer { piece in
                guard let start = piece.baseAddress else { return }
                (gathered + gatheredCount).update(from: start, count: count)
            }
            taken = taken &+ count
            gatheredCount = gatheredCount &+ count
            if gatheredCount == packetCount {
                emitPacket(to: packets, at: io.time)
                statistics.publish(counters)
            }
        }
    }

    /// Puts silence before the first sample.
    private func begin(_ phase: Duration, _ io: borrowing FilterIO) {
        self.phase = nil
        let tick = max(format.frameCount(in: io.tickDuration), 1)
        let count = max(encoder.frameCount / tick, 1)
        let tickNumber = Int(io.time.nanoseconds / max(io.tickDuration.nanoseconds, 1))
        let silence = (tickNumber &+ format.frameCount(in: phase) / tick) % count &* tick
        gatheredCount = silence &* format.channelCount
        // The first frame that is not silence has the time stamp of now: 0, unless another encoder stood here before.
        timestamp = timestamp &- units(ofSamples: gatheredCount)
    }

    /// Tells in which tick packets will be full; what finds no place is told in the next tick.
    private func tellPlace(_ io: borrowing FilterIO) {
        let tick = max(format.frameCount(in: io.tickDuration), 1) &* format.channelCount
        let count = max(packetCount / tick, 1)
        let missing = packetCount &- gatheredCount % packetCount
        let gatheredTicks = count &- (missing &+ tick &- 1) / tick
        let tickNumber = Int(io.time.nanoseconds / max(io.tickDuration.nanoseconds, 1))
        let place = (gatheredTicks &- tickNumber) % count
        isPlaceNews = !offer(.placed(tick: place < 0 ? place &+ count : place, of: count), io)
    }

    private func emitPacket(to packets: PacketBatch, at time: MediaTime) {
        defer {
            let rest = gatheredCount &- packetCount
            if rest > 0 { gathered.update(from: gathered + packetCount, count: rest) }
            gatheredCount = rest
            timestamp = timestamp &+ timestampStep
        }
        guard sending.isOn else {
            counters.silentPacketCount &+= 1
            marksNext = true
            return
        }
        guard packets.count < PacketBatch.capacity else {
            counters.refusedPacketCount &+= 1
            return
        }
        let header = PacketHeader(
            rtpTimestamp: timestamp,
            payloadType: payloadType,
            isMarked: marksNext,
            arrival: time
        )
        var byteCount = 0
        let samples = UnsafeBufferPointer(start: gathered, count: packetCount)
        packets.append(header) { payload in
            byteCount = encoder.encode(samples.span, into: &payload)
            return byteCount
        }
        guard byteCount > 0 else {
            counters.silentPacketCount &+= 1
            marksNext = true
            return
        }
        marksNext = false
        counters.packetCount &+= 1
        counters.byteCount &+= Int64(byteCount)
    }
}

/// What an encoder has done since it was made.
package struct EncoderStatistics: Hashable, Sendable, BitwiseCopyable {
    /// Packets made.
    package var packetCount: Int64 = 0
    /// Bytes of their payloads.
    package var byteCount: Int64 = 0
    /// Packets left out, by DTX or because sending is off.
    package var silentPacketCount: Int64 = 0
    /// Packets lost because the tick's batch was full.
    package var refusedPacketCount: Int64 = 0

    /// Nothing yet.
    package init() {}
}
