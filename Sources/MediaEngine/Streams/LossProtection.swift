/// How what is sent is made to stand loss.
public enum LossProtection: Sendable, Hashable, BitwiseCopyable {
    /// Not at all: every bit goes into the sound.
    case none
    /// Packets carry a coarse copy of the one before (Opus in-band FEC), made for that loss.
    case inBandFEC(expectedLossPercent: Int)
    /// Packets carry whole copies of so many before them (RED, RFC 2198); each is encoded at `bitrate` bit/s, nil where
    /// the codec has one rate.
    case redundancy(generations: Int, bitrate: Int?)

    /// Which of the three it is: "none", "fec" or "red".
    public enum Mode: String, Sendable, Hashable {
        /// `LossProtection.none`.
        case none
        /// `LossProtection.inBandFEC`.
        case fec
        /// `LossProtection.redundancy`.
        case red

        /// How much loss the mode stands, next to the others.
        var strength: Int {
            switch self {
            case .none: 0
            case .fec: 1
            case .red: 2
            }
        }
    }

    /// Which of the three it is.
    package var mode: Mode {
        switch self {
        case .none: .none
        case .inBandFEC: .fec
        case .redundancy: .red
        }
    }
}
