/// How a tone is interrupted: sound and silence in turn, beginning with sound.
public struct Cadence: Hashable, Sendable {
    /// Lengths of sound, silence, sound, …; empty for a tone without interruption.
    package let durations: [Duration]

    /// A tone without interruption.
    public static let continuous = Cadence([])

    /// A cadence of the given lengths of sound and silence in turn, each 1 ms to 1 h.
    public init(_ durations: [Duration]) {
        self.durations = durations
    }
}
