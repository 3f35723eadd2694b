/// Gathers samples into packets of the codec's length and encodes them.
///
///     audio ──►┌─────────┐──► packets
///              │ encoder │
///              └─────────┘
///
/// Packets carry the payload type, an RTP timestamp in units of the clock rate, and the marker on the first packet and
/// on the first after a silence. The timestamp is that of the packet's first frame and goes on through silence, whether
/// the codec leaves it out (DTX) or sending is off, so that the receiver sees how long it lasted.
/// Thread: as every filter; make commands with the functions below.
/// Source: RFC 3550, section 5.1; RFC 3551, section 4.1.
public final class EncoderFilter: Filter, @unchecked Sendable {
    /// Counters since the filter was made; the newest values, readable from any thread.
    public let statistics = LatestValue(EncoderStatistics())

    private let encoder: any AudioEncoder
    private let payloadType: UInt8
    private let timestampStep: UInt32
    private let gathered: UnsafeMutablePointer<Int16>
    private let gatheredCapacity: Int
    private var gatheredCount = 0
    private var timestamp: UInt32
    private var marksNext = true
    private var isSending = true
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
    ///   - firstTimestamp: The RTP timestamp of the first frame; RFC 3550 wants it random.
    /// - Throws: `CodecError` when the codec cannot do what the configuration asks.
    public init(
        codec: any AudioCodec,
        configuration: EncoderConfiguration,
        payloadType: UInt8,
        firstTimestamp: UInt32
    ) throws(CodecError) {
        encoder = try codec.makeEncoder(configuration)
        self.payloadType = payloadType & 0x7F
        timestamp = firstTimestamp
        let format = encoder.format
        let clockRate = codec.description.clockRate
        timestampStep = UInt32(clamping: encoder.frameCount * clockRate / format.sampleRate)
        gatheredCapacity = encoder.frameCount * format.channelCount
        gathered = .allocate(capacity: gatheredCapacity)
        gathered.initialize(repeating: 0, count: gatheredCapacity)
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
    public var format: AudioFormat { encoder.format }

    /// By how much the codec itself delays sound.
    public var lookahead: Duration { encoder.lookahead }

    /// The bitrate that the encoder began with, in bit/s; nil when it has one rate.
    public let initialBitrate: Int?

    /// Whether the encoder has in-band FEC, and the receiver takes it.
    public let canUseFEC: Bool

    /// Audio in each packet.
    public var ptime: Duration { description.latency }

    // MARK: Commands

    /// Asks for another bitrate in bit/s; a codec with one rate ignores it.
    public func bitrateCommand(_ bitrate: Int) -> GraphCommand {
        GraphCommand(to: self, "bitrate", value: Int64(bitrate))
    }

    /// Turns in-band FEC on or off and tells the loss in percent that it is to stand.
    public func fecCommand(_ isOn: Bool, expectedLossPercent: Int) -> GraphCommand {
        GraphCommand(to: self, "fec", value: isOn ? 1 : 0, detail: Int64(expectedLossPercent))
    }

    /// Starts or stops sending packets; the RTP timestamp goes on meanwhile.
    public func sendingCommand(_ isOn: Bool) -> GraphCommand {
        GraphCommand(to: self, "sending", value: isOn ? 1 : 0)
    }

    /// Obeys "bitrate", "fec" and "sending".
    public override func handle(_ command: GraphCommand) {
        switch command.name {
        case "bitrate":
            bitrate = Int(clamping: command.value)
        case "fec":
            usesFEC = command.value != 0
            expectedLossPercent = min(max(Int(clamping: command.detail), 0), 100)
        case "sending":
            isSending = command.value != 0
            return
        default:
            return
        }
        encoder.adapt(bitrate: bitrate, usesFEC: usesFEC, expectedLossPercent: expectedLossPercent)
    }

    // MARK: The tick

    /// Gathers the tick's samples and emits the packets that are then full.
    public override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        let samples = block.samples
        let packets = io.outputPackets()
        var taken = 0
        while taken < samples.count {
            let count = min(samples.count &- taken, gatheredCapacity &- gatheredCount)
            samples.extracting(taken..<taken &+ count).withUnsafeBufferPointer { piece in
                guard let start = piece.baseAddress else { return }
                (gathered + gatheredCount).update(from: start, count: count)
            }
            taken = taken &+ count
            gatheredCount = gatheredCount &+ count
            if gatheredCount == gatheredCapacity {
                emitPacket(to: packets, at: io.time)
                statistics.publish(counters)
            }
        }
    }

    private func emitPacket(to packets: PacketBatch, at time: MediaTime) {
        gatheredCount = 0
        defer { timestamp = timestamp &+ timestampStep }
        guard isSending else {
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
        let samples = UnsafeBufferPointer(start: gathered, count: gatheredCapacity)
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
public struct EncoderStatistics: Hashable, Sendable, BitwiseCopyable {
    /// Packets made.
    public var packetCount: Int64 = 0
    /// Bytes of their payloads.
    public var byteCount: Int64 = 0
    /// Packets left out, by DTX or because sending is off.
    public var silentPacketCount: Int64 = 0
    /// Packets lost because the tick's batch was full.
    public var refusedPacketCount: Int64 = 0

    /// Nothing yet.
    public init() {}
}
