import Foundation
import TestSupport
import Testing

@testable import MediaTransport

/// What RFCs print, and what another implementation has made of random packets.
@Suite(.tags(.rfc)) struct SRTPVectorTests {
    /// A packet of RTP and one of RTCP, with what libsrtp makes of them.
    struct Vector: Decodable, Sendable, CustomTestStringConvertible {
        let id, suite, masterKey, masterSalt, rtp, srtp, rtcp, srtcp: String
        let roc, srtcpIndex: UInt32
        let srtcpEncrypted: Bool

        var testDescription: String { "\(id), \(suite)" }

        func keys() throws -> SRTPKeys {
            let suite = try #require(SRTPSuite(named: suite))
            let master = try #require(SRTPMasterKey(suite, keyAndSalt: bytes(masterKey) + bytes(masterSalt)))
            return SRTPKeys(master, encryptsControl: srtcpEncrypted)
        }
    }

    static let vectors: [Vector] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Fixtures/srtp.json")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return (try? decoder.decode([Vector].self, from: Data(contentsOf: file))) ?? []
    }()

    @Test func `there is a vector for each suite`() {
        #expect(Set(Self.vectors.compactMap { SRTPSuite(named: $0.suite) }) == Set(SRTPSuite.allCases))
    }

    @Test(arguments: vectors) func `a packet becomes what it is elsewhere`(_ vector: Vector) throws {
        let before = vector.srtcpIndex &- 1
        var sender = SRTPSender(try vector.keys(), cycles: vector.roc, controlIndex: before)
        #expect(try sender.protected(bytes(vector.rtp)) == bytes(vector.srtp))
        // The last index is never used, and there is none before the first.
        guard vector.srtcpIndex != 0, before < 1 << 31 - 2 else { return }
        #expect(try sender.protectedControl(bytes(vector.rtcp)) == bytes(vector.srtcp))
    }

    @Test(arguments: vectors) func `what came from elsewhere is read`(_ vector: Vector) throws {
        var receiver = SRTPReceiver(try vector.keys(), cycles: vector.roc)
        #expect(try receiver.unprotected(bytes(vector.srtp)) == bytes(vector.rtp))
        #expect(try receiver.unprotectedControl(bytes(vector.srtcp)) == bytes(vector.rtcp))
    }

    // MARK: RFCs

    /// RFC 3711, appendix B.2: the key stream at the counters from 0 and from 0xFEFF on.
    @Test func `the key stream of AES in counter mode`() {
        let key = bytes("2B7E151628AED2A6ABF7158809CF4F3C")
        let salt: UInt128 = 0xF0F1F2F3_F4F5F6F7_F8F9FAFB_FCFD
        let first = "E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0"
        let far = "EC8CDF7398607CB0F2D21675EA9EA1E4 362B7C3C6773516318A077D7FC5073AE 6A2CC3787889374FBEB4C81B17BA6C44"
        #expect(keyStream(key, from: salt << 16, count: 48) == bytes(first))
        #expect(keyStream(key, from: salt << 16 | 0xFEFF, count: 48) == bytes(far))
    }

    /// RFC 6188, section 7.3.
    @Test func `the key stream of 256 bits`() {
        let key = bytes("57F82FE3613FD170A85EC93C40B1F0922EC4CB0DC025B58272147CC438944A98")
        let salt: UInt128 = 0xF0F1F2F3_F4F5F6F7_F8F9FAFB_FCFD
        let stream = "92BDD28A93C3F52511C677D08B5515A49DA71B2378A854F67050756DED165BAC"
        #expect(keyStream(key, from: salt << 16, count: 32) == bytes(stream))
    }

    /// RFC 3711, appendix B.3; RFC 6188, section 7.4.
    @Test func `keys are derived`() throws {
        let short = try derived(
            .aes128CM80,
            "E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6"
        )
        #expect(short.key == bytes("C61E7A93744F39EE10734AFE3FF7A087"))
        #expect(short.salt == bytes("30CBBC08863D8C85D49DB34A9AE1"))
        #expect(short.signing == bytes("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"))
        let long = try derived(
            .aes256CM80,
            "F0F04914B513F2763A1B1FA130F10E2998F6F6E43E4309D1E622A0E332B9F1B6 3B04803DE51EE7C96423AB5B78D2"
        )
        #expect(long.key == bytes("5BA1064E30EC51613CAD926C5A28EF731EC7FB397F70A960653CAF06554CD8C4"))
        #expect(long.salt == bytes("FA31791685CA444A9E07C6C64E93"))
        #expect(long.signing == bytes("FD9C32D39ED5FBB5A9DC96B30818454D1313DC05"))
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
            let cipher = key.withUnsafeBytes { GaloisCipher(key: $0) }
            let header = UnsafeRawBufferPointer(packet.part(..<12))
            cipher.seal(packet.part(12..<50), header, nil, nonce: nonce, into: packet.part(50...))
        }
        #expect(packet == sealed)
    }

    private func keyStream(_ key: [UInt8], from first: UInt128, count: Int) -> [UInt8] {
        var stream = [UInt8](repeating: 0, count: count)
        stream.withUnsafeMutableBytes { stream in
            key.withUnsafeBytes { BlockCipher(key: $0) }.apply(from: first, to: stream)
        }
        return stream
    }

    private func derived(
        _ suite: SRTPSuite,
        _ keyAndSalt: String
    ) throws -> (key: [UInt8], signing: [UInt8], salt: [UInt8]) {
        let master = try #require(SRTPMasterKey(suite, keyAndSalt: bytes(keyAndSalt)))
        return SRTPSessionKey.withDerived(from: master, for: .media) { (Array($0), Array($1), Array($2)) }
    }
}
