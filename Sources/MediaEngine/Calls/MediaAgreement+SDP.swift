import CallBasics
public import SDP

extension MediaAgreement {
    /// What an exchange of session descriptions has agreed on for a call's sound.
    ///
    /// Signalling's own answers are kept out: keys of secured media, ICE, bandwidth. Rules that no description tells
    /// (`isSymmetric`, `sourceRules`) have their defaults.
    /// - Parameters:
    ///   - media: The agreed audio, `AgreedSession.audio`.
    ///   - registry: Knows codecs: those that are not there are passed over.
    /// - Throws: `EngineError` when no agreed codec is there, the sound is to travel by another protocol than RTP/AVP and
    ///   RTP/AVPF (secured, say), or an address is a name, which must be looked up first.
    public init(_ media: AgreedMedia, in registry: PluginRegistry) throws(EngineError) {
        try self.init(media, in: registry, isSecured: false)
    }

    /// What an exchange has agreed on for a call whose links are secured, or are not.
    ///
    /// - Parameters:
    ///   - media: The agreed audio.
    ///   - registry: Knows codecs.
    ///   - isSecured: Whether `CallConfiguration.security` secures the links.
    /// - Throws: As above; also where one is secured and the other is not.
    package init(_ media: AgreedMedia, in registry: PluginRegistry, isSecured: Bool) throws(EngineError) {
        let isFitting =
            isSecured ? media.transport.isSecuredRTP : media.transport == .rtpAVP || media.transport == .rtpAVPF
        guard isFitting else {
            throw .state(
                .unknownTransport,
                isSecured
                    ? "\(media.transport.name) was agreed, and the call is secured. Offer and take what is secured."
                    : "\(media.transport.name) was agreed, and calls send RTP in the clear. Offer and take RTP/AVP or RTP/AVPF."
            )
        }
        self.init()
        self.isSecured = isSecured
        telephoneEvents = nil
        comfortNoisePayloadType = nil
        let codecs = Self.codecs(media).filter { registry.knows($0.sent) }
        guard let first = codecs.first else {
            let names = media.sending.codecs.map(\.rtpmap).joined(separator: ", ")
            throw .codec(
                CodecError(.unknownCodec, "None of the agreed codecs (\(names)) is here. Offer those of the registry.")
            )
        }
        codec = AgreedCodec(first.sent, receivedAs: first.taken)
        acceptedCodecs = codecs.dropFirst().map { AgreedCodec($0.sent, receivedAs: $0.taken) }
        let rate = first.sent.clockRate
        if let (sent, taken) = Self.pair(media.sending.telephoneEvents, media.receiving.telephoneEvents, at: rate) {
            var events = AgreedEvents(payloadType: sent.payloadType, clockRate: sent.clockRate)
            events.receivedPayloadType = taken.payloadType
            for other in media.receiving.telephoneEvents where other.payloadType != taken.payloadType {
                events.furtherReceived[other.payloadType] = other.clockRate
            }
            telephoneEvents = events
        }
        let rates = codecs.map(\.taken.clockRate)
        comfortNoisePayloadType = media.receiving.comfortNoise.first { rates.contains($0.clockRate) }?.payloadType
        if let (sent, taken) = Self.pair(media.sending.redundancy, media.receiving.redundancy, at: rate),
            sent.clockRate == rate
        {
            redPayloadType = sent.payloadType
            receivedREDPayloadType = taken.payloadType
        }
        packetTime = try Self.packetTime(media, first.sent, registry)
        direction = media.direction
        remote = try media.remote.map(Self.address)
        remoteControl = media.isMultiplexed ? nil : try media.remoteControl.map(Self.address)
        multiplexesControl = media.isMultiplexed
    }

    /// The codecs as both sides number them: the other side's number to send, ours to take.
    private static func codecs(_ media: AgreedMedia) -> [(sent: PayloadFormat, taken: PayloadFormat)] {
        // Both lists are of the same pairs, in the same order.
        Array(zip(media.sending.codecs, media.receiving.codecs))
    }

    /// The formats of clock rate `rate`, or the first ones.
    private static func pair(
        _ sent: [PayloadFormat],
        _ taken: [PayloadFormat],
        at rate: Int
    ) -> (PayloadFormat, PayloadFormat)? {
        let pairs = Array(zip(sent, taken))
        return pairs.first { $0.0.clockRate == rate } ?? pairs.first
    }

    /// The packet time to send, one that the codec has; nil leaves it to the codec.
    ///
    /// What the other side asks for is a wish (RFC 8866, section 6.5): one that the codec cannot meet is met as nearly as
    /// it can.
    private static func packetTime(
        _ media: AgreedMedia,
        _ format: PayloadFormat,
        _ registry: PluginRegistry
    ) throws(EngineError) -> Duration? {
        let codec: CodecDescription
        do throws(CodecError) {
            codec = try registry.codec(named: format.rtpmap).description
        } catch {
            throw .codec(error)
        }
        let usual = Int(codec.defaultPtime.milliseconds)
        guard let wish = media.packetTime ?? media.maximumPacketTime.flatMap({ $0 < usual ? $0 : nil }) else {
            return nil
        }
        return codec.ptime(nearest: wish, limit: media.maximumPacketTime)
    }

