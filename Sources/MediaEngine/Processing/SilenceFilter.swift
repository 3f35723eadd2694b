/// Gives silence: the source of a call that only listens.
///
///     silence ─► audio
public final class SilenceFilter: Filter, @unchecked Sendable {
    /// Silence of `format`.
    public init(format: AudioFormat) {
        super.init(FilterDescription(name: "silence", purpose: "gives silence", outputs: [.audio(format)]))
    }

    public override func process(_ io: borrowing FilterIO) {
        io.output().fillWithSilence()
    }
}
