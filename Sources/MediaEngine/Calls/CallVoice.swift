/// What works on the signal of a call's microphone: echo cancelling, noise suppression, gain control.
struct CallVoice: Sendable {
    let filter: EchoCancellerFilter
    /// What it was made for; `echoCancelling` is `on` or `off`.
    let configuration: VoiceProcessingConfiguration
    /// Whether it works on the call card's signal with all that is played there, so that other calls can use it, too.
    let isShared: Bool

    var cancelsEcho: Bool { configuration.echoCancelling == .on }
}

extension CallEngine {
    /// Makes what a call wants done to its microphone's signal; nil when that is nothing.
    ///
    /// - Throws: `VoiceProcessingError` when it is not to be had.
    func makeVoice(_ call: CallConfiguration, format: AudioFormat) throws -> CallVoice? {
        var (isCaptured, isPlayed) = (false, false)
        if case .callCard = call.source { isCaptured = true }
        if case .callCard = call.sink { isPlayed = true }
        var wanted = call.stream.voiceProcessing
        if wanted.echoCancelling == .auto { wanted.echoCancelling = isCaptured && isPlayed ? .on : .off }
        let cancelsEcho = wanted.echoCancelling == .on
        guard cancelsEcho || wanted.suppressesNoise || wanted.controlsGain else { return nil }
        let format = isCaptured ? Self.cardFormat : AudioFormat(sampleRate: format.sampleRate)
        let implementation = try registry.voiceProcessing(named: wanted.processor)
        let processor = try implementation.makeProcessor(wanted, format: format)
        return CallVoice(
            filter: EchoCancellerFilter(processor, name: implementation.name, format: format),
            configuration: wanted,
            isShared: isCaptured && (isPlayed || !cancelsEcho)
        )
    }
}
