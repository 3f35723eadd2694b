internal import Cryptography

/// The keys that encrypt and sign RTP, or RTCP, of one master key.
///
/// Nobody counts who has it, so that a packet retains nothing.
/// Thread: any, one at a time. Allocates nothing after `init`.
/// Source: RFC 3711, sections 3.1, 3.4 and 4.3; RFC 7714, sections 8, 9 and 11.
struct SRTPSessionKey: ~Copyable, @unchecked Sendable {
    /// What the keys are for.
    enum Use: UInt8 {
        case media = 0
        case control = 3
    }

    /// AES in counter mode with HMAC-SHA1.
    private struct CounterMode: ~Copyable {
        let cipher: BlockCipher
        let signing: SigningKey
    }

    private enum Cipher: ~Copyable {
        case counter(CounterMode)
        case galois(GaloisCipher)
    }

    private let cipher: Cipher
    private let salt: UInt128

    init(_ master: SRTPMasterKey, for use: Use) {
        let derived = Self.derive(from: master, for: use)
        salt = derived.salt.bytes.reduce(0) { $0 << 8 | UInt128($1) }
        cipher =
            master.suite.isGCM
            ? .galois(GaloisCipher(key: derived.key.bytes))
            : .counter(
                CounterMode(cipher: BlockCipher(key: derived.key.bytes), signing: SigningKey(derived.signing.bytes))
            )
    }

    /// What is derived from a master key: the keys to encrypt and to sign, and the salt.
    static func derive(
        from master: SRTPMasterKey,
        for use: Use
    ) -> (key: SecretBytes, signing: SecretBytes, salt: SecretBytes) {
        let generator = BlockCipher(key: master.key)
        func part(_ place: UInt8, byteCount: Int) -> SecretBytes {
            let input = master.salt ^ UInt128(use.rawValue + place) << 48
            return SecretBytes(count: byteCount) { generator.apply(from: input << 16, to: $0) }
        }
        return (
            part(0, byteCount: master.suite.keyByteCount), part(1, byteCount: SigningKey.byteCount),
            part(2, byteCount: master.suite.saltByteCount)
        )
    }

    /// Uses the key once, for nothing: what OpenSSL makes at the first time is there then.
    func warmUp() {
        withUnsafeTemporaryAllocation(byteCount: 48, alignment: 16) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            let (header, text, tag) = (bytes.part(..<16), bytes.part(16..<32), bytes.part(32...))
            switch cipher {
            case .counter(let mode):
                mode.cipher.apply(from: 0, to: text)
                mode.signing.sign(UnsafeRawBufferPointer(text), 0, into: tag)
            case .galois(let cipher):
                // No packet has a nonce that begins like this.
                let nonce = ~salt & 0xFFFF << 80
                cipher.seal(text, UnsafeRawBufferPointer(header), 0, nonce: nonce, into: tag)
                let isOpen = cipher.open(text, UnsafeRawBufferPointer(header), 0, nonce: nonce, tag: tag)
                precondition(isOpen, "libcrypto does not open what it has sealed by GCM")
            }
        }
    }

    // MARK: Packets

    /// Encrypts `text` in place, and writes the tag.
    ///
    /// - Parameters:
    ///   - text: What is encrypted; it may be empty.
    ///   - header: What is signed before it.
    ///   - word: What is signed behind the text of RTCP, which follows it in memory; nil for RTP.
    ///   - ssrc: The source.
    ///   - index: 48 bits of RTP, 31 of RTCP.
    ///   - tag: Where the tag goes.
    func protect(
        _ text: UnsafeMutableRawBufferPointer,
        _ header: UnsafeRawBufferPointer,
        _ word: UInt32?,
        ssrc: UInt32,
        index: UInt64,
        into tag: UnsafeMutableRawBufferPointer
    ) {
        switch cipher {
        case .galois(let cipher): cipher.seal(text, header, word, nonce: nonce(ssrc, index), into: tag)
        case .counter(let mode):
            mode.cipher.apply(from: nonce(ssrc, index) << 16, to: text)
            mode.signing.sign(signed(header, text), word ?? cycles(index), into: tag)
        }
    }

    /// Decrypts `text` in place where the tag is right; the parameters are those of `protect`.
    ///
    /// - Returns: False where it is not: the text may have been decrypted all the same.
    func unprotect(
        _ text: UnsafeMutableRawBufferPointer,
        _ header: UnsafeRawBufferPointer,
        _ word: UInt32?,
        ssrc: UInt32,
        index: UInt64,
        tag: UnsafeMutableRawBufferPointer
    ) -> Bool {
        switch cipher {
        case .galois(let cipher): return cipher.open(text, header, word, nonce: nonce(ssrc, index), tag: tag)
        case .counter(let mode):
            guard mode.signing.verifies(UnsafeRawBufferPointer(tag), signed(header, text), word ?? cycles(index)) else {
                return false
            }
            mode.cipher.apply(from: nonce(ssrc, index) << 16, to: text)
            return true
        }
    }

    /// What differs for each packet of a key (RFC 3711, section 4.1.1; RFC 7714, section 8.1).
    private func nonce(_ ssrc: UInt32, _ index: UInt64) -> UInt128 { salt ^ UInt128(ssrc) << 48 ^ UInt128(index) }

    private func cycles(_ index: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: index >> 16) }

    /// Header and text, which lie behind each other.
    private func signed(
        _ header: UnsafeRawBufferPointer,
        _ text: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: header.baseAddress, count: header.count + text.count)
    }
}
