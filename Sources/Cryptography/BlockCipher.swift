internal import COpenSSL

/// AES of single blocks with one key, and the key stream of counter mode that is made of it.
///
/// Thread: any, one at a time. Allocates nothing after `init`.
/// Source: NIST SP 800-38A, section 6.5.
package struct BlockCipher: ~Copyable, @unchecked Sendable {
    private let context: OpaquePointer
    /// Counters, and what they become.
    private let blocks: UnsafeMutableRawBufferPointer
    private static let blockCount = 16

    /// - Parameter key: 16 or 32 bytes.
    package init(key: UnsafeRawBufferPointer) {
        context = Cipher.ecb(key.count).context(key: key)
        EVP_CIPHER_CTX_set_padding(context, 0)
        blocks = .allocate(byteCount: Self.blockCount * 16, alignment: 16)
    }

    deinit {
        EVP_CIPHER_CTX_free(context)
        OPENSSL_cleanse(blocks.baseAddress, blocks.count)
        blocks.deallocate()
    }

    /// Encrypts or decrypts `bytes` in place, up to 2^16 blocks of 16, beginning with the counter `first`.
    package func apply(from first: UInt128, to bytes: UnsafeMutableRawBufferPointer) {
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
            Self.combine(UnsafeMutableRawBufferPointer(rebasing: bytes[place..<place &+ count]), with: blocks)
            place += count
        }
    }

    /// By eight bytes as far as they go, and then by one.
    private static func combine(_ bytes: UnsafeMutableRawBufferPointer, with stream: UnsafeMutableRawBufferPointer) {
        var place = 0
        while place &+ 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
            bytes.storeBytes(
                of: word ^ stream.load(fromByteOffset: place, as: UInt64.self),
                toByteOffset: place,
                as: UInt64.self
            )
            place &+= 8
        }
        while place < bytes.count {
            bytes[place] ^= stream[place]
            place &+= 1
        }
    }
}

extension BlockCipher {
    /// The key stream itself, from the counter `first` on.
    package static func stream(key: [UInt8], from first: UInt128, byteCount: Int) -> [UInt8] {
        var stream = [UInt8](repeating: 0, count: byteCount)
        stream.withUnsafeMutableBytes { stream in
            key.withUnsafeBytes { BlockCipher(key: $0).apply(from: first, to: stream) }
        }
        return stream
    }
}

/// A cipher as OpenSSL gave it: asked for once, since it looks long for it, and never given back.
struct Cipher: @unchecked Sendable {
    private let pointer: OpaquePointer?

    private init(_ name: String) { pointer = EVP_CIPHER_fetch(nil, name, nil) }

    /// AES of single blocks, with a key of so many bytes: 16 or 32.
    static func ecb(_ keyByteCount: Int) -> Cipher { keyByteCount == 16 ? ecb128 : ecb256 }

    /// AES-GCM, with a key of so many bytes: 16 or 32.
    static func gcm(_ keyByteCount: Int) -> Cipher { keyByteCount == 16 ? gcm128 : gcm256 }

    /// A context that encrypts with `key`, for the caller to free.
    func context(key: UnsafeRawBufferPointer) -> OpaquePointer {
        guard let pointer, let context = EVP_CIPHER_CTX_new(), Int(EVP_CIPHER_get_key_length(pointer)) == key.count,
            EVP_EncryptInit_ex2(context, pointer, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, nil) == 1
        else { preconditionFailure("AES is not available, or not with a key of \(key.count) bytes.") }
        return context
    }

    private static let ecb128 = Cipher("AES-128-ECB")
    private static let ecb256 = Cipher("AES-256-ECB")
    private static let gcm128 = Cipher("AES-128-GCM")
    private static let gcm256 = Cipher("AES-256-GCM")
}
