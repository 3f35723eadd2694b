import Testing

@testable import SDP

/// Keys in descriptions: what is offered, what is answered, and what both sides have then.
@Suite struct CryptoFitTests {
    private static let suites = ["AEAD_AES_128_GCM", "AES_CM_128_HMAC_SHA1_80", "AES_256_CM_HMAC_SHA1_80"]

    /// A key of each suite, of `letter` alone.
    private static func keys(_ letter: String) -> [CryptoAttribute] {
        zip(suites, [38, 40, 62]).enumerated().map { index, suite in
            let key = CryptoAttribute.Key(keyAndSalt: String(repeating: letter, count: suite.1))
            return CryptoAttribute(tag: UInt32(index + 1), suite: suite.0, key: key)
        }
    }

    private static func side(_ letter: String) -> OfferAnswer {
        var medium = MediaConfiguration(port: 4000, formats: [.pcmu])
        medium.protocols = [.rtpSAVP, .rtpSAVPF]
        medium.keys = keys(letter)
        medium.answeringKeys = [
            CryptoAttribute(
                tag: 9,
                suite: "AES_CM_128_HMAC_SHA1_32",
                key: .init(keyAndSalt: String(repeating: letter, count: 40))
            )
        ]
        return OfferAnswer(configuration: SessionConfiguration(address: "192.0.2.1", media: [medium]), sessionID: 1)
    }

    private static func plain() -> OfferAnswer {
        let medium = MediaConfiguration(port: 4000, formats: [.pcmu])
        return OfferAnswer(configuration: SessionConfiguration(address: "192.0.2.1", media: [medium]), sessionID: 2)
    }

    private func description(_ lines: String..., transport: String = "RTP/SAVP") throws -> SessionDescription {
        let text =
            "v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\nm=audio 5000 \(transport) 0\r\n"
            + lines.map { "a=crypto:\($0)\r\n" }.joined()
        return try SessionDescription(parsing: text)
    }

    private func lines(_ description: SessionDescription) -> [CryptoAttribute] {
        description.media[0].keyingAttributes.cryptoLines
    }

