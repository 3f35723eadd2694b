internal import Cryptography

/// What signs messages (RFC 8489, section 9).
package struct STUNKey: Sendable, CustomStringConvertible, CustomReflectable {
    let bytes: [UInt8]

    /// The password of ICE, which both sides have told each other (section 9.1.1).
    package init(shortTerm password: String) { bytes = Array(password.utf8) }

    /// A user's at a server (section 9.2.2), by MD5 or, where PASSWORD-ALGORITHM says so, by SHA-256.
    package init(user: String, realm: String, password: String, isSHA256: Bool = false) {
        bytes = (isSHA256 ? HashFunction.sha256 : .md5).hash(Array("\(user):\(realm):\(password)".utf8))
    }

    package var description: String { "a key" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// What proves that a message is whole, and whose it is.
enum STUNProof {
    /// CRC-32 of what is before the attribute at `end`, in its own way (RFC 8489, section 14.7).
    ///
    /// The header's length counts the attribute already.
    static func fingerprint(_ bytes: [UInt8], upTo end: Int) -> UInt32 {
        CRC32.of(header(bytes, lengthUpTo: end + 8) + bytes[STUNMessage.headerByteCount..<end]) ^ 0x5354_554E
    }

    /// HMAC of what is before the attribute at `end`, whose value has `byteCount` bytes (RFC 8489, sections 14.5 and 14.6).
    ///
    /// The header's length is taken as if the message ended with the attribute.
    static func integrity(
        _ bytes: [UInt8],
        upTo end: Int,
        _ key: STUNKey,
        byteCount: Int,
        isSHA256: Bool
    ) -> [UInt8] {
        let message = header(bytes, lengthUpTo: end + 4 + byteCount) + bytes[STUNMessage.headerByteCount..<end]
        return Array((isSHA256 ? HashFunction.sha256 : .sha1).keyedHash(of: message, key: key.bytes).prefix(byteCount))
    }

    private static func header(_ bytes: [UInt8], lengthUpTo end: Int) -> [UInt8] {
        let length = end - STUNMessage.headerByteCount
        var header = Array(bytes[..<STUNMessage.headerByteCount])
        (header[2], header[3]) = (UInt8(length >> 8), UInt8(length & 0xFF))
        return header
    }
}

/// The checksum of Ethernet (ISO 3309; ITU-T V.42, section 8.1.1.6.2).
enum CRC32 {
    static func of(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ $0 >> 8 }
    }

    private static let table = (0..<256 as Range<UInt32>).map { byte in
        (0..<8).reduce(byte) { rest, _ in rest & 1 == 0 ? rest >> 1 : rest >> 1 ^ 0xEDB8_8320 }
    }
}
