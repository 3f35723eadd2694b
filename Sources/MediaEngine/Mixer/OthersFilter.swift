/// Gives what a mixer has added up in this tick, but for one of its inputs: all the others of a conference.
///
///     (mixer of an earlier plan) ─► others ─► audio
final class OthersFilter: Filter, @unchecked Sendable {
    private let mixer: MixerFilter
    private let own: SharedBlock

    /// - Parameters:
    ///   - mixer: Adds up all of them; it runs before, in the same tick.
    ///   - own: The input that is left out, which is open there.
    ///   - format: The mixer's format.
    init(_ mixer: MixerFilter, without own: SharedBlock, format: AudioFormat) {
        (self.mixer, self.own) = (mixer, own)
        super.init(
            FilterDescription(name: "others", purpose: "gives the others of a conference", outputs: [.audio(format)])
        )
    }

    override func process(_ io: borrowing FilterIO) {
        let output = io.output()
        output.fillWithSilence()
        var samples = output.mutableSamples
        mixer.loadOthers(than: own, into: &samples)
    }
}
