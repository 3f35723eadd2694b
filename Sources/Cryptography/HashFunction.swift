internal import COpenSSL

/// Hash functions, by OpenSSL.
///
/// SHA-512-256 is a function of its own, with its own initial values, and not a cut SHA-512.
/// Source: RFC 1321; FIPS 180-4, section 5.3.6 for SHA-512-256
package enum HashFunction: Hashable, Sendable, CaseIterable {
    case md5, sha1, sha256, sha512_256

    /// Whether the library offers it; in FIPS mode it has no MD5.
    package var isAvailable: Bool { Self.available.contains(self) }

    /// The hash of `bytes`.
    ///
    /// To ask for one that is not available is a mistake of the caller.
    package func hash(_ bytes: [UInt8]) -> [UInt8] {
        guard let hash = found(bytes) else { preconditionFailure("\(self) is not available.") }
        return hash
    }

    /// The keyed hash of `bytes`: HMAC (RFC 2104).
    package func keyedHash(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        let blockCount = self == .sha512_256 ? 128 : 64
        func block(_ mask: UInt8, _ key: [UInt8]) -> [UInt8] {
            key.map { $0 ^ mask } + [UInt8](repeating: mask, count: blockCount - key.count)
        }
        let key = key.count > blockCount ? hash(key) : key
        return hash(block(0x5C, key) + hash(block(0x36, key) + bytes))
    }

    private func found(_ bytes: [UInt8]) -> [UInt8]? {
        var hash = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &hash, &count, function, nil) == 1 else { return nil }
        return Array(hash.prefix(Int(count)))
    }

    private var function: OpaquePointer? {
        switch self {
        case .md5: Self.functions.md5.pointer
        case .sha1: Self.functions.sha1.pointer
        case .sha256: Self.functions.sha256.pointer
        case .sha512_256: Self.functions.sha512_256.pointer
        }
    }

    /// A function as the library gave it: asked for once, since it looks long for it, and never given back.
    private struct Function: @unchecked Sendable {
        let pointer: OpaquePointer?

        init(_ name: String) { pointer = EVP_MD_fetch(nil, name, nil) }
    }

    private static let functions = (
        md5: Function("MD5"), sha1: Function("SHA1"), sha256: Function("SHA2-256"),
        sha512_256: Function("SHA2-512/256")
    )

    private static let available = Set(allCases.filter { $0.found([]) != nil })
}
