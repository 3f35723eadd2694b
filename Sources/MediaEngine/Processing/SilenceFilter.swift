/// Gives silence: the source of a call that only listens.
///
///     silence ─► audio
package final class SilenceFilter: Filter, @unchecked Sendable {
    /// Silence of `format`.
    package init(format: AudioFormat) {
        super.init(FilterDescription(name: "silence", purpose: "gives silence", outputs: [.audio(format)]))
    }

    package override func process(_ io: borrowing FilterIO) {
        io.output().fillWithSilence()
    }
}
