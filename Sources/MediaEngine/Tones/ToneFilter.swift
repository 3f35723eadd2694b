/// Mixes DTMF digits and tones into what passes; without an input it is the source of a tone stream.
///
///     audio (optional) ──► [ ToneFilter ] ──► audio
///
/// Events (`value`, `detail`): `digit` and `tonestrt` at a first frame, `digitend` and `toneend` after a last one
/// (the frame's offset in the tick; the time that came with the command, in nanoseconds), `dtmffull` when a digit was
/// refused (the digits refused so far; the time that came with it). The moment of a first frame is the event's `time`
/// plus the offset, so key-to-sample time is that less `detail`.
/// Thread: the command makers control; the rest media.
public final class ToneFilter: Filter, @unchecked Sendable {
    private let generator: ToneGenerator
    private let format: AudioFormat
    private let handOff = HandOff<PreparedTone>()
    private var isTonePending = false
    /// Frames that have passed since the generator fell silent: until a command comes it is left alone.
    private var idleFrameCount: Int?
    private var toneTag: Int64 = 0
    private var reportedRefusals = 0
    private var refusedTag: Int64 = 0

    /// A filter for blocks of `format`.
    public init(format: AudioFormat) {
        self.format = format
        generator = ToneGenerator(format: format)
        super.init(
            FilterDescription(
                name: "tones",
                purpose: "Mixes DTMF digits and call-progress tones into the audio.",
                inputs: [.audio(format, isRequired: false)],
                outputs: [.audio(format)],
                worksInPlace: true
            )
        )
    }

    public override func process(_ io: borrowing FilterIO) {
        let input = io.input()
        let output = io.output()
        output.copy(from: input)
        if let idle = idleFrameCount {
            idleFrameCount = idle &+ output.frameCount
            return
        }
        if isTonePending { takeTone() }
        var samples = output.mutableSamples
        generator.render(into: &samples)
        while let notice = generator.nextNotice() {
            io.emit(Self.eventName(notice.kind), value: Int64(notice.frameOffset), detail: notice.tag)
        }
        let refused = generator.refusedCount
        if refused != reportedRefusals {
            reportedRefusals = refused
            io.emit("dtmffull", value: Int64(refused), detail: refusedTag)
        }
        if !generator.isActive, !isTonePending { idleFrameCount = 0 }
    }

    public override func handle(_ command: GraphCommand) {
        if let idle = idleFrameCount {
            generator.skip(idle)
            idleFrameCount = nil
        }
        switch command.name {
        case "play": play(command)
        case "pause": note(generator.pause(for: .milliseconds(command.value)), command)
        case "start":
            guard let digit = DTMFDigit(eventCode: UInt8(truncatingIfNeeded: command.value)) else { return }
            note(generator.start(digit, tag: command.detail), command)
        case "stop": generator.stop(DTMFDigit(eventCode: UInt8(truncatingIfNeeded: command.value)))
        case "silence":
            isTonePending = false
            generator.silence()
        case "tone":
            toneTag = command.detail
            isTonePending = true
        case "stoptone":
            isTonePending = false
            generator.stopTone()
        case "level": generator.digitLevel = Decibels(Double(command.value) / 1000)
        default: return
        }
    }

    // MARK: Commands

