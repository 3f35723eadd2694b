internal import COpenSSL
internal import CZlib

/// What signs messages (RFC 8489, section 9).
package struct STUNKey: Sendable, CustomStringConvertible, CustomReflectable {
    let bytes: [UInt8]

    /// The password of ICE, which both sides have told each other (section 9.1.1).
    package init(shortTerm password: String) { bytes = Array(password.utf8) }

    /// A user's at a server (section 9.2.2), by MD5 or, where PASSWORD-ALGORITHM says so, by SHA-256.
    package init(user: String, realm: String, password: String, isSHA256: Bool = false) {
        let text = Array("\(user):\(realm):\(password)".utf8)
        bytes = [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            var length: UInt32 = 0
            EVP_Digest(text, text.count, buffer.baseAddress, &length, isSHA256 ? EVP_sha256() : EVP_md5(), nil)
            count = Int(length)
        }
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
        let head = header(bytes, lengthUpTo: end + 8)
        let first = crc32(0, head, UInt32(head.count))
        let rest = bytes[STUNMessage.headerByteCount..<end].withUnsafeBytes {
            crc32(first, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32($0.count))
        }
        return UInt32(truncatingIfNeeded: end > STUNMessage.headerByteCount ? rest : first) ^ 0x5354_554E
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
        let whole = [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            var length: UInt32 = 0
            let digest = isSHA256 ? EVP_sha256() : EVP_sha1()
            HMAC(digest, key.bytes, CInt(key.bytes.count), message, message.count, buffer.baseAddress, &length)
            count = Int(length)
        }
        return Array(whole.prefix(byteCount))
    }

    /// Takes as long whatever differs.
    static func areEqual(_ own: [UInt8], _ value: ArraySlice<UInt8>) -> Bool {
        own.count == value.count && CRYPTO_memcmp(own, Array(value), own.count) == 0
    }

    private static func header(_ bytes: [UInt8], lengthUpTo end: Int) -> [UInt8] {
        let length = end - STUNMessage.headerByteCount
        var header = Array(bytes[..<STUNMessage.headerByteCount])
        (header[2], header[3]) = (UInt8(length >> 8), UInt8(length & 0xFF))
        return header
    }
}
