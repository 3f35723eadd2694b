import CallBasics

/// The engine's own echo cancelling and gain control; noise suppression by SpeexDSP.
package struct BuiltInVoiceProcessing: VoiceProcessing {
    /// "built-in".
    package static let name = "built-in"
    /// "built-in".
    package var name: String { Self.name }

    /// The implementation.
    package init() {}

    /// Makes a processor.
    ///
    /// - Throws: `VoiceProcessingError` for more than one channel, or a rate without whole frames in 10 ms.
    package func makeProcessor(
        _ configuration: VoiceProcessingConfiguration,
        format: AudioFormat
    ) throws(VoiceProcessingError) -> any VoiceProcessor {
        guard format.channelCount == 1, (8000...192_000).contains(format.sampleRate), format.sampleRate % 100 == 0
        else {
            throw VoiceProcessingError(
                .unsupported,
                "The built-in voice processing cannot take audio of \(format). Convert it to mono at 8000 to 192000 Hz."
            )
        }
        return BuiltInVoiceProcessor(configuration, sampleRate: format.sampleRate)
    }
}

/// The chain behind `BuiltInVoiceProcessing`: 16 kHz inside, resampled around it.
///
///     captured ─► (down) ─► echo canceller, or noise suppressor ─► gain control ─► (up) ─► output
///     played   ─► (down) ─────────▲
final class BuiltInVoiceProcessor: VoiceProcessor {
    let latency: Duration

    private let canceller: EchoCanceller?
    private let suppressor: NoiseSuppressor?
    private let sampleRate: Int
    private let captureResampler: Resampler?
    private let referenceResampler: Resampler?
    private let outputResampler: Resampler?
    /// 10 ms at 16 kHz of each.
    private let captured: UnsafeMutableBufferPointer<Int16>
    private let played: UnsafeMutableBufferPointer<Int16>
    private let processed: UnsafeMutableBufferPointer<Int16>
    private var gainControl: AutomaticGain?

    init(_ configuration: VoiceProcessingConfiguration, sampleRate: Int) {
        self.sampleRate = sampleRate
        let cancelsEcho = configuration.echoCancelling != .off
        canceller =
            cancelsEcho
            ? EchoCanceller(tail: configuration.echoTail, suppressesNoise: configuration.suppressesNoise) : nil
        suppressor =
            !cancelsEcho && configuration.suppressesNoise
            ? NoiseSuppressor(sampleRate: EchoCanceller.sampleRate) : nil
        gainControl = configuration.controlsGain ? AutomaticGain() : nil
        let rate = EchoCanceller.sampleRate
        func resampler(from input: Int, to output: Int) -> Resampler? {
            input == output ? nil : Resampler(from: input, to: output, quality: .speech)
        }
        captureResampler = resampler(from: sampleRate, to: rate)
        referenceResampler = cancelsEcho ? resampler(from: sampleRate, to: rate) : nil
        outputResampler = resampler(from: rate, to: sampleRate)
        captured = .zeros(EchoCanceller.frameCount)
        played = .zeros(EchoCanceller.frameCount)
        processed = .zeros(EchoCanceller.frameCount)
        var latency = canceller?.latency ?? suppressor?.latency ?? .zero
        for (resampler, inputRate) in [(captureResampler, sampleRate), (outputResampler, rate)] {
            guard let resampler else { continue }
            latency += AudioFormat(sampleRate: inputRate).duration(ofFrames: resampler.delayFrameCount)
        }
        self.latency = latency
    }

    deinit {
        captured.deallocate()
        played.deallocate()
        processed.deallocate()
    }

    var echoStatistics: EchoStatistics? { canceller?.statistics }

    func process(captured source: Span<Int16>, played reference: Span<Int16>, into output: inout MutableSpan<Int16>) {
        var near = captured.mutableSpan
        convert(source, into: &near, by: captureResampler)
        var result = processed.mutableSpan
        if let canceller {
            var far = played.mutableSpan
            convert(reference, into: &far, by: referenceResampler)
            canceller.process(captured: near.span, reference: far.span, into: &result)
        } else {
            _ = processed.update(fromContentsOf: captured)
            suppressor?.process(&result)
        }
        gainControl?.process(&result)
        convert(result.span, into: &output, by: outputResampler)
    }

    func noteLostFrames(_ frameCount: Int) {
        let scaled = Double(frameCount) * Double(EchoCanceller.sampleRate) / Double(sampleRate)
        let count = Int(max(-16384, min(16384, scaled.rounded())))
        if count != 0 { canceller?.realign(by: -count) }
    }

    func reset() {
        canceller?.reset()
    }

    /// Resamples, or copies at equal rates, and fills up with silence.
    private func convert(_ source: Span<Int16>, into target: inout MutableSpan<Int16>, by resampler: Resampler?) {
        var count = 0
        if let resampler {
            count = resampler.process(source, into: &target).produced
        } else {
            while count < min(source.count, target.count) {
                target[count] = source[count]
                count &+= 1
            }
        }
        while count < target.count {
            target[count] = 0
            count &+= 1
        }
    }
}
