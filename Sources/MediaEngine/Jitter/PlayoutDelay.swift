/// How long packets are held back against jitter.
public enum PlayoutDelay: Sendable, Hashable {
    /// As long as the network needs, within bounds.
    case adaptive(ClosedRange<Duration>)
    /// Always the same, whatever the network does: 0 to 1 s, or as much as 256 packets hold.
    case fixed(Duration)

    /// As long as the network needs: at least the two ticks in which a packet is taken and played, at most a second.
    public static let automatic = PlayoutDelay.adaptive(.milliseconds(15) ... .seconds(1))

    /// The shortest delay, which a quiet network has.
    package var shortest: Duration {
        switch self {
        case .adaptive(let bounds): bounds.lowerBound
        case .fixed(let delay): delay
        }
    }

    /// The most that packets are held back, on purpose.
    package var longest: Duration {
        switch self {
        case .adaptive(let bounds): bounds.upperBound
        case .fixed(let delay): delay
        }
    }

    /// The bounds, which are equal for a fixed delay.
    var bounds: ClosedRange<Duration> { shortest...longest }
}
