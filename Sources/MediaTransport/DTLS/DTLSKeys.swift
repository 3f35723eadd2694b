internal import CLibSSL
internal import Cryptography
package import SDP

/// What protects RTP both ways, as a handshake has agreed on it.
///
/// Source: RFC 5764, section 4.2.
package struct DTLSKeys: Sendable {
    package let suite: SRTPSuite
    package let sending: SRTPMasterKey
    package let receiving: SRTPMasterKey
    /// Of the certificate that the other side has proved.
    package let fingerprint: Fingerprint

    /// The keys of an association whose handshake is over; nil when no profile was agreed on, or nothing can be exported.
    ///
    ///     client's key │ server's key │ client's salt │ server's salt
    init?(exportedFrom session: OpaquePointer, role: DTLSRole, fingerprint: Fingerprint) {
        guard let profile = SSL_get_selected_srtp_profile(session),
            let suite = Self.suites.first(where: { $0.profile == profile.pointee.id })?.suite
        else { return nil }
        let (keyCount, saltCount) = (suite.keyByteCount, suite.saltByteCount)
        var isExported = false
        let material = SecretBytes(count: 2 * (keyCount + saltCount)) { bytes in
            let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            isExported =
                SSL_export_keying_material(session, start, bytes.count, Self.label, Self.label.utf8.count, nil, 0, 0)
                == 1
        }
        func key(_ index: Int) -> SRTPMasterKey? {
            let keyAndSalt = SecretBytes(count: keyCount + saltCount) { bytes in
                bytes.copyBytes(from: material.bytes[index * keyCount..<(index + 1) * keyCount])
                let salt = 2 * keyCount + index * saltCount
                UnsafeMutableRawBufferPointer(rebasing: bytes[keyCount...])
                    .copyBytes(from: material.bytes[salt..<salt + saltCount])
            }
            return SRTPMasterKey(suite, keyAndSalt: keyAndSalt.bytes)
        }
        guard isExported, let client = key(0), let server = key(1) else { return nil }
        (self.suite, self.fingerprint) = (suite, fingerprint)
        (sending, receiving) = role == .active ? (client, server) : (server, client)
    }

    /// What is offered, the preferred one first, in the library's words.
    static let profileNames = "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_256_GCM"
    private static let suites: [(profile: UInt, suite: SRTPSuite)] = [
        (UInt(SRTP_AEAD_AES_128_GCM), .aes128GCM), (UInt(SRTP_AES128_CM_SHA1_80), .aes128CM80),
        (UInt(SRTP_AEAD_AES_256_GCM), .aes256GCM),
    ]
    private static let label = "EXTRACTOR-dtls_srtp"
}
