/// A way to encrypt and sign RTP and RTCP.
///
/// Source: RFC 3711, section 8.2; RFC 4568, section 6.2; RFC 6188; RFC 7714, section 12.
package enum SRTPSuite: String, Sendable, CaseIterable {
    case aes128CM80 = "AES_CM_128_HMAC_SHA1_80"
    case aes128CM32 = "AES_CM_128_HMAC_SHA1_32"
    case aes256CM80 = "AES_256_CM_HMAC_SHA1_80"
    case aes256CM32 = "AES_256_CM_HMAC_SHA1_32"
    case aes128GCM = "AEAD_AES_128_GCM"
    case aes256GCM = "AEAD_AES_256_GCM"

    /// Bytes of the master key, and of the session keys that encrypt.
    package var keyByteCount: Int {
        switch self {
        case .aes128CM80, .aes128CM32, .aes128GCM: 16
        case .aes256CM80, .aes256CM32, .aes256GCM: 32
        }
    }

    /// Bytes of the master salt, and of the session salts.
    package var saltByteCount: Int { isGCM ? 12 : 14 }

    /// Bytes of the tag behind a packet of RTP.
    package var tagByteCount: Int {
        switch self {
        case .aes128CM32, .aes256CM32: 4
        case .aes128CM80, .aes256CM80: 10
        case .aes128GCM, .aes256GCM: 16
        }
    }

    /// Bytes of the tag behind a packet of RTCP, which is never a short one.
    package var controlTagByteCount: Int { isGCM ? 16 : 10 }

    /// Whether one cipher encrypts and signs.
    var isGCM: Bool { self == .aes128GCM || self == .aes256GCM }
}
