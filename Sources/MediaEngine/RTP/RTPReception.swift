/// What a session made of one datagram.
public enum RTPReception: Sendable, BitwiseCopyable {
    /// A packet of the source that is heard, to be handed on.
    case media(Media)
    /// RTCP, which the session has dealt with.
    case control(ControlEvents)
    /// Nothing to hand on; the session has counted it.
    case ignored(Reason)

    /// A packet to hand on.
    public struct Media: Sendable, BitwiseCopyable {
        /// Header and parts of the packet; the payload is `packet.payload(in: bytes)`.
        public let packet: RTPPacket
        /// Where the packet stands among the others: `inOrder`, `reordered`, `restarted`, or `probation`.
        public let verdict: ReceiverStatistics.Verdict
        /// Whether this is the first packet of a source that has just been taken up: buffers of the former one end.
        public let isNewSource: Bool
    }

    /// What RTCP told.
    public struct ControlEvents: OptionSet, Sendable, BitwiseCopyable {
        /// The bits of the set.
        public let rawValue: UInt8

        /// A set of the given bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The peer reported on what it receives from here: loss, jitter and round trip are new.
        public static let remoteReport = ControlEvents(rawValue: 1)
        /// The peer said goodbye: the source sends no more.
        public static let goodbye = ControlEvents(rawValue: 2)
    }

    /// Why nothing is handed on.
    public enum Reason: UInt8, Sendable, BitwiseCopyable {
        /// Neither valid RTP nor valid RTCP.
        case malformed
        /// A payload type that was not announced.
        case unknownPayloadType
        /// A packet that came before.
        case duplicate
        /// A sequence number far from all others.
        case badSequence
        /// A second source, or address, while the first is alive.
        case foreign
        /// Somebody else used this side's SSRC, which has changed now.
        case collision
        /// A packet of this side's own that came back.
        case looped
        /// STUN or DTLS.
        case otherProtocol
    }
}
