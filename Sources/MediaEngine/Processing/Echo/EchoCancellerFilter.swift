/// Takes the echo of what is played out of what is captured, by the implementation it was made with.
///
///     captured ─┐
///               ├─► echo canceller ─► audio
///     played   ─┘
///
/// `played` must be what the card is given in the same tick: the mix of all that is heard. A delay between the two is
/// found by the canceller; frames that one of them loses on its card must be put right before here, or told.
package final class EchoCancellerFilter: ControlledFilter<EchoCancellerFilter.Command, Never>, @unchecked Sendable {
    /// What it can be asked for.
    package enum Command: Sendable, BitwiseCopyable {
        /// Frames of what was captured, or of what was played, were lost on a card: echoes come that much earlier from now
        /// on; negative for later.
        case lostFrames(Int)
        /// Forgets the room: another card is in use.
        case reset
    }

    /// What was found and done about the echo; nil where none is cancelled.
    ///
    /// Thread: any.
    package var statistics: EchoStatistics? { cancelsEcho ? published.value : nil }

    private let processor: any VoiceProcessor
    private let published = LatestValue(EchoStatistics())
    private let cancelsEcho: Bool
    private let frameCount: Int

    /// A filter of mono audio of `format` around `processor`, which nobody else may use.
    package init(_ processor: any VoiceProcessor, name: String, format: AudioFormat) {
        self.processor = processor
        cancelsEcho = processor.echoStatistics != nil
        frameCount = format.frameCount(in: .milliseconds(10))
        super.init(
            FilterDescription(
                name: cancelsEcho ? "echo canceller" : "voice processor",
                purpose: cancelsEcho
                    ? "takes the echo of what is played out of what is captured (\(name))"
                    : "makes speech clearer (\(name))",
                inputs: [
                    .audio(format, name: "captured"),
                    .audio(format, name: "played", isRequired: false),
                ],
                outputs: [.audio(format)],
                latency: processor.latency
            )
        )
    }

    package override func handle(_ command: Command) {
        switch command {
        case .lostFrames(let count): processor.noteLostFrames(count)
        case .reset: processor.reset()
        }
    }

    package override func process(_ io: borrowing FilterIO) {
        let (captured, played, output) = (io.input(0), io.input(1), io.output())
        guard captured.frameCount == frameCount else { return output.copy(from: captured) }
        var samples = output.mutableSamples
        processor.process(captured: captured.samples, played: played.samples, into: &samples)
        if let statistics = processor.echoStatistics { published.publish(statistics) }
    }
}
