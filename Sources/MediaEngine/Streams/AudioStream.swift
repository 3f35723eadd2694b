import CallBasics
import RTP

/// What stays of a leg when codecs change: levels, reasons for silence, and whether sound is sent.
struct StreamControls: Sendable {
    let sendGain = GainControl()
    let receiveGain = GainControl()
    /// Why no sound is sent.
    let sending = SendingControl()
    /// Whether a sound for who is held is sent in place of what is said; nil where there is none.
    let heldSound: HeldSoundControl?

    /// Controls of a leg that begins; a filter made for them begins as they are, without a fade.
    init(isMuted: Bool, hasHeldSound: Bool) {
        heldSound = hasHeldSound ? HeldSoundControl() : nil
        sendGain.set(.muted, isMuted)
    }
}

/// Both directions of one leg, from samples to packets and back, as filters in a graph.
///
///     send     source ─► gain ─► (others of a conference) ─► (held sound) ─► meter ─► tones ─► encoder ─► RTP send
///     receive  RTP receive ─► playout ┬► gain ─► meter ─► sink
///                                     └► DTMF detector, where asked for
///
/// A stream does not change. When codecs do, another takes its place, with the filters that can stay; those that cannot
/// hand on what waits in them (`takeOverOrders`).
/// Thread: control.
package final class AudioStream: @unchecked Sendable {
    /// What was agreed.
    let agreement: MediaAgreement
    /// The samples that the codec takes and gives.
    let format: AudioFormat
    /// The codec that is sent.
    let codec: CodecDescription
    let controls: StreamControls

    /// What the playout does, row by row, when the configuration asks for it.
    let playoutTrace: PlayoutTrace?

    let sendGain: GainFilter
    /// Brings in the sound for who is held, where there is one.
    let heldSound: HeldSoundFilter?
    let sendMeter: LevelMeterFilter
    let sendTones: ToneFilter
    let encoder: EncoderFilter
    let sender: RTPSendFilter
    let receiver: RTPReceiveFilter
    let playout: PlayoutFilter
    let receiveGain: GainFilter
    let receiveMeter: LevelMeterFilter
    /// Hears digits in what is received, where that was asked for.
    let keyListener: DTMFDetectorFilter?

    private let formats: AgreedFormats
    private let configuration: AudioStreamConfiguration
    private let encoding: EncoderConfiguration
    // The media thread's own; only handed from stream to stream here.
    private let leg: RTPLeg
    private let playoutCore: Playout

    /// A stream of what was agreed over `leg`.
    ///
    /// - Parameters:
    ///   - agreement: What was agreed.
    ///   - formats: The agreement with its codecs found.
    ///   - configuration: What this side wants.
    ///   - phase: At which times packets begin, so that many legs do not encode in the same tick; nil at once.
    ///   - isMuted: Whether it begins muted.
    ///   - hasHeldSound: Whether there is a sound for who is held.
    ///   - leg: Session and port, which know the agreement.
    ///   - former: The stream whose place this one is to take.
    /// - Throws: `CodecError` when encoder or decoder cannot be made.
    package init(
        _ agreement: MediaAgreement,
        _ formats: AgreedFormats,
        _ configuration: AudioStreamConfiguration,
        phase: Duration? = nil,
        isMuted: Bool = false,
        hasHeldSound: Bool = false,
        over leg: RTPLeg,
        continuing former: AudioStream? = nil
    ) throws(CodecError) {
        let description = formats.codec.description
        self.agreement = agreement
        self.formats = formats
        self.configuration = configuration
        self.leg = leg
        codec = description
        controls = former?.controls ?? StreamControls(isMuted: isMuted, hasHeldSound: hasHeldSound)
        var encoding = configuration.encoder
        encoding.usesFEC = configuration.fec == .on
        if let packetTime = agreement.packetTime { encoding.ptime = packetTime }
        if let parameters = agreement.codec?.parameters, !parameters.isEmpty { encoding.remoteParameters = parameters }
        self.encoding = encoding
        if let former, former.encoding == encoding, former.formats.payloadType == formats.payloadType,
            former.codec == description
        {
            encoder = former.encoder
        } else {
            encoder = try EncoderFilter(
                codec: formats.codec,
                configuration: encoding,
                payloadType: formats.payloadType,
                phase: phase,
                sending: controls.sending,
                continuing: former?.encoder
            )
        }
        format = encoder.format
        sender = former?.sender ?? RTPSendFilter(leg, formats.send)
        receiver = former?.receiver ?? RTPReceiveFilter(leg)

        playoutTrace = former?.playoutTrace ?? (configuration.tracesPlayout ? PlayoutTrace() : nil)
        if let former, former.takes(formats) {
            playoutCore = former.playoutCore
            playout = former.playout
        } else {
            let codecs = try Self.playoutCodecs(formats.taken, encoding.channelCount, former: former)
            playoutCore = Playout(
                codecs,
                delay: configuration.playoutDelay,
                comfortNoiseClockRate: formats.comfortNoiseClockRate,
                continuing: former?.playoutCore
            )
            if let playoutTrace, former == nil { playoutCore.record(to: playoutTrace) }
            playout = PlayoutFilter(
                playoutCore,
                codecName: description.name,
                delay: configuration.playoutDelay,
                feedback: leg.feedback,
                isFirst: former == nil
            )
        }
        let keepsSendFormat = former?.format == encoder.format
        sendGain =
            former.flatMap { keepsSendFormat ? $0.sendGain : nil } ?? GainFilter(format: format, controls.sendGain)
        heldSound = controls.heldSound.map { [format] control in
            former.flatMap { keepsSendFormat ? $0.heldSound : nil } ?? HeldSoundFilter(format: format, control)
        }
        sendMeter = former.flatMap { keepsSendFormat ? $0.sendMeter : nil } ?? LevelMeterFilter(format: format)
        sendTones = former.flatMap { keepsSendFormat ? $0.sendTones : nil } ?? ToneFilter(format: format)
        let heardFormat = playoutCore.format
        let kept = former.flatMap { $0.playoutCore.format == heardFormat ? $0 : nil }
        receiveGain = kept?.receiveGain ?? GainFilter(format: heardFormat, controls.receiveGain)
        receiveMeter = kept?.receiveMeter ?? LevelMeterFilter(format: heardFormat)
        if configuration.detectsInBandDTMF {
            if let known = kept?.keyListener {
                keyListener = known
            } else {
                keyListener = try Self.makeKeyListener(heardFormat)
            }
        } else {
            keyListener = nil
        }
    }

    private static func makeKeyListener(_ format: AudioFormat) throws(CodecError) -> DTMFDetectorFilter {
        do throws(ToneError) {
            return try DTMFDetectorFilter(format: format, hasOutput: false)
        } catch {
            throw CodecError(.unsupportedConfiguration, error.message)
        }
    }

    /// Whether what is taken is as in `other`.
    private func takes(_ other: AgreedFormats) -> Bool {
        formats.comfortNoiseClockRate == other.comfortNoiseClockRate && formats.taken.count == other.taken.count
            && zip(formats.taken, other.taken).allSatisfy {
                $0.payloadType == $1.payloadType && $0.codec.description == $1.codec.description
            }
    }

    private static func playoutCodecs(
        _ taken: [(codec: any AudioCodec, payloadType: UInt8)],
        _ channelCount: Int,
        former: AudioStream?
    ) throws(CodecError) -> [Playout.Codec] {
        var codecs: [Playout.Codec] = []
        for (codec, payloadType) in taken {
            // A decoder that stays goes on from what it has heard.
            let known = former.flatMap { former in
                zip(former.formats.taken, former.playoutCore.codecs).first {
                    $0.0.payloadType == payloadType && $0.0.codec.description == codec.description
                }
            }
            let decoder: any AudioDecoder
            if let known { decoder = known.1.own } else { decoder = try codec.makeDecoder(channelCount: channelCount) }
            guard codecs.isEmpty || decoder.format.channelCount == codecs[0].own.format.channelCount else {
                throw CodecError(
                    .unsupportedConfiguration,
                    "\(codec.description.name) does not give as many channels as \(taken[0].codec.description.name). "
                        + "Accept codecs of the same number of channels."
                )
            }
            codecs.append(
                Playout.Codec(
                    payloadType: payloadType,
                    decoder: decoder,
                    clockRate: codec.description.clockRate
                )
            )
        }
        return codecs
    }

    /// Begins to wait for the other side, whose address signalling has named; before the media thread has the stream.
    func begin(at now: MediaTime) { leg.session.begin(at: now) }

    /// Whether nothing was agreed, and sent, so far: another encoder need not go on with this one's packets.
    var hasSentNothing: Bool { agreement.codec == nil && rtpStatistics.sentPacketCount == 0 }

    /// The stream that takes the place of this one when `agreement` takes the place of what was agreed.
    ///
    /// - Parameters:
    ///   - agreement: What is agreed from now on.
    ///   - formats: The agreement with its codecs found.
    ///   - phase: At which times packets begin; nil goes on with this stream's, as one must that has sent any.
    /// - Returns: The stream.
    /// - Throws: `CodecError` when encoder or decoder cannot be made.
    func updated(
        _ agreement: MediaAgreement,
        _ formats: AgreedFormats,
        phase: Duration? = nil
    ) throws(CodecError) -> AudioStream {
        try AudioStream(agreement, formats, configuration, phase: phase, over: leg, continuing: self)
    }

    // MARK: Facts

    /// What was sent and received, as of the last tick.
    var rtpStatistics: RTPStatistics { leg.statistics.value }

    /// Datagrams that the socket dropped before they were read.
    var socketDropCount: Int { leg.port.droppedCount }

    /// Answers that packets did not arrive.
    var unreachableCount: Int { leg.port.unreachableCount }

    /// By how much the codec itself delays sound.
    var codecDelay: Duration { encoder.lookahead }

    /// What the codec adds to delay and impairment.
    var voicePath: VoicePath {
        VoicePath(
            codecName: codec.name,
            sampleRate: codec.format.sampleRate,
            sendingDelay: encoder.ptime + encoder.lookahead
        )
    }

    /// What the encoder can do against loss, and whether the other side takes redundant audio.
    var lossAbilities: LossPolicy.Abilities {
        LossPolicy.Abilities(
            allowsFEC: encoder.canUseFEC,
            allowsRED: formats.send.redPayloadType != nil,
            bitrate: encoder.initialBitrate,
            ptime: encoder.ptime
        )
    }

    // MARK: Orders

    /// What makes what is sent follow `protection`.
    func orders(for protection: LossProtection) -> [GraphRunner.Order] {
        var orders: [GraphRunner.Order] = []
        var (fec, generations, bitrate) = (0, 0, encoder.initialBitrate)
        switch protection {
        case .none: break
        case .inBandFEC(let expected): fec = expected
        case .redundancy(let count, let each): (generations, bitrate) = (count, each)
        }
        if encoder.canUseFEC { orders.append(.command(.fec(isOn: fec > 0, expectedLossPercent: fec), to: encoder)) }
        if let bitrate { orders.append(.command(.bitrate(bitrate), to: encoder)) }
        if formats.send.redPayloadType != nil {
            orders.append(.command(.redundancy(generations: generations), to: sender))
        }
        return orders
    }

    /// What makes this stream's filters go on where those of `former` are; the plan is replaced in the same edge of a tick.
    func takeOverOrders(
        from former: AudioStream,
        addresses: RTPAddresses,
        at now: MediaTime
    ) -> [GraphRunner.Order] {
        leg.update.offer(LegUpdate(payloads: formats.payloads, addresses: addresses, voicePath: voicePath))
        var orders: [GraphRunner.Order] = [
            .command(.update(at: now), to: receiver), .command(.formats(formats.send), to: sender),
        ]
        if playout !== former.playout {
            orders.append(.command(.takeOver(.passUnretained(former.playout)), to: playout))
        }
        if encoder !== former.encoder {
            orders.append(.command(.takeOver(.passUnretained(former.encoder)), to: encoder))
        }
        return orders
    }

    // MARK: Graph

    /// The samples that are heard.
    var heardFormat: AudioFormat { playoutCore.format }

    /// The last filter of the receiving direction: what it gives is what is heard.
    var heard: Filter { receiveMeter }

    /// The last filter of the sending direction that still carries samples: what it gives is what is sent.
    var sent: Filter { sendTones }

    /// The stream's filters.
    var filters: [Filter] {
        sendingFilters + [receiver, playout, receiveGain, receiveMeter] + [keyListener].compactMap { $0 as Filter? }
    }

    /// Adds the receiving direction to `graph`, as far as it is not there.
    package func linkReceiving(in graph: inout Graph) throws(GraphError) {
        try graph.link(receiver, to: playout)
        try graph.link(playout, to: receiveGain)
        try graph.link(receiveGain, to: receiveMeter)
        if let keyListener { try graph.link(playout, to: keyListener) }
    }

    /// The filters of the sending direction.
    var sendingFilters: [Filter] {
        [sendGain, sendMeter, sendTones, encoder, sender] + [heldSound].compactMap { $0 as Filter? }
    }

    /// Adds the sending direction to `graph`, fed by `source` and, while the other side is held, by `held`, as far as it is
    /// not there.
    ///
    /// - Parameters:
    ///   - graph: Where it is added.
    ///   - source: What gives what is said.
    ///   - held: What gives the sound for who is held.
    ///   - others: What gives the others of a conference, and adds them to what is said.
    /// - Throws: `GraphError` when one of them gives something that cannot be converted.
    package func linkSending(
        in graph: inout Graph,
        source: Filter,
        held: Filter? = nil,
        others: (source: Filter, adder: Filter)? = nil
    ) throws(GraphError) {
        try graph.link(source, to: sendGain, converting: true)
        var last: Filter = sendGain
        if let others {
            try graph.link(last, to: others.adder)
            try graph.link(others.source, to: others.adder, input: 1, converting: true)
            last = others.adder
        }
        if let heldSound {
            try graph.link(last, to: heldSound)
            if let held { try graph.link(held, to: heldSound, input: 1, converting: true) }
            last = heldSound
        }
        try graph.link(last, to: sendMeter)
        try graph.link(sendMeter, to: sendTones)
        try graph.link(sendTones, to: encoder)
        try graph.link(encoder, to: sender)
    }
}
