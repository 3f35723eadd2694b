package import CallBasics
package import MediaTransport
package import SDP

/// What secures the sound of calls.
public enum MediaEncryption: Hashable, Sendable {
    /// RTP in the clear: all on the way can hear it. Secured calls are refused (488).
    case none
    /// SRTP with keys in the session descriptions (SDES, RFC 4568): calls in the clear are neither made nor taken (488).
    ///
    /// Whoever reads the messages of SIP has the keys: have accounts on TLS. Proxies on the way read them in any case.
    case sdes
    /// SRTP with keys that both sides make by DTLS (RFC 5763, RFC 5764): other calls are neither made nor taken (488).
    ///
    /// The messages of SIP tell fingerprints of certificates: who changes them on the way can be in the middle, who only reads
    /// them hears nothing. A call whose other side does not prove itself ends as `failed`.
    case dtls
    /// SRTP where the other side has it, else RTP in the clear: `PhoneCall.encryption` says which.
    ///
    /// Calls are offered with keys by DTLS, then by SDES where all messages of SIP go by TLS, then in the clear, each once the one
    /// before was refused (488). Of what others offer the same order is taken. What a call has begun with, it goes on with.
    case preferred
}

extension MediaEncryption {
    /// Whether sound is offered that may be taken; without an offer it is left to this side.
    package func takes(_ offer: SessionDescription?) -> Bool {
        let audio = (offer?.media ?? []).filter { $0.kind == "audio" && $0.port != 0 }
        return audio.isEmpty || audio.contains { takes($0.transport) }
    }

    private func takes(_ transport: MediaProtocol) -> Bool {
        switch self {
        case .none: !transport.isSecuredRTP
        case .sdes: transport.hasKeysInDescription
        case .dtls: transport.usesDTLS
        case .preferred: true
        }
    }
}

extension PhoneCall {
    /// What secures its sound, by what both have agreed on: `none` before, and for a call in the clear.
    public var encryption: MediaEncryption { sound?.encryption ?? .none }
}

/// How the sound of one call is secured.
package struct CallSecurity: Sendable {
    /// Where the keys are from.
    package let encryption: MediaEncryption
    /// The suite, as RFC 4568 names it: "AEAD_AES_128_GCM".
    package let suite: String
    /// Of the certificate that the other side has proved; nil without DTLS.
    package let fingerprint: String?
    /// Where ICE has found the other side, and what kind of address that is: host, srflx, prflx or relay; nil without ICE.
    package let path: (kind: String, address: SocketAddress)?
    /// What was not sent and not taken.
    package let counts: SecurityStatistics

    package init(
        _ encryption: MediaEncryption,
        suite: SRTPSuite,
        _ counts: SecurityStatistics,
        _ fingerprint: Fingerprint? = nil,
        path: (kind: String, address: SocketAddress)? = nil
    ) {
        (self.encryption, self.suite, self.counts) = (encryption, suite.rawValue, counts)
        (self.fingerprint, self.path) = (fingerprint?.value, path)
    }
}