    private static func address(_ address: AgreedMedia.Address) throws(EngineError) -> SocketAddress {
        guard let known = SocketAddress(host: address.host, port: address.port) else {
            throw .network(
                NetworkError(.badAddress, "\(address.host) is no address. Look the name up, and agree on its address.")
            )
        }
        return known
    }
}

extension AgreedCodec {
    fileprivate init(_ sent: PayloadFormat, receivedAs taken: PayloadFormat) {
        self.init(sent.rtpmap, payloadType: sent.payloadType)
        receivedPayloadType = taken.payloadType
        parameters = sent.parameters ?? ""
        guard sent.isOpus else { return }
        // Which one the other side prefers to get (`stereo`), the encoder reads.
        receivedChannelCount = OpusParameters(parsing: parameters).sendsStereo.map { $0 ? 2 : 1 }
    }
}

extension PayloadFormat {
    /// "NAME/RATE/CHANNELS", as the registry finds codecs.
    fileprivate var rtpmap: String {
        isOpus || channelCount == 1
            ? "\(encodingName)/\(clockRate)" : "\(encodingName)/\(clockRate)/\(channelCount)"
    }

    fileprivate var isOpus: Bool { encodingName.lowercased() == "opus" }
}

extension PluginRegistry {
    fileprivate func knows(_ format: PayloadFormat) -> Bool {
        codecs.contains { entry in
            let codec = entry.description
            return entry.isEnabled && codec.name.lowercased() == format.encodingName.lowercased()
                && codec.clockRate == format.clockRate
        }
    }

    /// What a description offers for `names`: each codec with its static payload type, or a dynamic one from 96 on, the
    /// telephone events of their clock rates, and comfort noise and redundant audio where they are asked for.
    ///
    /// For `MediaConfiguration.formats`; the ports are those of `CallEngine.reserve`.
    /// - Parameters:
    ///   - names: The codecs, the preferred one first: "opus", "PCMU", "L16/16000".
    ///   - encoder: What this side wishes; it is told to the other side where the codec has a parameter for it.
    ///   - hasTelephoneEvents: Whether keys can be sent.
    ///   - hasComfortNoise: Whether comfort noise is taken, where a codec of 8000 Hz is offered.
    ///   - hasRedundancy: Whether redundant audio (RED) is taken, of the first codec of each clock rate.
    /// - Returns: The formats.
    /// - Throws: `EngineError` when a codec is not there, or there are more than numbers for them.
    public func payloadFormats(
        for names: [String],
        encoder: EncoderConfiguration = EncoderConfiguration(),
        hasTelephoneEvents: Bool = true,
        hasComfortNoise: Bool = true,
        hasRedundancy: Bool = false
    ) throws(EngineError) -> [PayloadFormat] {
        var dynamic: UInt8 = 96
        var formats: [PayloadFormat] = []
        func next() throws(EngineError) -> UInt8 {
            // 101 is what everybody gives telephone events, and some know no other number.
            if dynamic == 101 { dynamic += 1 }
            guard dynamic < 128 else {
                throw .codec(
                    CodecError(.unsupportedConfiguration, "There are not enough payload types. Offer fewer codecs.")
                )
            }
            defer { dynamic += 1 }
            return dynamic
        }
        for name in names {
            let codec: any AudioCodec
            do throws(CodecError) { codec = try self.codec(named: name) } catch { throw .codec(error) }
            let known = codec.description
            let parameters = codec.receiveParameters(for: encoder)
            let payloadType: UInt8
            if let known = known.staticPayloadType { payloadType = known } else { payloadType = try next() }
            formats.append(
                PayloadFormat(
                    payloadType: payloadType,
                    encodingName: known.name,
                    clockRate: known.clockRate,
                    channelCount: known.rtpmapChannelCount,
                    parameters: parameters.isEmpty ? nil : parameters
                )
            )
        }
        let codecs = formats
        var rates: [Int] = []
        for codec in codecs where !rates.contains(codec.clockRate) {
            rates.append(codec.clockRate)
            if hasRedundancy { formats.append(PayloadFormat(redundant: codec, payloadType: try next())) }
        }
        if hasComfortNoise, codecs.contains(where: { $0.clockRate == 8000 }) {
            formats.append(PayloadFormat(payloadType: 13, encodingName: "CN", clockRate: 8000))
        }
        guard hasTelephoneEvents else { return formats }
        for (index, rate) in rates.enumerated() {
            formats.append(
                PayloadFormat(
                    payloadType: index == 0 ? 101 : try next(),
                    encodingName: "telephone-event",
                    clockRate: rate,
                    parameters: "0-15"
                )
            )
        }
        return formats
    }
}