    /// Queues `digit` for `duration` and a silence of `gap` after it, in whole milliseconds up to about three days.
    ///
    /// `requestedAt` is the moment when the key was pressed, on the graph's clock; it comes back in the events.
    public func playCommand(
        _ digit: DTMFDigit,
        for duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100),
        requestedAt: MediaTime = .zero
    ) -> GraphCommand {
        let packed = Int64(digit.eventCode) | Self.packed(duration) << 8 | Self.packed(gap) << 36
        return GraphCommand(to: self, "play", value: packed, detail: requestedAt.nanoseconds)
    }

    /// Queues `duration` of silence between digits, in whole milliseconds.
    public func pauseCommand(for duration: Duration) -> GraphCommand {
        GraphCommand(to: self, "pause", value: Self.packed(duration))
    }

    /// Queues every step of `sequence`, one command each.
    public func commands(
        playing sequence: DTMFSequence,
        digitDuration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100),
        requestedAt: MediaTime = .zero
    ) -> [GraphCommand] {
        sequence.elements.map { element in
            switch element {
            case .digit(let digit): playCommand(digit, for: digitDuration, gap: gap, requestedAt: requestedAt)
            case .pause(let duration): pauseCommand(for: duration)
            }
        }
    }

    /// Presses `digit` down until `stopCommand`.
    public func startCommand(_ digit: DTMFDigit, requestedAt: MediaTime = .zero) -> GraphCommand {
        GraphCommand(to: self, "start", value: Int64(digit.eventCode), detail: requestedAt.nanoseconds)
    }

    /// Releases `digit`, or every held key for nil; it still sounds for `ToneGenerator.minimumDuration`.
    public func stopCommand(_ digit: DTMFDigit? = nil) -> GraphCommand {
        GraphCommand(to: self, "stop", value: Int64(digit?.eventCode ?? .max))
    }

    /// Forgets all digits that wait and fades what sounds.
    public func silenceCommand() -> GraphCommand {
        GraphCommand(to: self, "silence")
    }

    /// Plays the tone of `spec`, in place of one that sounds; of several commands in one tick, the last counts.
    ///
    /// Throws: `ToneError` when the tone cannot be played at the filter's sample rate.
    public func toneCommand(_ spec: ToneSpec, requestedAt: MediaTime = .zero) throws(ToneError) -> GraphCommand {
        handOff.offer(try PreparedTone(spec, sampleRate: format.sampleRate))
        return GraphCommand(to: self, "tone", detail: requestedAt.nanoseconds)
    }

    /// Fades the tone that sounds.
    public func stopToneCommand() -> GraphCommand {
        GraphCommand(to: self, "stoptone")
    }

    /// Sets the level of each sine of the digits that start from now on, in dBm0, to a thousandth of a decibel.
    ///
    /// Throws: `ToneError` above 3.17 dBm0, the loudest sine, and below -100 dBm0.
    public func levelCommand(_ level: Decibels) throws(ToneError) -> GraphCommand {
        let loudest = -Decibels.zeroDBm0.value
        guard level.value <= loudest, level.value >= -100 else {
            throw ToneError(
                .invalidTone,
                "A digit level of \(level.value) dBm0 cannot be played. Give -100 to \(loudest) dBm0."
            )
        }
        return GraphCommand(to: self, "level", value: Int64((level.value * 1000).rounded()))
    }

    // MARK: Media thread

    private func play(_ command: GraphCommand) {
        guard let digit = DTMFDigit(eventCode: UInt8(truncatingIfNeeded: command.value)) else { return }
        let accepted = generator.play(
            digit,
            for: .milliseconds(command.value >> 8 & Self.packedLimit),
            gap: .milliseconds(command.value >> 36 & Self.packedLimit),
            tag: command.detail
        )
        note(accepted, command)
    }

    private func note(_ isAccepted: Bool, _ command: GraphCommand) {
        if !isAccepted { refusedTag = command.detail }
    }

    private func takeTone() {
        guard let offered = handOff.take() else { return }
        offered._withUnsafeGuaranteedRef { generator.play($0, tag: toneTag) }
        handOff.retire(offered)
        isTonePending = false
    }

    private static func eventName(_ kind: ToneNotice.Kind) -> MessageName {
        switch kind {
        case .digitStarted: "digit"
        case .digitEnded: "digitend"
        case .toneStarted: "tonestrt"
        case .toneEnded: "toneend"
        }
    }

    /// The largest number of milliseconds that fits in 28 bits.
    private static var packedLimit: Int64 { 0xFFF_FFFF }

    private static func packed(_ duration: Duration) -> Int64 {
        min(max(0, duration.nanoseconds / 1_000_000), packedLimit)
    }
}
