#if WebRTC
internal import CWebRTCVoice

/// Voice processing by WebRTC's audio processing module (Debian: libwebrtc-audio-processing-dev), where the package
/// trait WebRTC is on.
///
/// It finds the delay by itself, up to some 250 ms in good time, and does not say it; `echoTail` means nothing to it.
package struct WebRTCVoiceProcessing: VoiceProcessing {
    /// "WebRTC".
    package let name = "WebRTC"

    /// The implementation.
    package init() {}

    /// Makes a processor.
    ///
    /// - Throws: `VoiceProcessingError` for anything but mono at 8, 16, 32 or 48 kHz.
    package func makeProcessor(
        _ configuration: VoiceProcessingConfiguration,
        format: AudioFormat
    ) throws(VoiceProcessingError) -> any VoiceProcessor {
        guard format.channelCount == 1, [8000, 16000, 32000, 48000].contains(format.sampleRate),
            let processor = WebRTCVoiceProcessor(configuration, sampleRate: format.sampleRate)
        else {
            throw VoiceProcessingError(
                .unsupported,
                "WebRTC cannot process a voice at \(format). Convert it to mono at 8000, 16000, 32000 or 48000 Hz."
            )
        }
        return processor
    }
}

private final class WebRTCVoiceProcessor: VoiceProcessor {
    private let voice: OpaquePointer
    private let cancelsEcho: Bool
    private let frameCount: Int
    private var reduction = EchoReduction()
    private var statistics = EchoStatistics()
    private var ticksSinceFar = 100

    init?(_ configuration: VoiceProcessingConfiguration, sampleRate: Int) {
        cancelsEcho = configuration.echoCancelling != .off
        frameCount = sampleRate / 100
        guard
            let voice = webrtc_voice_new(
                Int32(sampleRate),
                cancelsEcho ? 1 : 0,
                configuration.suppressesNoise ? 1 : 0,
                configuration.controlsGain ? 1 : 0
            )
        else { return nil }
        self.voice = voice
    }

    deinit {
        webrtc_voice_free(voice)
    }

    /// Its bands are split and joined again.
    var latency: Duration { .milliseconds(2) }

    var echoStatistics: EchoStatistics? { cancelsEcho ? statistics : nil }

    func process(captured: Span<Int16>, played: Span<Int16>, into output: inout MutableSpan<Int16>) {
        guard captured.count == frameCount, played.count == frameCount, output.count == frameCount else { return }
        let code = captured.withUnsafeBufferPointer { captured in
            played.withUnsafeBufferPointer { played in
                output.withUnsafeMutableBufferPointer { output in
                    webrtc_voice_process(voice, captured.baseAddress, played.baseAddress, output.baseAddress)
                }
            }
        }
        if code != 0 {
            for index in 0..<frameCount { output[index] = captured[index] }
        }
        if cancelsEcho { note(captured, played, output.span) }
    }

    /// It follows by itself.
    func noteLostFrames(_ frameCount: Int) {}

    func reset() {
        webrtc_voice_reset(voice)
        statistics.restartCount &+= 1
    }

    private func note(_ captured: Span<Int16>, _ played: Span<Int16>, _ output: Span<Int16>) {
        let audible = Int64(frameCount) &* 32 &* 32
        ticksSinceFar = measure(played).energy > audible ? 0 : ticksSinceFar &+ 1
        guard ticksSinceFar < 20 else { return }
        reduction.note(captured: measure(captured).energy, remaining: measure(output).energy)
        statistics.returnLossEnhancement = reduction.value
    }
}
#endif
