package import CallBasics

/// Reports the DTMF digits in the audio that passes.
///
///     audio ──► [ DTMFDetectorFilter ] ──► audio, unchanged
///
/// Thread: media.
package final class DTMFDetectorFilter: ControlledFilter<Never, DTMFDetectorFilter.Event>, @unchecked Sendable {
    /// A digit, when it has been recognised, and when it is over.
    package struct Event: Hashable, Sendable, BitwiseCopyable {
        /// The digit.
        package let digit: DTMFDigit
        /// When it began, on the graph's clock.
        package let start: MediaTime
        /// How long it has sounded, or sounded in all once it is over, in nanoseconds.
        package let nanoseconds: Int64
        /// Whether it is over.
        package let isOver: Bool
    }

    private let detector: DTMFDetector
    private let format: AudioFormat
    private let hasOutput: Bool
    private var tickFrame = 0

    /// A filter for blocks of `format`, from 8000 to 192000 Hz; with `hasOutput`, what comes in goes on unchanged.
    ///
    /// Throws: `ToneError` for other rates.
    package init(format: AudioFormat, hasOutput: Bool = true) throws(ToneError) {
        self.format = format
        self.hasOutput = hasOutput
        detector = try DTMFDetector(sampleRate: format.sampleRate)
        super.init(
            FilterDescription(
                name: "DTMF detector",
                purpose: "Reports the DTMF digits that it hears.",
                inputs: [.audio(format)],
                outputs: hasOutput ? [.audio(format)] : []
            )
        )
    }

    package override func process(_ io: borrowing FilterIO) {
        let input = io.input()
        if hasOutput { io.output().copy(from: input) }
        detector.process(input.samples, channelCount: format.channelCount)
        while let detection = detector.nextDetection() {
            let start = io.time - format.duration(ofFrames: tickFrame &- detection.startFrame)
            let length = format.duration(ofFrames: detection.frameCount)
            let isOver = detection.phase != .began
            emit(
                Event(digit: detection.digit, start: start, nanoseconds: length.nanoseconds, isOver: isOver),
                io
            )
        }
        tickFrame &+= input.frameCount
    }
}
