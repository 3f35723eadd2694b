/// Both directions of one leg, from samples to packets and back, as filters in a graph.
///
///     send     source ─► gain ─► meter ─► tones ─► encoder ─► RTP send
///     receive  RTP receive ─► playout ┬► gain ─► meter ─► tones ─► sink
///                                     └► DTMF detector, where asked for
///
/// Thread: control.
public final class AudioStream: Sendable {
    /// The samples that the codec takes and gives.
    public let format: AudioFormat
    /// The codec.
    public let codec: CodecDescription
    /// The network side of both directions.
    public let transport: RTPTransport

    /// What the playout does, row by row, when the configuration asks for it.
    let playoutTrace: PlayoutTrace?

    let sendGain: GainFilter
    let sendMeter: LevelMeterFilter
    let sendTones: ToneFilter
    let encoder: EncoderFilter
    let sender: RTPSendFilter
    let receiver: RTPReceiveFilter
    let playout: PlayoutFilter
    let receiveGain: GainFilter
    let receiveMeter: LevelMeterFilter
    let receiveTones: ToneFilter
    /// Hears digits in what is received, where that was asked for.
    let keyListener: DTMFDetectorFilter?

    /// A codec that the other side may change to, and its payload type.
    public typealias Accepted = (codec: any AudioCodec, payloadType: UInt8)

    /// A stream of `codec` over `transport`, whose other side may change to one of the `accepted` codecs.
    ///
    /// - Throws: `CodecError` when encoder or decoder cannot be made.
    public init(
        _ codec: any AudioCodec,
        _ configuration: AudioStreamConfiguration,
        accepting accepted: [Accepted] = [],
        transport: RTPTransport,
        detectsInBandDTMF: Bool = false
    ) throws(CodecError) {
        let description = codec.description
        var encoding = configuration.encoder
        encoding.usesFEC = configuration.fec == .on
        encoder = try EncoderFilter(
            codec: codec,
            configuration: encoding,
            payloadType: configuration.payloadType(of: description),
            firstTimestamp: 0
        )
        let decoder = try codec.makeDecoder(channelCount: encoding.channelCount)
        self.codec = description
        self.transport = transport
        format = encoder.format
        sendGain = GainFilter(format: encoder.format)
        sendMeter = LevelMeterFilter(format: encoder.format)
        sendTones = ToneFilter(format: encoder.format)
        sender = RTPSendFilter(transport)
        receiver = RTPReceiveFilter(transport)
        let buffer = configuration.playoutDelay.makeBuffer(clockRate: description.clockRate)
        let alternatives = try accepted.map { other throws(CodecError) in
            let alternative = try other.codec.makeDecoder(channelCount: encoding.channelCount)
            guard alternative.format.channelCount == decoder.format.channelCount else {
                throw CodecError(
                    .unsupportedConfiguration,
                    "\(other.codec.description.name) does not give the \(decoder.format.channelCount) channels of "
                        + "\(description.name). Accept codecs of the same number of channels."
                )
            }
            return Playout.Alternative(
                payloadType: other.payloadType,
                decoder: alternative,
                clockRate: other.codec.description.clockRate
            )
        }
        let sound = Playout(
            decoder: decoder,
            buffer: buffer,
            clockRate: description.clockRate,
            alternatives: alternatives,
            comfortNoiseClockRate: transport.comfortNoise.map { Int($0.clockRate) }
        )
        playoutTrace = configuration.tracesPlayout ? PlayoutTrace() : nil
        if let playoutTrace { sound.record(to: playoutTrace) }
        playout = PlayoutFilter(
            sound,
            codecName: description.name,
            delay: configuration.playoutDelay.shortest,
            longestDelay: configuration.playoutDelay.longest,
            transport: transport
        )
        transport.session.voicePath = VoicePath(
            codecName: description.name,
            sendingDelay: encoder.ptime + encoder.lookahead
        )
        receiveGain = GainFilter(format: decoder.format)
        receiveMeter = LevelMeterFilter(format: decoder.format)
        receiveTones = ToneFilter(format: decoder.format)
        do {
            keyListener =
                detectsInBandDTMF ? try DTMFDetectorFilter(format: decoder.format, hasOutput: false) : nil
        } catch {
            throw CodecError(.unsupportedConfiguration, error.message)
        }
    }

    /// By how much the codec itself delays sound.
    public var codecDelay: Duration { encoder.lookahead }

    /// What the encoder can do against loss, and whether the other side takes redundant audio.
    var lossAbilities: LossPolicy.Abilities {
        LossPolicy.Abilities(
            allowsFEC: encoder.canUseFEC,
            allowsRED: transport.redPayloadType != nil,
            bitrate: encoder.initialBitrate,
            ptime: encoder.ptime
        )
    }

    /// The commands that make what is sent follow `protection`.
    func commands(for protection: LossProtection) -> [GraphCommand] {
        var commands: [GraphCommand] = []
        var (fec, generations, bitrate) = (0, 0, encoder.initialBitrate)
        switch protection {
        case .none: break
        case .inBandFEC(let expected): fec = expected
        case .redundancy(let count, let each): (generations, bitrate) = (count, each)
        }
        if encoder.canUseFEC { commands.append(encoder.fecCommand(fec > 0, expectedLossPercent: fec)) }
        if let bitrate { commands.append(encoder.bitrateCommand(bitrate)) }
        if transport.redPayloadType != nil { commands.append(sender.redundancyCommand(generations: generations)) }
        return commands
    }

    /// The last filter of the receiving direction: what it gives is what is heard.
    public var heard: Filter { receiveTones }

    /// The last filter of the sending direction that still carries samples: what it gives is what is sent.
    public var sent: Filter { sendTones }

    /// Adds all filters to `graph` and links them; `source` feeds the sending direction.
    ///
    /// - Throws: `GraphError` when `source` gives something that cannot be converted.
    public func assemble(in graph: inout Graph, source: Filter) throws(GraphError) {
        try graph.connect(receiver, to: playout)
        try graph.connect(playout, to: receiveGain)
        try graph.connect(receiveGain, to: receiveMeter)
        try graph.connect(receiveMeter, to: receiveTones)
        if let keyListener { try graph.connect(playout, to: keyListener) }

        try graph.connect(source, to: sendGain, converting: true)
        try graph.connect(sendGain, to: sendMeter)
        try graph.connect(sendMeter, to: sendTones)
        try graph.connect(sendTones, to: encoder)
        try graph.connect(encoder, to: sender)
    }

    /// Every filter that `assemble` adds.
    var filters: [Filter] {
        [
            receiver, playout, receiveGain, receiveMeter, receiveTones,
            sendGain, sendMeter, sendTones, encoder, sender,
        ] + [keyListener].compactMap(\.self)
    }
}
