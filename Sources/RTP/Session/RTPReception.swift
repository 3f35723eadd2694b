/// What a session made of one datagram.
package enum RTPReception: Sendable, BitwiseCopyable {
    /// A packet of the source that is heard, to be handed on.
    case media(Media)
    /// A packet whose number is far from all others: to be kept until the next one comes, which tells by its verdict
    /// `restarted` that this was the first of new numbers.
    case stray(Media)
    /// RTCP, which the session has dealt with.
    case control(ControlEvents)
    /// Nothing to hand on; the session has counted it.
    case ignored(Reason)

    /// A packet to hand on.
    package struct Media: Sendable, BitwiseCopyable {
        /// Header and parts of the packet; the payload is `packet.payload(in: bytes)`.
        package let packet: RTPPacket
        /// What it holds; of a packet that is `unknown` only the number counts, which is then not missing.
        package let kind: PayloadMap.Kind
        /// How fast its time stamp counts, in Hz; 0 where its type is not known.
        package let clockRate: UInt32
        /// Where the packet stands among the others: `inOrder`, `reordered`, `restarted`, or `probation`; `badSequence` of a
        /// stray.
        package let verdict: ReceiverStatistics.Verdict
        /// Whether this is the first packet of a source that has just been taken up: buffers of the former one end.
        package let isNewSource: Bool
    }

    /// What RTCP told.
    package struct ControlEvents: Hashable, Sendable, BitwiseCopyable {
        /// The peer reported on what it receives from here: loss, jitter and round trip are new.
        package var hasRemoteReport = false
        /// The peer said goodbye: the source sends no more.
        package var hasGoodbye = false

        /// Nothing told.
        package init() {}
    }

    /// Why nothing is handed on.
    package enum Reason: Sendable, BitwiseCopyable, Equatable {
        /// Neither valid RTP nor valid RTCP.
        case malformed
        /// A packet that came before.
        case duplicate
        /// It is not of the source that is heard.
        case refused(RemoteSourcePolicy.Refusal)
        /// Somebody else used this side's SSRC, which has changed now.
        case collision
        /// A packet of this side's own that came back.
        case looped
        /// STUN or DTLS.
        case otherProtocol
    }
}
