/// Rings: the source of a ring stream.
///
///     [ RingFilter ] ──► audio
///
/// It rings from its first tick on, until it is told to stop. Events: `ringstrt` and `ringend` at the tick in which
/// the ring begins and in which it has become silent for good.
/// Thread: the command makers control; the rest media.
public final class RingFilter: Filter, @unchecked Sendable {
    private let source: RingSource
    private var wasRinging = false

    /// A filter that plays `source`, which nothing else may use from now on.
    public init(_ source: sending RingSource) {
        self.source = source
        source.start()
        super.init(
            FilterDescription(
                name: "ring",
                purpose: "Plays a ring tone, or a recorded ring again and again.",
                outputs: [.audio(source.format)]
            )
        )
    }

    public override func process(_ io: borrowing FilterIO) {
        let output = io.output()
        if source.isRinging != wasRinging {
            wasRinging = source.isRinging
            io.emit(wasRinging ? "ringstrt" : "ringend")
        }
        guard wasRinging else {
            output.fillWithSilence()
            return
        }
        var samples = output.mutableSamples
        source.render(into: &samples)
        if !source.isRinging {
            wasRinging = false
            io.emit("ringend")
        }
    }

    public override func handle(_ command: GraphCommand) {
        switch command.name {
        case "start": source.start()
        case "stop": source.stop()
        default: return
        }
    }

    /// Rings from the first round on.
    public func startCommand() -> GraphCommand { GraphCommand(to: self, "start") }

    /// Fades the ring.
    public func stopCommand() -> GraphCommand { GraphCommand(to: self, "stop") }
}
