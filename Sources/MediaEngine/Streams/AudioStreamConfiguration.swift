/// Whether Opus packets carry a coarse copy of the packet before (in-band FEC).
public enum FECMode: String, Sendable, Hashable, CaseIterable {
    /// On while the other side reports loss, off on a clean path, where FEC costs quality at the same bitrate.
    case auto
    /// Always.
    case on
    /// Never.
    case off
}

/// What one side of a call sends and how it receives.
public struct AudioStreamConfiguration: Sendable, Hashable {
    /// The codec's name: "opus", "PCMU", "G722".
    public var codec = "opus"
    /// The codec's RTP payload type; nil takes the static one, or 96.
    public var payloadType: UInt8?
    /// The payload type of telephone events; nil sends and understands none.
    public var telephoneEventPayloadType: UInt8? = 101
    /// What is asked of the encoder; its `usesFEC` follows `fec`.
    public var encoder = EncoderConfiguration()
    /// When Opus in-band FEC is on.
    public var fec = FECMode.auto
    /// How long packets are held back against jitter.
    public var playoutDelay = PlayoutDelay.automatic
    /// Whether the playout keeps a trace of what it does: `Call.playoutTrace`.
    public var tracesPlayout = false

    /// The defaults: Opus, keys as telephone events, FEC when there is loss, packets held back as the network needs.
    public init() {}

    /// The payload type to use with `codec`.
    func payloadType(of codec: CodecDescription) -> UInt8 {
        payloadType ?? codec.staticPayloadType ?? 96
    }
}
