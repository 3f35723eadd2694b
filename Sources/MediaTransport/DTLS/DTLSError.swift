package import SDP

/// Why there is no DTLS association, or no longer.
package enum DTLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library made no certificate, or nothing to use it with; what it says of that.
    case noCertificate(String)
    /// The other side has shown a certificate that its description does not announce.
    case wrongFingerprint(expected: [Fingerprint], actual: Fingerprint)
    /// The other side's description announces its certificate by no hash that is safe.
    case noUsableFingerprint
    /// Both sides have no way to protect RTP in common.
    case noProfile
    /// The other side did not answer.
    case timedOut
    /// ICE has found no way to the other side.
    case unreached
    /// The other side does not answer any more on the way that ICE has found.
    case silent
    /// The other side has ended it, with this alert.
    case alert(String)
    /// The other side has sent what cannot be; what the library says of that.
    case protocolFailure(String)

    package var description: String {
        switch self {
        case .noCertificate(let reason):
            "OpenSSL could not make a certificate for DTLS: \(reason). Check that OpenSSL is 3.0 or later."
        case .wrongFingerprint(let expected, let actual):
            """
            The certificate of the other side is \(actual.value), and its description announced \
            \(expected.map(\.value).joined(separator: ", ")). Somebody may be in between: hang up.
            """
        case .noUsableFingerprint:
            "The description has no fingerprint by sha-256, sha-384 or sha-512. Have the other side send one."
        case .noProfile:
            """
            The other side protects RTP by none of AEAD_AES_128_GCM, AES_CM_128_HMAC_SHA1_80 and AEAD_AES_256_GCM. \
            Have it offer one of them.
            """
        case .timedOut:
            "The other side did not answer over DTLS. Check that its UDP packets arrive here, and ours there."
        case .unreached:
            "ICE found no way to the other side. Check that UDP packets of each arrive at the other."
        case .silent:
            "ICE has lost the other side: it has not answered for 30 s, or refuses to. Check both networks, and call again."
        case .alert(let alert):
            "The other side ended DTLS with the alert \"\(alert)\". Its log may say why."
        case .protocolFailure(let reason):
            "DTLS failed: \(reason). Check that the other side speaks DTLS 1.2 with ECDHE and a certificate."
        }
    }
}
