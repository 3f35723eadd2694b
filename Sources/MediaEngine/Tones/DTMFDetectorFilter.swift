/// Reports the DTMF digits in the audio that passes.
///
///     audio ──► [ DTMFDetectorFilter ] ──► audio, unchanged
///
/// Events: `dtmfstrt` when a digit has been recognised, `dtmf` when it is over; `ReceivedDigit` reads both.
/// Thread: media.
public final class DTMFDetectorFilter: Filter, @unchecked Sendable {
    private let detector: DTMFDetector
    private let format: AudioFormat
    private let hasOutput: Bool
    private var tickFrame = 0

    /// A filter for blocks of `format`, from 8000 to 192000 Hz; with `hasOutput`, what comes in goes on unchanged.
    ///
    /// Throws: `ToneError` for other rates.
    public init(format: AudioFormat, hasOutput: Bool = true) throws(ToneError) {
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

    public override func process(_ io: borrowing FilterIO) {
        let input = io.input()
        if hasOutput { io.output().copy(from: input) }
        detector.process(input.samples, channelCount: format.channelCount)
        while let detection = detector.nextDetection() {
            let start = io.time - format.duration(ofFrames: tickFrame &- detection.startFrame)
            let length = format.duration(ofFrames: detection.frameCount)
            io.emit(
                detection.phase == .began ? "dtmfstrt" : "dtmf",
                value: Int64(detection.digit.eventCode) | length.nanoseconds << 8,
                detail: start.nanoseconds
            )
        }
        tickFrame &+= input.frameCount
    }
}

/// A digit out of the events of a `DTMFDetectorFilter`.
public struct ReceivedDigit: Hashable, Sendable {
    /// The digit.
    public let digit: DTMFDigit
    /// When it began, on the graph's clock.
    public let start: MediaTime
    /// How long it has sounded, or sounded in all once it is over.
    public let duration: Duration
    /// Whether it is over.
    public let isOver: Bool

    /// The digit that `event` tells of, or nil when it is another kind of event.
    public init?(_ event: GraphEvent) {
        guard event.name == "dtmf" || event.name == "dtmfstrt",
            let digit = DTMFDigit(eventCode: UInt8(truncatingIfNeeded: event.value))
        else { return nil }
        self.digit = digit
        start = MediaTime(nanoseconds: event.detail)
        duration = .nanoseconds(event.value >> 8)
        isOver = event.name == "dtmf"
    }
}
