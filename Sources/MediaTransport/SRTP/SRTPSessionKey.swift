internal import COpenSSL

/// The keys that encrypt and sign RTP, or RTCP, of one master key.
///
/// Thread: any, one at a time. Allocates nothing after `init`.
/// Source: RFC 3711, sections 3.1, 3.4 and 4.3; RFC 7714, sections 8, 9 and 11.
final class SRTPSessionKey: @unchecked Sendable {
    /// What the keys are for.
    enum Use: UInt8 {
        case media = 0
        case control = 3
    }

    private enum Cipher {
        case counter(BlockCipher)
        case galois(GaloisCipher)
    }

    private let cipher: Cipher
    private let salt: UInt128
    private let signing: UnsafeMutablePointer<hmac_sha1_key>
    let tagByteCount: Int

    init(_ master: SRTPMasterKey, for use: Use) {
        signing = .allocate(capacity: 1)
        signing.initialize(to: hmac_sha1_key())
        tagByteCount = use == .media ? master.suite.tagByteCount : master.suite.controlTagByteCount
        let isGCM = master.suite.isGCM
        let state = signing
        (cipher, salt) = Self.withDerived(from: master, for: use) { key, signingKey, salt in
            hmac_sha1_set(state, signingKey.baseAddress?.assumingMemoryBound(to: UInt8.self), signingKey.count)
            let cipher = isGCM ? Cipher.galois(GaloisCipher(key: key)) : .counter(BlockCipher(key: key))
            return (cipher, salt.reduce(0) { $0 << 8 | UInt128($1) })
        }
    }

    deinit {
        OPENSSL_cleanse(signing, MemoryLayout<hmac_sha1_key>.size)
        signing.deallocate()
    }

    /// Calls `body` with the keys that are derived from a master key: to encrypt, to sign, and the salt.
    static func withDerived<Result>(
        from master: SRTPMasterKey,
        for use: Use,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Result
    ) -> Result {
        let lengths = [master.suite.keyByteCount, signingKeyByteCount, master.suite.saltByteCount]
        let derived = UnsafeMutableRawBufferPointer.allocate(byteCount: lengths.reduce(0, +), alignment: 16)
        derived.initializeMemory(as: UInt8.self, repeating: 0)
        defer {
            OPENSSL_cleanse(derived.baseAddress, derived.count)
            derived.deallocate()
        }
        var parts: [UnsafeRawBufferPointer] = []
        master.withKeyAndSalt { masterKey, masterSalt in
            let generator = BlockCipher(key: masterKey)
            var start = 0
            for (label, length) in lengths.enumerated() {
                let part = derived.part(start..<start + length)
                let input = masterSalt ^ UInt128(use.rawValue + UInt8(label)) << 48
                generator.apply(from: input << 16, to: part)
                parts.append(UnsafeRawBufferPointer(part))
                start += length
            }
        }
        return body(parts[0], parts[1], parts[2])
    }

    /// Uses the key once, for nothing: what OpenSSL makes at the first time is there then.
    func warmUp() {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 16) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            let (text, tag) = (bytes.part(..<16), bytes.part(16...))
            switch cipher {
            case .counter(let cipher):
                cipher.apply(from: 0, to: text)
                sign(UnsafeRawBufferPointer(text), 0, into: tag.part(..<tagByteCount))
            case .galois(let cipher):
                // No packet has a nonce that begins like this.
                let nonce = ~salt & 0xFFFF << 80
                cipher.seal(text, UnsafeRawBufferPointer(tag), 0, nonce: nonce, into: tag)
                _ = cipher.open(text, UnsafeRawBufferPointer(tag), 0, nonce: nonce, tag: tag)
            }
        }
    }

    /// Bytes of the key of HMAC-SHA1, and of what it makes (RFC 3711, section 5.2).
    private static let signingKeyByteCount = 20

    /// Whether tag and cipher text are one, with the tag before all that stands behind a packet.
    var isGCM: Bool {
        switch cipher {
        case .counter: false
        case .galois: true
        }
    }

    /// Encrypts or decrypts `bytes` in place by counter mode.
    ///
    /// `index` has 48 bits of RTP, 31 of RTCP.
    func crypt(_ bytes: UnsafeMutableRawBufferPointer, ssrc: UInt32, index: UInt64) {
        guard case .counter(let cipher) = cipher else { preconditionFailure("GCM seals and opens") }
        cipher.apply(from: (salt ^ UInt128(ssrc) << 48 ^ UInt128(index)) << 16, to: bytes)
    }

    /// Writes the tag of `message` with `end` behind it, for counter mode.
    func sign(_ message: UnsafeRawBufferPointer, _ end: UInt32?, into tag: UnsafeMutableRawBufferPointer) {
        withUnsafeTemporaryAllocation(byteCount: Self.signingKeyByteCount, alignment: 8) { digest in
            var word = (end ?? 0).bigEndian
            let bytes = digest.baseAddress?.assumingMemoryBound(to: UInt8.self)
            hmac_sha1_sign(signing, message.baseAddress, message.count, &word, end == nil ? 0 : 4, bytes)
            tag.copyMemory(from: UnsafeRawBufferPointer(rebasing: digest[..<tag.count]))
        }
    }

    /// Whether `tag` is the one of `message` with `end` behind it; takes as long whatever differs.
    func verifies(_ tag: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer, _ end: UInt32?) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: tag.count, alignment: 8) { own in
            sign(message, end, into: own)
            return CRYPTO_memcmp(own.baseAddress, tag.baseAddress, tag.count) == 0
        }
    }

    /// Encrypts `text` in place by GCM, and writes the tag of it, of `header` and of `word`.
    func seal(
        _ text: UnsafeMutableRawBufferPointer,
        _ header: UnsafeRawBufferPointer,
        _ word: UInt32? = nil,
        ssrc: UInt32,
        index: UInt64,
        into tag: UnsafeMutableRawBufferPointer
    ) {
        guard case .galois(let cipher) = cipher else { preconditionFailure("counter mode signs") }
        cipher.seal(text, header, word, nonce: salt ^ UInt128(ssrc) << 48 ^ UInt128(index), into: tag)
    }

    /// Decrypts `text` in place by GCM; false when `tag` is not that of it, of `header` and of `word`.
    func open(
        _ text: UnsafeMutableRawBufferPointer,
        _ header: UnsafeRawBufferPointer,
        _ word: UInt32? = nil,
        ssrc: UInt32,
        index: UInt64,
        tag: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard case .galois(let cipher) = cipher else { preconditionFailure("counter mode signs") }
        return cipher.open(text, header, word, nonce: salt ^ UInt128(ssrc) << 48 ^ UInt128(index), tag: tag)
    }
}
