/// How a medium travels: the third field of an m= line.
///
/// Source: RFC 8866, section 5.14; RFC 3551, RFC 3711, RFC 4585, RFC 5124, RFC 5764, RFC 4145.
public enum MediaProtocol: Hashable, Sendable {
    /// RTP/AVP, plain RTP.
    case rtpAVP
    /// RTP/AVPF, plain RTP with early feedback.
    case rtpAVPF
    /// RTP/SAVP, SRTP with keys in the description.
    case rtpSAVP
    /// RTP/SAVPF, the same with early feedback.
    case rtpSAVPF
    /// UDP/TLS/RTP/SAVP, SRTP with keys from DTLS.
    case dtlsSAVP
    /// UDP/TLS/RTP/SAVPF, the same with early feedback, as WebRTC has it.
    case dtlsSAVPF
    /// TCP.
    case tcp
    /// TCP/TLS.
    case tcpTLS
    /// udptl, fax.
    case udptl
    /// Any other, as it was written.
    case other(String)

    /// The protocol that `name` writes, in whatever case.
    package init(_ name: String) {
        self = Self.known.first { $0.name.isNamed(name) }?.value ?? .other(name)
    }

    /// The protocol as an m= line has it.
    package var name: String {
        if case .other(let name) = self { return name }
        return Self.known.first { $0.value == self }?.name ?? ""
    }

    /// Whether it is RTP, whose formats are payload types.
    var isRTP: Bool {
        switch self {
        case .rtpAVP, .rtpAVPF, .rtpSAVP, .rtpSAVPF, .dtlsSAVP, .dtlsSAVPF: return true
        case .tcp, .tcpTLS, .udptl: return false
        case .other(let name): return Bytes(name).split(separator: UInt8(ascii: "/")).contains { $0.isNamed("RTP") }
        }
    }

    /// Whether nothing travels in the clear.
    package var isSecured: Bool {
        switch self {
        case .rtpSAVP, .rtpSAVPF, .dtlsSAVP, .dtlsSAVPF, .tcpTLS: true
        case .rtpAVP, .rtpAVPF, .tcp, .udptl, .other: false
        }
    }

    /// Whether the descriptions themselves have the keys (SDES, RFC 4568).
    package var hasKeysInDescription: Bool { self == .rtpSAVP || self == .rtpSAVPF }

    /// Whether DTLS makes the keys (RFC 5764).
    package var usesDTLS: Bool { self == .dtlsSAVP || self == .dtlsSAVPF }

    /// Whether it is SRTP, however the keys come.
    package var isSecuredRTP: Bool { hasKeysInDescription || usesDTLS }

    /// Whether keys come in the same way as with `other`, or both are in the clear.
    func isKeyed(as other: MediaProtocol) -> Bool {
        usesDTLS == other.usesDTLS && hasKeysInDescription == other.hasKeysInDescription
    }

    private static let known: [(name: String, value: MediaProtocol)] = [
        ("RTP/AVP", .rtpAVP), ("RTP/AVPF", .rtpAVPF), ("RTP/SAVP", .rtpSAVP), ("RTP/SAVPF", .rtpSAVPF),
        ("UDP/TLS/RTP/SAVP", .dtlsSAVP), ("UDP/TLS/RTP/SAVPF", .dtlsSAVPF),
        ("TCP", .tcp), ("TCP/TLS", .tcpTLS), ("udptl", .udptl),
    ]
}
