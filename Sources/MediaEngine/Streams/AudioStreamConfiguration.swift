/// How what is sent is protected against loss.
public enum FECMode: String, Sendable, Hashable, CaseIterable {
    /// As what the other side reports needs it: not on a clean path, where FEC costs quality at the
    /// same bitrate, by in-band FEC under loss, and by RED under much loss if it was agreed.
    case auto
    /// By in-band FEC, always.
    case on
    /// Never.
    case off
}

/// What this side wants of a call's sound, whatever codecs are agreed on.
public struct AudioStreamConfiguration: Sendable, Hashable {
    /// What is asked of encoders; packet time, parameters and FEC follow the agreement and `fec`.
    public var encoder = EncoderConfiguration()
    /// How what is sent is protected against loss.
    public var fec = FECMode.auto
    /// How long packets are held back against jitter.
    public var playoutDelay = PlayoutDelay.automatic
    /// Whether the playout keeps a trace of what it does: `Call.playoutTrace`.
    package var tracesPlayout = false
    /// What is done to the microphone's signal before it is sent.
    public var voiceProcessing = VoiceProcessingConfiguration()
    /// Whether DTMF tones in the audio that arrives are told as keys, for senders that know no telephone events.
    ///
    /// Once the other side has sent a telephone event, its tones are not listened to: no key counts twice.
    public var detectsInBandDTMF = false

    /// The defaults: FEC when there is loss, packets held back as the network needs.
    public init() {}
}
