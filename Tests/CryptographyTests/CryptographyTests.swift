import Cryptography
import TestSupport
import Testing

/// What RFCs print of hashes, ciphers and texts.
@Suite(.tags(.rfc)) struct CryptographyTests {
    /// RFC 4231, section 4: test cases 1, 2 and 6.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `the keyed hash is HMAC with SHA-256`(key: [UInt8], text: String, digits: String) {
        #expect(HashFunction.sha256.keyedHash(of: Array(text.utf8), key: key) == bytes(digits))
    }

    /// RFC 3711, appendix B.2: the key stream at the counters from 0 and from 0xFEFF on.
    @Test func `the key stream of AES in counter mode`() {
        let key = bytes("2B7E151628AED2A6ABF7158809CF4F3C")
        let salt: UInt128 = 0xF0F1F2F3_F4F5F6F7_F8F9FAFB_FCFD
        let first = "E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0"
        let far = "EC8CDF7398607CB0F2D21675EA9EA1E4 362B7C3C6773516318A077D7FC5073AE 6A2CC3787889374FBEB4C81B17BA6C44"
        #expect(BlockCipher.stream(key: key, from: salt << 16, byteCount: 48) == bytes(first))
        #expect(BlockCipher.stream(key: key, from: salt << 16 | 0xFEFF, byteCount: 48) == bytes(far))
    }

    /// RFC 6188, section 7.3.
    @Test func `the key stream of 256 bits`() {
        let key = bytes("57F82FE3613FD170A85EC93C40B1F0922EC4CB0DC025B58272147CC438944A98")
        let salt: UInt128 = 0xF0F1F2F3_F4F5F6F7_F8F9FAFB_FCFD
        let stream = "92BDD28A93C3F52511C677D08B5515A49DA71B2378A854F67050756DED165BAC"
        #expect(BlockCipher.stream(key: key, from: salt << 16, byteCount: 32) == bytes(stream))
    }

    /// RFC 7714, section 16.1.1.
    @Test func `a packet is sealed by GCM`() {
        let key = bytes("000102030405060708090A0B0C0D0E0F")
        var packet = bytes(
            "8040F17B8041F8D35501A0B247616C6C696120657374206F6D6E69732064697669736120696E207061727465732074726573"
        )
        let sealed = bytes(
            "8040F17B8041F8D35501A0B2F24DE3A3FB34DE6CACBA861C9D7E4BCABE633BD50D294E6F42A5F47A51C7D19B36DE3ADF8833"
                + "899D7F27BEB16A9152CF765EE4390CCE"
        )
        packet += [UInt8](repeating: 0, count: 16)
        let nonce: UInt128 = 0x51756964_2070726F_2071756F ^ 0x5501A0B2 << 48 ^ 0xF17B
        packet.withUnsafeMutableBytes { packet in
            func part(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer { .init(rebasing: packet[range]) }
            let header = UnsafeRawBufferPointer(part(0..<12))
            key.withUnsafeBytes { key in
                GaloisCipher(key: key).seal(part(12..<50), header, nil, nonce: nonce, into: part(50..<66))
            }
        }
        #expect(packet == sealed)
    }

    /// Each has a nonce of its own, and what was refused leaves nothing behind.
    @Test(arguments: [16, 32], [0, 5, 28]) func `what GCM has sealed is opened, in any order and after refusals`(
        keyByteCount: Int,
        byteCount: Int
    ) {
        let key = SecretBytes([UInt8](repeating: 7, count: keyByteCount))
        let cipher = GaloisCipher(key: key.bytes)
        let end = 12 + byteCount
        let plain = (0..<end).map { UInt8($0) } + [UInt8](repeating: 0, count: 16)
        let nonces: [UInt128] = [0, 1, 1 << 95, 0x0102_0304_0506_0708_090A_0B0C]
        var sealed: [[UInt8]] = []
        for nonce in nonces {
            sealed.append(plain)
            use(cipher, &sealed[sealed.count - 1], nonce, toOpen: false)
        }
        #expect(Set(sealed).count == nonces.count)
        for (nonce, packet) in zip(nonces, sealed).reversed() {
            var bytes = packet
            var isOpen = use(cipher, &bytes, nonce ^ 2, toOpen: true)
            #expect(!isOpen)
            for place in [0, 11, end - 1, end, end + 15] {
                bytes = packet
                bytes[place] ^= 1
                isOpen = use(cipher, &bytes, nonce, toOpen: true)
                #expect(!isOpen)
            }
            bytes = packet
            isOpen = use(cipher, &bytes, nonce, toOpen: true)
            #expect(isOpen && bytes.prefix(end) == plain.prefix(end))
        }
    }

    /// Seals or opens a packet with a header of 12 bytes and a tag of 16.
    @discardableResult
    private func use(
        _ cipher: borrowing GaloisCipher,
        _ bytes: inout [UInt8],
        _ nonce: UInt128,
        toOpen: Bool
    ) -> Bool {
        bytes.withUnsafeMutableBytes { bytes in
            func part(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer { .init(rebasing: bytes[range]) }
            let end = bytes.count - 16
            let (header, text, tag) = (UnsafeRawBufferPointer(part(0..<12)), part(12..<end), part(end..<end + 16))
            if toOpen { return cipher.open(text, header, 9, nonce: nonce, tag: tag) }
            cipher.seal(text, header, 9, nonce: nonce, into: tag)
            return true
        }
    }

    @Test func `Base64 is read without its padding, and nothing else`() {
        #expect(Base64.encode([]) == "" && Base64.encode([1]) == "AQ==" && Base64.encode([1, 2, 3]) == "AQID")
        #expect(Base64.decode("AQ") == [1] && Base64.decode("AQ==") == [1] && Base64.decode("AQID") == [1, 2, 3])
        for text in ["", "A", "AQ==A", "A Q", "AQ\n", "====", String(repeating: "A", count: 5000)] {
            #expect(Base64.decode(text) == nil, "\(text)")
        }
    }

    @Test func `secret bytes tell nothing of themselves`() {
        let secret = SecretBytes([0xAB, 0xCD])
        var dumped = ""
        dump(secret, to: &dumped)
        #expect(Array(secret.bytes) == [0xAB, 0xCD])
        #expect(
            ![dumped, "\(secret)", String(reflecting: secret)].contains { $0.contains("171") || $0.contains("205") }
        )
        #expect(isSameSecret([1, 2], [1, 2]) && !isSameSecret([1, 2], [1, 3]) && !isSameSecret([1], [1, 2]))
    }
}
