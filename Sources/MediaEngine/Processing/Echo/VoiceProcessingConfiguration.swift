/// What is done to what the microphone gives, before it is sent.
public struct VoiceProcessingConfiguration: Sendable, Hashable {
    /// When the echo of what is heard is taken out of what is sent.
    public enum EchoCancelling: Sendable, Hashable {
        /// In a call that is spoken into and heard on the engine's call card.
        case auto
        /// In every call, with what it plays as the reference.
        case on
        /// Never.
        case off
    }

    /// When the echo is cancelled.
    public var echoCancelling = EchoCancelling.auto
    /// How long an echo may last to be cancelled, from its first arrival on: 20 to 500 ms.
    ///
    /// A longer tail converges more slowly.
    public var echoTail = Duration.milliseconds(100)
    /// Whether steady noise is made softer.
    public var suppressesNoise = false
    /// Whether speech is brought to the same level, however far the mouth is.
    public var controlsGain = false
    /// The name of the implementation in the registry.
    public var processor = BuiltInVoiceProcessing.name

    /// Echo cancelling where it is needed, and nothing else.
    public init() {}
}
