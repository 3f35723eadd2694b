import CallBasics
import Cryptography
import SDP
import TestSupport
import Testing

@testable import MediaTransport

/// Two sides that agree on keys by their descriptions.
@Suite struct SDESExchangeTests {
    private var generator = SeededGenerator(seed: 5)

    private func lines(_ values: String...) throws -> [CryptoAttribute] {
        let text =
            "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/SAVP 0\r\n"
            + values.map { "a=crypto:\($0)\r\n" }.joined()
        let media = try #require(try SessionDescription(parsing: text).media.first)
        return media.keyingAttributes.cryptoLines
    }

    /// A line as it is written, and read again.
    private func passed(_ sent: [CryptoAttribute]) throws -> [CryptoAttribute] {
        let read = try sent.flatMap { try lines($0.value) }
        #expect(read == sent)
        return read
    }

    private func expectSound(from sender: SRTPKeys, to receiver: SRTPKeys) throws {
        var out = SRTPSender(sender)
        var into = SRTPReceiver(receiver)
        #expect(try into.unprotected(out.protected(Packets.media(3))) == Packets.media(3))
        #expect(try into.unprotectedControl(out.protectedControl(Packets.control())) == Packets.control())
    }

    private func expectSound(_ one: SDESExchange.Agreement, _ other: SDESExchange.Agreement) throws {
        #expect(one.suite == other.suite)
        try expectSound(from: one.sending, to: other.receiving)
        try expectSound(from: other.sending, to: one.receiving)
        #expect(!one.sending.master.equals(one.receiving.master))
    }

    @Test mutating func `the preferred suite is agreed on, with a key of each side`() throws {
        var (caller, callee) = (SDESExchange(), SDESExchange())
        let offer = try passed(caller.offer(using: &generator))
        #expect(offer.map(\.suite) == SDESExchange.offeredSuites.map(\.rawValue) && offer.map(\.tag) == [1, 2, 3, 4])
        let (line, theirs) = try #require(callee.answer(offer, using: &generator))
        #expect(line.tag == 1 && line.keys != offer[0].keys)
        let ours = try #require(caller.accept(try passed([line])))
        try expectSound(ours, theirs)
    }

    @Test mutating func `an offer anew has the keys of before`() throws {
        var (caller, callee) = (SDESExchange(), SDESExchange())
        let offer = caller.offer(using: &generator)
        let first = try #require(callee.answer(offer, using: &generator))
        #expect(caller.offer(using: &generator) == offer)
        #expect(try #require(callee.answer(offer, using: &generator)).line == first.line)
    }

    @Test(arguments: SRTPSuite.allCases) mutating func `each suite is answered`(suite: SRTPSuite) throws {
        let key = SRTPMasterKey(suite, using: &generator)
        let offer = try lines("7 \(suite.rawValue) inline:\(Base64.encode(key.keyAndSalt))|2^31")
        var callee = SDESExchange()
        let (line, agreement) = try #require(callee.answer(offer, using: &generator))
        #expect(line.tag == 7 && line.suite == suite.rawValue && agreement.suite == suite)
        try expectSound(from: SRTPKeys(key), to: agreement.receiving)
        let own = try #require(Base64.decode(line.keys[0].keyAndSalt))
        try expectSound(from: agreement.sending, to: SRTPKeys(try #require(SRTPMasterKey(suite, keyAndSalt: own))))
    }

    private static let key = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"

    /// What is offered behind a suite, and whether it can be used.
    ///
    /// The key is that of RFC 4568, section 6.1.
    @Test(arguments: [
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY", true), ("AES_CM_128_HMAC_SHA1_80 inline:KEY|2^20", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY|1048576|1:4", true), ("aes_cm_128_hmac_sha1_32 inline:KEY", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY KDR=0 WSH=128 -NEW", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTCP", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY KDR=1", false), ("AES_CM_128_HMAC_SHA1_80 inline:KEY WSH=32", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTP", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY UNAUTHENTICATED_SRTP", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY FEC_ORDER=FEC_SRTP", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY NEW", false), ("F8_128_HMAC_SHA1_80 inline:KEY", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEYKEY", false), ("AES_256_CM_HMAC_SHA1_80 inline:KEY", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:d0Rm!!!!VCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY|2^20|1:4;inline:KEY|2^20|2:4", false),
    ])
    mutating func `lines that are understood are taken`(text: String, isUsable: Bool) throws {
        var callee = SDESExchange()
        let line = text.replacing("KEY", with: Self.key)
        #expect((callee.answer(try lines("1 \(line)"), using: &generator) != nil) == isUsable)
    }

    @Test mutating func `RTCP is left unencrypted only where nothing else fits, and the answer says so`() throws {
        let clear = "1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key) UNENCRYPTED_SRTCP"
        var callee = SDESExchange()
        let offer = try lines(clear, "2 AES_CM_128_HMAC_SHA1_32 inline:\(Self.key)")
        #expect(try #require(callee.answer(offer, using: &generator)).line.tag == 2)
        let (line, agreement) = try #require(callee.answer(try lines(clear), using: &generator))
        #expect(line.parameters == ["UNENCRYPTED_SRTCP"] && !agreement.sending.encryptsControl)
    }

    @Test mutating func `the identifier of a key is in the answer, and in packets both ways`() throws {
        var callee = SDESExchange()
        let offer = try lines("1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)|2^20|258:3")
        let (line, agreement) = try #require(callee.answer(offer, using: &generator))
        #expect(line.value.hasSuffix("|258:3"))
        #expect(agreement.sending.identifier == [0, 1, 2] && agreement.receiving.identifier == [0, 1, 2])
    }

    @Test mutating func `an answer that does not fit the offer agrees on nothing`() throws {
        var caller = SDESExchange()
        _ = caller.offer(using: &generator)
        for text in [
            "1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)", "5 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)",
            "2 AES_CM_128_HMAC_SHA1_32 inline:\(Self.key)", "2 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key) FEC_KEY=x",
            "2 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key) UNENCRYPTED_SRTCP",
        ] {
            #expect(caller.accept(try lines(text)) == nil, "\(text)")
        }
        #expect(caller.accept([]) == nil)
        #expect(caller.accept(try lines("2 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)")) != nil)
    }

    @Test mutating func `no key is in what is printed of an exchange`() throws {
        var caller = SDESExchange()
        let offer = caller.offer(using: &generator)
        var dumped = ""
        dump(caller, to: &dumped)
        let first = try #require(Base64.decode(offer[1].keys[0].keyAndSalt))
        #expect(!dumped.contains("\(first[0]), \(first[1])") && !dumped.contains(offer[1].keys[0].keyAndSalt))
        #expect(!dumped.contains("- \(first[0])\n"))
    }
}
