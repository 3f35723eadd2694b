internal import COpenSSL

/// The hash functions of digest authentication, by OpenSSL; all use of its library is in this file.
///
/// SHA-512-256 is a function of its own, with its own initial values, and not a cut SHA-512.
/// Source: RFC 7616, section 3.2; FIPS 180-4, section 5.3.6
package enum DigestHash: Hashable, Sendable, CaseIterable {
    case md5, sha256, sha512_256

    /// Whether the library offers it; in FIPS mode it has no MD5.
    package var isAvailable: Bool { Self.available.contains(self) }

    /// How many hexadecimal digits a hash has.
    package var digitCount: Int { self == .md5 ? 32 : 64 }

    /// The hash of the parts with colons between them, in lower-case hexadecimal digits.
    ///
    /// To ask for one that is not available is a mistake of the caller.
    package func hex(_ parts: Bytes...) -> Bytes {
        guard let hash = hash(Array(parts.joined(separator: [.colon]))) else {
            preconditionFailure("\(self) is not available.")
        }
        return hash.hexadecimal
    }

    fileprivate func hash(_ bytes: [UInt8]) -> [UInt8]? {
        var hash = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &hash, &count, function, nil) == 1 else { return nil }
        return Array(hash.prefix(Int(count)))
    }

    private var function: OpaquePointer? {
        switch self {
        case .md5: Self.functions.md5.pointer
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
        md5: Function("MD5"), sha256: Function("SHA2-256"), sha512_256: Function("SHA2-512/256")
    )

    private static let available = Set(allCases.filter { $0.hash([]) != nil })
}

/// The keyed hash of `bytes`: HMAC with SHA-256, 32 bytes (RFC 2104).
func keyedHash(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
    let blockCount = 64
    func hash(_ bytes: [UInt8]) -> [UInt8] {
        guard let hash = DigestHash.sha256.hash(bytes) else { preconditionFailure("SHA-256 is not available.") }
        return hash
    }
    func block(_ mask: UInt8, _ key: [UInt8]) -> [UInt8] {
        key.map { $0 ^ mask } + [UInt8](repeating: mask, count: blockCount - key.count)
    }
    let key = key.count > blockCount ? hash(key) : key
    return hash(block(0x5C, key) + hash(block(0x36, key) + bytes))
}

/// The first bytes of AES-256 in counter mode, under a key of 32 bytes and from a counter of 16 on.
///
/// Source: NIST SP 800-38A, section 6.5
func counterStream(key: [UInt8], counter: [UInt8], byteCount: Int) -> [UInt8] {
    precondition(key.count == 32 && counter.count == 16)
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    let zeros = [UInt8](repeating: 0, count: byteCount)
    var stream = zeros
    var count: Int32 = 0
    guard EVP_EncryptInit_ex(context, EVP_aes_256_ctr(), nil, key, counter) == 1,
        EVP_EncryptUpdate(context, &stream, &count, zeros, Int32(byteCount)) == 1, count == byteCount
    else { preconditionFailure("AES-256 is not available.") }
    return stream
}

/// Whether both are the same; how long that takes says nothing of where they differ.
func isSameSecret(_ one: some Collection<UInt8>, _ other: some Collection<UInt8>) -> Bool {
    one.count == other.count && CRYPTO_memcmp(Array(one), Array(other), one.count) == 0
}

extension Sequence where Element == UInt8 {
    /// Two lower-case digits for each byte.
    var hexadecimal: Bytes {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * underestimatedCount)
        for byte in self {
            digits.append(.hexadecimalDigit(byte >> 4))
            digits.append(.hexadecimalDigit(byte & 15))
        }
        return digits[...]
    }
}

extension FixedWidthInteger where Self: UnsignedInteger {
    /// All lower-case digits, the highest first.
    var hexadecimal: Bytes {
        var digits: [UInt8] = []
        digits.append(hexadecimal: self)
        return digits[...]
    }
}

extension [UInt8] {
    /// Appends all lower-case digits, the highest first.
    mutating func append<Number: FixedWidthInteger & UnsignedInteger>(hexadecimal number: Number) {
        reserveCapacity(count + Number.bitWidth / 4)
        for shift in stride(from: Number.bitWidth - 4, through: 0, by: -4) {
            append(.hexadecimalDigit(UInt8(truncatingIfNeeded: number >> shift) & 15))
        }
    }
}

extension ArraySlice<UInt8> {
    /// The number that hexadecimal digits of its full width write; nil when they are fewer, more, or others.
    func hexadecimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type = Number.self) -> Number? {
        guard count == Number.bitWidth / 4 else { return nil }
        var value: Number = 0
        for byte in self {
            guard let digit = byte.hexadecimalValue else { return nil }
            value = value << 4 | Number(digit)
        }
        return value
    }
}

extension UInt8 {
    fileprivate static func hexadecimalDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
