import Cryptography
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
            let suite = try #require(SRTPSuite(rawValue: suite))
            let master = try #require(SRTPMasterKey(suite, keyAndSalt: bytes(masterKey) + bytes(masterSalt)))
            return SRTPKeys(master, encryptsControl: srtcpEncrypted)
        }
    }

    static let vectors = Fixture.vectors("srtp.json", as: Vector.self)

    @Test func `there is a vector for each suite`() {
        #expect(Set(Self.vectors.compactMap { SRTPSuite(rawValue: $0.suite) }) == Set(SRTPSuite.allCases))
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

    private func derived(
        _ suite: SRTPSuite,
        _ keyAndSalt: String
    ) throws -> (key: [UInt8], signing: [UInt8], salt: [UInt8]) {
        let master = try #require(SRTPMasterKey(suite, keyAndSalt: bytes(keyAndSalt)))
        let derived = SRTPSessionKey.derive(from: master, for: .media)
        return (Array(derived.key.bytes), Array(derived.signing.bytes), Array(derived.salt.bytes))
    }
}