    /// What both sides have after an offer of `a`, written and read again.
    private func exchange(
        _ a: inout OfferAnswer,
        _ b: inout OfferAnswer,
        _ scope: OfferAnswer.Scope = .everything
    ) throws -> (a: AgreedKeys, b: AgreedKeys) {
        try b.receiveOffer(SessionDescription(parsing: a.makeOffer(scope).description))
        try a.receiveAnswer(SessionDescription(parsing: b.makeAnswer().description))
        return try (#require(a.agreed?.audio?.keys), #require(b.agreed?.audio?.keys))
    }

    @Test func `all keys are offered, the first one is answered, and each side has both`() throws {
        var (a, b) = (Self.side("A"), Self.side("B"))
        let keys = try exchange(&a, &b)
        let session = try #require(a.agreed)
        #expect(lines(session.local) == Self.keys("A") && lines(session.remote).count == 1)
        #expect(keys.a.local == Self.keys("A")[0] && keys.a.remote.tag == 1)
        #expect(keys.a.remote.keys == Self.keys("B")[0].keys)
        #expect(keys.b.local == keys.a.remote && keys.b.remote == keys.a.local)
        #expect(session.audio?.transport == .rtpSAVP)
    }

    @Test func `a hold keeps the key that was agreed on, from either side, and a whole offer has those of before`()
        throws
    {
        var (a, b) = (Self.side("A"), Self.side("B"))
        b.configuration.media[0].keys = Array(Self.keys("B")[1...])
        let keys = try exchange(&a, &b)
        #expect(keys.a.local.tag == 2)
        a.configuration.hold = .withMusic
        let offer = try a.makeOffer(.agreedFormats)
        #expect(lines(offer) == [Self.keys("A")[1]])
        a.rollBack()
        #expect(try exchange(&a, &b, .agreedFormats) == keys)
        #expect(try exchange(&b, &a, .agreedFormats) == (keys.b, keys.a))
        #expect(try lines(a.makeOffer()) == Self.keys("A"))
        a.rollBack()
        #expect(try exchange(&a, &b) == keys)
    }

    private static let key = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"

    /// What is offered behind a tag, and whether it can be used.
    ///
    /// The key is that of RFC 4568, section 6.1.
    @Test(arguments: [
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY", true), ("AES_CM_128_HMAC_SHA1_80 inline:KEY|2^20", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY|1048576|1:4", true), ("aes_cm_128_hmac_sha1_32 inline:KEY", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY KDR=0 WSH=128 -NEW", true),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTCP", true),
        ("AES_CM_256_HMAC_SHA1_80 inline:KEYd0RmdmcmVCspeEc3QGZiNQ==", true),
        ("AES_CM_256_HMAC_SHA1_80 inline:KEYd0RmdmcmVCspeEc3QGZiNxxx", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY KDR=1", false), ("AES_CM_128_HMAC_SHA1_80 inline:KEY WSH=32", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTP", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY UNAUTHENTICATED_SRTP", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY FEC_ORDER=FEC_SRTP", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY =", false), ("AES_CM_128_HMAC_SHA1_80 inline:KEY NEW", false),
        ("F8_128_HMAC_SHA1_80 inline:KEY", false), ("AES_CM_128_HMAC_SHA1_80 inline:KEYKEY", false),
        ("AES_256_CM_HMAC_SHA1_80 inline:KEY", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:d0Rm!!!!VCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj", false),
        ("AES_CM_128_HMAC_SHA1_80 inline:KEY|2^20|1:4;inline:KEY|2^20|2:4", false),
    ])
    func `lines that are understood are taken`(text: String, isUsable: Bool) throws {
        var side = Self.side("B")
        try side.receiveOffer(description("7 \(text.replacing("KEY", with: Self.key))"))
        guard isUsable else {
            let error = #expect(throws: SDPError.self) { _ = try side.makeAnswer() }
            #expect(error?.code == .notAcceptable && error?.message.contains("no line of a key") == true)
            return
        }
        let answer = try side.makeAnswer()
        let line = try #require(lines(answer).first)
        #expect(line.tag == 7 && line.keys[0].keyAndSalt.first == "B" && lines(answer).count == 1)
        #expect(text.hasPrefix(line.suite))
    }

    @Test func `RTCP is left unencrypted only where nothing else fits, and the answer says so`() throws {
        let clear = "1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key) UNENCRYPTED_SRTCP"
        var side = Self.side("B")
        try side.receiveOffer(description(clear, "2 AES_CM_128_HMAC_SHA1_32 inline:\(Self.key)"))
        #expect(try lines(side.makeAnswer()).map(\.tag) == [2])
        side = Self.side("B")
        try side.receiveOffer(description(clear))
        let line = try #require(lines(side.makeAnswer()).first)
        #expect(line.parameters == ["UNENCRYPTED_SRTCP"] && line.encryptsControl == false)
    }

    @Test func `the identifier of a key is in the answer`() throws {
        var side = Self.side("B")
        try side.receiveOffer(description("1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)|2^20|258:3"))
        #expect(try lines(side.makeAnswer()).first?.value.hasSuffix("|258:3") == true)
    }

    @Test(arguments: [
        "1 AES_CM_128_HMAC_SHA1_80 inline:KEY", "5 AES_CM_128_HMAC_SHA1_80 inline:KEY",
        "2 AES_CM_128_HMAC_SHA1_32 inline:KEY", "2 AES_CM_128_HMAC_SHA1_80 inline:KEY FEC_KEY=x",
        "2 AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTCP", "2 AES_CM_128_HMAC_SHA1_80 inline:KEYA",
    ])
    func `an answer that does not fit the offer is refused, and the offer goes on waiting`(text: String) throws {
        var side = Self.side("A")
        _ = try side.makeOffer()
        let answer = try description(text.replacing("KEY", with: Self.key))
        let error = #expect(throws: SDPError.self) { try side.receiveAnswer(answer) }
        #expect(error?.code == .answerDoesNotFit && error?.message.contains("key") == true)
        #expect(side.agreed == nil && side.state == .ourOffer)
        #expect(throws: SDPError.self) { try side.receiveAnswer(description()) }
        #expect(try side.receiveAnswer(description("2 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)")).audio?.keys != nil)
    }

    @Test func `who wants keys takes no sound in the clear, and who has none no secured sound`() throws {
        var (secured, plain) = (Self.side("A"), Self.plain())
        try plain.receiveOffer(SessionDescription(parsing: secured.makeOffer().description))
        #expect(throws: SDPError.self) { _ = try plain.makeAnswer() }
        secured.rollBack()
        plain.rollBack()
        try secured.receiveOffer(SessionDescription(parsing: plain.makeOffer().description))
        #expect(throws: SDPError.self) { _ = try secured.makeAnswer() }
        secured.rollBack()
        // Keys on a line that travels in the clear secure nothing.
        try secured.receiveOffer(description("1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)", transport: "RTP/AVP"))
        #expect(throws: SDPError.self) { _ = try secured.makeAnswer() }
    }

    @Test func `of a secured and a plain line of one audio the secured one is taken`() throws {
        let text =
            "v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\nm=audio 5000 RTP/AVP 0\r\n"
            + "m=audio 5000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)\r\n"
        var side = Self.side("B")
        try side.receiveOffer(SessionDescription(parsing: text))
        let answer = try side.makeAnswer()
        #expect(answer.media.map { $0.port == 0 } == [true, false] && answer.media[0].keyingAttributes.isEmpty)
        #expect(side.agreed?.audio?.lineIndex == 1 && side.agreed?.audio?.keys?.remote.tag == 1)
    }
}
