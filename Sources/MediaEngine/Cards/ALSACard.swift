package import CallBasics

/// A card that the ALSA library drives: hardware, or any PCM that its configuration defines.
package final class ALSACard: SoundCard {
    /// What is known without opening it.
    package let description: CardDescription
    /// The PCM that is opened: "default", "plughw:CARD=PCH,DEV=0".
    package let pcm: String
    private let control: String

    /// The PCM called `pcm`, which may or may not exist: opening it will tell.
    package convenience init(pcm: String) {
        self.init(
            pcm: pcm,
            control: Self.controlName(of: pcm),
            CardDescription(id: CardID("alsa:\(pcm)"), name: pcm, backend: "alsa", directions: .duplex)
        )
    }

    init(pcm: String, control: String, _ description: CardDescription) {
        self.pcm = pcm
        self.control = control
        self.description = description
    }

    /// Opens the PCM in one direction.
    ///
    /// - Throws: `CardError` when it is absent, busy or refuses the format.
    package func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        guard description.directions.contains(direction) else { throw lacking(direction) }
        return try ALSAEndpoint(pcm, direction, configuration)
    }

    /// The mixer's volume, or nil where there is no mixer for this PCM.
    ///
    /// - Throws: `CardError` when the mixer fails.
    package func volume(_ direction: CardDirection) throws(CardError) -> Double? {
        try ALSAMixer(control)?.volume(direction)
    }

    /// Sets the mixer's volume of all channels.
    ///
    /// - Throws: `CardError` when there is no mixer for this PCM, or it fails.
    package func setVolume(_ volume: Double, _ direction: CardDirection) throws(CardError) {
        guard let mixer = ALSAMixer(control), try mixer.setVolume(volume, direction) else {
            throw CardError(
                .unsupported,
                "PCM \(pcm) has no \(direction) volume. Change the volume of the stream instead."
            )
        }
    }

    /// The control device that belongs to a PCM: "hw:0" to "plughw:0,3"; otherwise it has the PCM's own name.
    static func controlName(of pcm: String) -> String {
        guard let colon = pcm.firstIndex(of: ":") else { return pcm }
        let arguments = pcm[pcm.index(after: colon)...].split(separator: ",")
        let card = arguments.first { $0.hasPrefix("CARD=") }?.dropFirst(5) ?? arguments.first ?? "0"
        return "hw:\(card)"
    }
}
