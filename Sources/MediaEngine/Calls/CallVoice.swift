import CallBasics

/// What works on the signal of a microphone: echo cancelling, noise suppression, gain control.
struct CallVoice: Sendable {
    let filter: EchoCancellerFilter
    /// What it was made for; `echoCancelling` is `on` or `off`.
    let configuration: VoiceProcessingConfiguration
    let format: AudioFormat
    /// Whether it works on the call card's signal with all that is played there, so that other calls can use it, too.
    let isShared: Bool

    var cancelsEcho: Bool { configuration.echoCancelling == .on }

    /// Makes what a call wants done to its microphone's signal; nil when that is nothing.
    ///
    /// - Parameters:
    ///   - wanted: What the call wants.
    ///   - isCaptured: Whether it is spoken into the call card.
    ///   - isPlayed: Whether it is heard on the call card.
    ///   - format: The stream's samples.
    ///   - registry: Knows ways of processing.
    /// - Throws: `VoiceProcessingError` when it is not to be had.
    init?(
        _ wanted: VoiceProcessingConfiguration,
        isCaptured: Bool,
        isPlayed: Bool,
        format: AudioFormat,
        registry: PluginRegistry
    ) throws {
        var wanted = wanted
        if wanted.echoCancelling == .auto { wanted.echoCancelling = isCaptured && isPlayed ? .on : .off }
        let cancelsEcho = wanted.echoCancelling == .on
        guard cancelsEcho || wanted.suppressesNoise || wanted.controlsGain else { return nil }
        self.format = isCaptured ? CallEngine.cardFormat : AudioFormat(sampleRate: format.sampleRate)
        let implementation = try registry.voiceProcessing(named: wanted.processor)
        let processor = try implementation.makeProcessor(wanted, format: self.format)
        filter = EchoCancellerFilter(processor, name: implementation.name, format: self.format)
        configuration = wanted
        isShared = isCaptured && (isPlayed || !cancelsEcho)
    }
}
