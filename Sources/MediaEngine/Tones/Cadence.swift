/// How a tone is interrupted: sound and silence in turn, beginning with sound.
public struct Cadence: Hashable, Sendable {
    /// Lengths of sound, silence, sound, …; empty for a tone without interruption.
    package let durations: [Duration]

    /// A tone without interruption.
    public static let continuous = Cadence([])

    /// A cadence of the given lengths of sound and silence in turn.
    public init(_ durations: [Duration]) {
        self.durations = durations
    }

    /// A cadence of the given lengths of sound and silence in turn, in milliseconds.
    public init(milliseconds: Int...) {
        durations = milliseconds.map { .milliseconds($0) }
    }
}
