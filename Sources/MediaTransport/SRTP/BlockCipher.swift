internal import COpenSSL

/// AES of single blocks with one key, and the key stream of counter mode that is made of it.
///
/// Thread: any, one at a time. Allocates nothing after `init`.
/// Source: RFC 3711, section 4.1.1.
final class BlockCipher: @unchecked Sendable {
    private let context: OpaquePointer
    /// Counters, and what they become.
    private let blocks: UnsafeMutableRawBufferPointer
    private static let blockCount = 16

    /// - Parameter key: 16 or 32 bytes.
    init(key: UnsafeRawBufferPointer) {
        context = CipherContext.make("AES-\(key.count * 8)-ECB", key: key)
        EVP_CIPHER_CTX_set_padding(context, 0)
        blocks = .allocate(byteCount: Self.blockCount * 16, alignment: 16)
    }

    deinit {
        EVP_CIPHER_CTX_free(context)
        OPENSSL_cleanse(blocks.baseAddress, blocks.count)
        blocks.deallocate()
    }

    /// Encrypts or decrypts `bytes` in place, up to 2^16 blocks of 16, beginning with the counter `first`.
    func apply(from first: UInt128, to bytes: UnsafeMutableRawBufferPointer) {
        var (counter, place) = (first, 0)
        while place < bytes.count {
            let count = min(bytes.count - place, blocks.count)
            let blockCount = (count + 15) / 16
            for block in 0..<blockCount {
                blocks.storeBytes(of: counter.bigEndian, toByteOffset: block * 16, as: UInt128.self)
                counter &+= 1
            }
            let stream = blocks.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var written: CInt = 0
            EVP_EncryptUpdate(context, stream, &written, stream, CInt(blockCount * 16))
            for index in 0..<count { bytes[place + index] ^= blocks[index] }
            place += count
        }
    }
}

/// Contexts of OpenSSL's ciphers.
enum CipherContext {
    /// A context that encrypts by the cipher `name` with `key`, for the caller to free.
    static func make(_ name: String, key: UnsafeRawBufferPointer) -> OpaquePointer {
        let cipher = EVP_CIPHER_fetch(nil, name, nil)
        defer { EVP_CIPHER_free(cipher) }
        guard let cipher, let context = EVP_CIPHER_CTX_new(),
            EVP_EncryptInit_ex2(context, cipher, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, nil) == 1
        else { preconditionFailure("libcrypto has no \(name)") }
        return context
    }
}
