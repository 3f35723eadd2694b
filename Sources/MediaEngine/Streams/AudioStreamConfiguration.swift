/// How what is sent is protected against loss.
public enum FECMode: String, Sendable, Hashable, CaseIterable {
    /// As `LossPolicy` decides from what the other side reports: not on a clean path, where FEC costs quality at the
    /// same bitrate, by in-band FEC under loss, and by RED under much loss if it was agreed.
    case auto
    /// By in-band FEC, always.
    case on
    /// Never.
    case off
}

/// A codec that the other side may send in place of the one that it began with.
public struct AcceptedCodec: Sendable, Hashable {
    /// The codec's name.
    public var codec: String
    /// Its RTP payload type; nil takes the static one.
    public var payloadType: UInt8?

    /// The codec called `codec`, as `payloadType`.
    public init(_ codec: String, payloadType: UInt8? = nil) {
        self.codec = codec
        self.payloadType = payloadType
    }
}

/// What one side of a call sends and how it receives.
public struct AudioStreamConfiguration: Sendable, Hashable {
    /// The codec's name: "opus", "PCMU", "G722".
    public var codec = "opus"
    /// The codec's RTP payload type; nil takes the static one, or 96.
    public var payloadType: UInt8?
    /// Further codecs that are understood, so that the other side may change to them in the middle; `codec` is sent.
    ///
    /// Their decoders are made with the call, and what they give is brought to the rate of `codec`.
    public var acceptedCodecs: [AcceptedCodec] = []
    /// The payload type of telephone events; nil sends and understands none.
    public var telephoneEventPayloadType: UInt8? = 101
    /// The payload type of comfort noise (RFC 3389), which is received and not sent; nil understands none.
    ///
    /// The static 13 counts at 8000 Hz, and is left alone where neither `codec` nor an accepted one does. Other numbers
    /// count as `codec` does.
    public var comfortNoisePayloadType: UInt8? = 13
    /// The payload type of redundant audio (RED, RFC 2198); nil sends and understands none.
    ///
    /// Give one only when the other side agreed to it.
    public var redPayloadType: UInt8?
    /// What is asked of the encoder; its `usesFEC` follows `fec`.
    public var encoder = EncoderConfiguration()
    /// How what is sent is protected against loss.
    public var fec = FECMode.auto
    /// How long packets are held back against jitter.
    public var playoutDelay = PlayoutDelay.automatic
    /// Whether the playout keeps a trace of what it does: `Call.playoutTrace`.
    public var tracesPlayout = false
    /// What is done to the microphone's signal before it is sent.
    public var voiceProcessing = VoiceProcessingConfiguration()

    /// The defaults: Opus, keys as telephone events, FEC when there is loss, packets held back as the network needs.
    public init() {}

    /// The payload type to use with `codec`.
    func payloadType(of codec: CodecDescription) -> UInt8 {
        payloadType ?? codec.staticPayloadType ?? 96
    }

    /// The payload type and clock rate of comfort noise beside `codec` and the `accepted` ones; nil where there is none.
    func comfortNoise(
        with codec: CodecDescription,
        accepted: [AudioStream.Accepted]
    ) -> (payloadType: UInt8, clockRate: UInt32)? {
        guard let type = comfortNoisePayloadType else { return nil }
        let clockRate = type == 13 ? 8000 : codec.clockRate
        let codecs = [codec] + accepted.map(\.codec.description)
        return codecs.contains { $0.clockRate == clockRate } ? (type, UInt32(clockRate)) : nil
    }

    /// Whether no two kinds of packets, among them those of `accepted` codecs, have the same payload type.
    func hasDistinctPayloadTypes(with codec: CodecDescription, accepted: [AudioStream.Accepted]) -> Bool {
        let noise = comfortNoise(with: codec, accepted: accepted)?.payloadType
        let own = [payloadType(of: codec), telephoneEventPayloadType, redPayloadType, noise]
        let types = own.compactMap(\.self) + accepted.map(\.payloadType)
        return Set(types).count == types.count && types.allSatisfy { $0 < 128 }
    }
}
