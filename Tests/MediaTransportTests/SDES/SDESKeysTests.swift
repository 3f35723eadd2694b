import CallBasics
import Cryptography
import SDP
import TestSupport
import Testing

@testable import MediaTransport

/// Two sides that agree on keys by their descriptions.
@Suite struct SDESKeysTests {
    private var generator = SeededGenerator(seed: 5)

    private mutating func side(_ number: UInt64) -> OfferAnswer {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        var medium = MediaConfiguration(port: 4000, formats: [format])
        medium.secure(by: SDESKeys(using: &generator))
        let configuration = SessionConfiguration(address: "192.0.2.\(number)", media: [medium])
        return OfferAnswer(configuration: configuration, sessionID: number)
    }

    private func description(_ line: String) throws -> SessionDescription {
        try SessionDescription(
            parsing:
                "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 5000 RTP/SAVP 0\r\n"
                + "a=crypto:\(line)\r\n"
        )
    }

    private func agreement(_ side: OfferAnswer) throws -> SDESAgreement {
        let keys = try #require(side.agreed?.audio?.keys)
        return try #require(SDESAgreement(keys))
    }

    private func expectSound(from sender: SRTPKeys, to receiver: SRTPKeys) throws {
        var out = SRTPSender(sender)
        var into = SRTPReceiver(receiver)
        #expect(try into.unprotected(out.protected(Packets.media(3))) == Packets.media(3))
        #expect(try into.unprotectedControl(out.protectedControl(Packets.control())) == Packets.control())
    }

    @Test mutating func `the preferred suite is agreed on, with a key of each side`() throws {
        var (caller, callee) = (side(1), side(2))
        let offer = try SessionDescription(parsing: caller.makeOffer().description)
        let offered = offer.media[0].keyingAttributes.cryptoLines
        #expect(offered.map(\.suite) == SDESKeys.offeredSuites.map(\.rawValue) && offered.map(\.tag) == [1, 2, 3, 4])
        try callee.receiveOffer(offer)
        try caller.receiveAnswer(SessionDescription(parsing: callee.makeAnswer().description))
        let (ours, theirs) = try (agreement(caller), agreement(callee))
        #expect(ours.suite == .aes128GCM && theirs.suite == .aes128GCM)
        try expectSound(from: ours.sending, to: theirs.receiving)
        try expectSound(from: theirs.sending, to: ours.receiving)
        #expect(!ours.sending.master.equals(ours.receiving.master))
    }

    @Test(arguments: SRTPSuite.allCases) mutating func `each suite is answered`(suite: SRTPSuite) throws {
        let key = SRTPMasterKey(suite, using: &generator)
        var callee = side(2)
        try callee.receiveOffer(description("7 \(suite.rawValue) inline:\(Base64.encode(key.keyAndSalt))|2^31"))
        let line = try #require(callee.makeAnswer().media[0].keyingAttributes.cryptoLines.first)
        let agreement = try agreement(callee)
        #expect(line.tag == 7 && line.suite == suite.rawValue && agreement.suite == suite)
        try expectSound(from: SRTPKeys(key), to: agreement.receiving)
        let own = try #require(Base64.decode(line.keys[0].keyAndSalt))
        let master = try #require(SRTPMasterKey(suite, keyAndSalt: own))
        try expectSound(from: agreement.sending, to: SRTPKeys(master))
    }

    private static let key = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"

    @Test mutating func `the identifier of a key is in packets both ways`() throws {
        var callee = side(2)
        try callee.receiveOffer(description("1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)|2^20|258:3"))
        _ = try callee.makeAnswer()
        let agreement = try agreement(callee)
        #expect(agreement.sending.identifier == [0, 1, 2] && agreement.receiving.identifier == [0, 1, 2])
    }

    @Test mutating func `RTCP that was agreed to be unencrypted is that both ways`() throws {
        var callee = side(2)
        try callee.receiveOffer(description("1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key) UNENCRYPTED_SRTCP"))
        _ = try callee.makeAnswer()
        let agreement = try agreement(callee)
        #expect(!agreement.sending.encryptsControl && !agreement.receiving.encryptsControl)
    }

    @Test mutating func `a secured medium travels by nothing else`() {
        let medium = side(1).configuration.media[0]
        #expect(medium.protocols.allSatisfy(\.hasKeysInDescription) && medium.answeringKeys.count == 2)
        let suites = (medium.keys + medium.answeringKeys).map(\.suite)
        #expect(Set(suites) == Set(SRTPSuite.allCases.map(\.rawValue)))
    }

    @Test mutating func `no key is in what is printed of an agreement`() throws {
        var callee = side(2)
        try callee.receiveOffer(description("1 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)"))
        _ = try callee.makeAnswer()
        var dumped = ""
        dump(try agreement(callee), to: &dumped)
        let first = try #require(Base64.decode(Self.key))
        #expect(!dumped.contains("\(first[0]), \(first[1])") && !dumped.contains(Self.key))
        #expect(!dumped.contains("- \(first[0])\n"))
    }
}
