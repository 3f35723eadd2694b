/// What a datagram that came to a port with multiplexed RTP and RTCP is, told by its first two bytes.
///
/// Source: RFC 5761, section 4 (RTCP packet types 192 to 223 against RTP's marker and payload type); RFC 7983,
/// section 7 (the first byte of STUN, DTLS and TURN channels).
package enum DatagramKind: UInt8, Sendable, BitwiseCopyable {
    /// An RTP packet.
    case rtp
    /// An RTCP compound packet.
    case rtcp
    /// A STUN message.
    case stun
    /// A DTLS record.
    case dtls
    /// Nothing that belongs here.
    case unknown

    /// Classifies `bytes`; says nothing about whether the rest of them is valid.
    package init(of bytes: Span<UInt8>) {
        guard bytes.count >= 2 else {
            self = .unknown
            return
        }
        switch (bytes[0], bytes[1]) {
        case (128...191, 192...223): self = .rtcp
        case (128...191, _): self = .rtp
        case (0...3, _): self = .stun
        case (20...63, _): self = .dtls
        default: self = .unknown
        }
    }
}
