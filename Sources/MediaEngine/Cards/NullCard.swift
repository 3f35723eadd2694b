package import CallBasics

/// A card that needs nothing: what is played vanishes at the pace of time, what is recorded is silence.
///
/// It lives by the time it is given, so in virtual time too.
package final class NullCard: SoundCard {
    /// "null", built in, duplex.
    package let description: CardDescription
    private let driftPPM: Int

    /// A null card.
    ///
    /// - Parameters:
    ///   - name: Its name and, after "builtin:", its identity.
    ///   - driftPPM: How much faster than it should its clock runs, in parts per million; negative is slower.
    package init(name: String = "null", driftPPM: Int = 0) {
        description = CardDescription(
            id: CardID("builtin:\(name)"),
            name: name,
            backend: "built-in",
            directions: .duplex
        )
        self.driftPPM = driftPPM
    }

    /// Opens it; never fails.
    package func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) -> any CardEndpoint {
        PacedEndpoint(direction, configuration, sound: Silence(), driftPPM: driftPPM)
    }
}
