import Testing

@testable import SDP

/// Certificates and roles of DTLS in descriptions: what is offered, what is answered, and when an association goes on.
@Suite struct CertificateFitTests {
    private static func fingerprint(_ byte: UInt8) -> Fingerprint {
        Fingerprint(hash: "sha-256", bytes: [UInt8](repeating: byte, count: 32))
    }

    private static func side(_ byte: UInt8, _ name: String? = nil) -> OfferAnswer {
        var medium = MediaConfiguration(port: 4000, formats: [.pcmu])
        medium.protocols = [.dtlsSAVP, .dtlsSAVPF]
        medium.certificate = OwnCertificate(fingerprint(byte), associationID: name ?? String(repeating: "x", count: 20))
        return OfferAnswer(configuration: SessionConfiguration(address: "192.0.2.1", media: [medium]), sessionID: 1)
    }

    private static func description(
        _ attributes: String,
        before: String = "",
        transport: String = "UDP/TLS/RTP/SAVP"
    ) throws -> SessionDescription {
        try SessionDescription(
            parsing: "v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\n\(before)"
                + "m=audio 5000 \(transport) 0\r\n\(attributes)"
        )
    }

    private static func lines(_ byte: UInt8, _ role: String?, _ name: String? = nil) -> String {
        "a=fingerprint:\(fingerprint(byte).value)\r\n" + (role.map { "a=setup:\($0)\r\n" } ?? "")
            + (name.map { "a=tls-id:\($0)\r\n" } ?? "")
    }

    private func exchange(
        _ a: inout OfferAnswer,
        _ b: inout OfferAnswer,
        _ scope: OfferAnswer.Scope = .everything
    ) throws -> (a: AgreedAssociation, b: AgreedAssociation) {
        try b.receiveOffer(SessionDescription(parsing: a.makeOffer(scope).description))
        try a.receiveAnswer(SessionDescription(parsing: b.makeAnswer().description))
        return try (#require(a.agreed?.audio?.association), #require(b.agreed?.audio?.association))
    }

    @Test func `who offers leaves the role open, who answers is active, and both know the other's certificate`() throws
    {
        var (a, b) = (Self.side(1), Self.side(2))
        let (ours, theirs) = try exchange(&a, &b)
        let session = try #require(a.agreed)
        #expect(session.local.media[0].keyingAttributes.setupRole == .activeOrPassive)
        #expect(session.remote.media[0].keyingAttributes.setupRole == .active)
        #expect(session.local.description.contains("a=fingerprint:sha-256 01:01:01:"))
        #expect(session.local.description.contains("a=tls-id:xxxxxxxxxxxxxxxxxxxx\r\n"))
        #expect(session.audio?.transport == .dtlsSAVP && session.audio?.keys == nil)
        #expect(ours.role == .passive && ours.fingerprints == [Self.fingerprint(2)])
        #expect(theirs.role == .active && theirs.fingerprints == [Self.fingerprint(1)])
    }

    @Test func `an association goes on over offers of either side, whoever answers`() throws {
        var (a, b) = (Self.side(1), Self.side(2))
        let first = try exchange(&a, &b)
        a.configuration.hold = .withMusic
        #expect(try exchange(&a, &b, .agreedFormats) == first)
        let turned = try exchange(&b, &a)
        #expect(turned.a == first.b && turned.b == first.a)
        #expect(a.agreed?.local.media[0].keyingAttributes.setupRole == .passive)
        #expect(try exchange(&a, &b) == first)
    }

    @Test func `another certificate or another name is another association`() throws {
        var (a, b) = (Self.side(1), Self.side(2))
        let first = try exchange(&a, &b)
        a.configuration.media[0].certificate?.associationID = String(repeating: "y", count: 20)
        let second = try exchange(&a, &b)
        #expect(second.a != first.a && second.b != first.b)
        b.configuration.media[0].certificate?.fingerprint = Self.fingerprint(3)
        let third = try exchange(&b, &a)
        #expect(third.b.fingerprints == [Self.fingerprint(3)] && third.b != second.a)
    }

    @Test func `who gives the association no name is answered without one, and it goes on over offers of either side`()
        throws
    {
        var side = Self.side(1)
        try side.receiveOffer(Self.description(Self.lines(2, "actpass")))
        let answer = try side.makeAnswer()
        #expect(!answer.description.contains("tls-id"))
        let first = try #require(side.agreed?.audio?.association)
        #expect(try side.makeOffer().description.contains("tls-id"))
        // The same certificate by another hash, too, before it and behind it.
        let other = "a=fingerprint:sha-512 \([String](repeating: "07", count: 64).joined(separator: ":"))\r\n"
        try side.receiveAnswer(Self.description(Self.lines(2, "passive")))
        #expect(side.agreed?.audio?.association == first)
        for lines in [other + Self.lines(2, "passive"), Self.lines(2, "passive") + other] {
            _ = try side.makeOffer()
            try side.receiveAnswer(Self.description(lines))
        }
        let last = try #require(side.agreed?.audio?.association)
        _ = try side.makeOffer()
        try side.receiveAnswer(Self.description(other + Self.lines(2, "passive")))
        #expect(last != first && side.agreed?.audio?.association == last)
    }

    /// What is offered, and the role that answers it; nil for none.
    @Test(
        arguments: [
            ("actpass", SetupRole.active), ("ACTIVE", .passive), ("passive", .active), (nil, .passive),
            ("holdconn", nil),
        ] as [(String?, SetupRole?)]
    )
    func `roles are answered`(offered: String?, answered: SetupRole?) throws {
        var side = Self.side(1)
        try side.receiveOffer(Self.description(Self.lines(2, offered)))
        guard let answered else {
            let error = #expect(throws: SDPError.self) { _ = try side.makeAnswer() }
            #expect(error?.code == .notAcceptable && error?.message.contains("who begins DTLS") == true)
            return
        }
        #expect(try side.makeAnswer().media[0].keyingAttributes.setupRole == answered)
        #expect(side.agreed?.audio?.association?.role == answered)
    }

    /// What is answered, and the role of who offered; nil when it is no answer.
    @Test(
        arguments: [
            ("active", SetupRole.passive), ("passive", .active), (nil, .active), ("actpass", nil), ("holdconn", nil),
        ] as [(String?, SetupRole?)]
    )
    func `answers are judged`(answered: String?, role: SetupRole?) throws {
        var side = Self.side(1)
        _ = try side.makeOffer()
        let answer = try Self.description(Self.lines(2, answered))
        guard let role else {
            let error = #expect(throws: SDPError.self) { try side.receiveAnswer(answer) }
            #expect(error?.code == .answerDoesNotFit && error?.message.contains("or no role") == true)
            return
        }
        #expect(try side.receiveAnswer(answer).audio?.association?.role == role)
    }

    @Test(arguments: [
        "", "a=fingerprint:sha-1 01:02:03\r\n", "a=fingerprint:md5 01\r\n", "a=fingerprint:sha-256 01:02\r\n",
        "a=fingerprint:sha-256\r\n",
    ])
    func `a certificate that cannot be known is not taken`(line: String) throws {
        var side = Self.side(1)
        try side.receiveOffer(Self.description(line + "a=setup:actpass\r\n"))
        let error = #expect(throws: SDPError.self) { _ = try side.makeAnswer() }
        #expect(error?.code == .notAcceptable && error?.message.contains("no fingerprint") == true)
        var other = Self.side(1)
        _ = try other.makeOffer()
        #expect(throws: SDPError.self) { try other.receiveAnswer(Self.description(line + "a=setup:active\r\n")) }
    }

    @Test func `one of several fingerprints is enough, and the session may tell it for all`() throws {
        var side = Self.side(1)
        let before = "a=fingerprint:sha-1 01:02\r\n" + Self.lines(2, "actpass")
        try side.receiveOffer(Self.description("", before: before, transport: "UDP/TLS/RTP/SAVPF"))
        let answer = try side.makeAnswer()
        #expect(answer.media[0].transport == .dtlsSAVPF)
        #expect(side.agreed?.audio?.association?.fingerprints == [Self.fingerprint(2)])
    }

    @Test func `what is secured by DTLS is not offered or taken otherwise`() throws {
        var side = Self.side(1)
        for transport in ["RTP/AVP", "RTP/SAVP"] {
            try side.receiveOffer(Self.description(Self.lines(2, "actpass"), transport: transport))
            #expect(throws: SDPError.self) { _ = try side.makeAnswer() }
            side.rollBack()
        }
        #expect(try side.makeOffer().media[0].transport == .dtlsSAVP)
    }

    // MARK: What it began with

    private static let transports = [MediaProtocol.dtlsSAVP, .rtpSAVP, .rtpAVP]

    @Test(arguments: transports)
    func `a medium that keeps its keying goes on as it began, and so does a session in its place`(
        _ first: MediaProtocol
    ) throws {
        var side = Self.side(1)
        (side.configuration.media[0].protocols, side.configuration.media[0].keepsKeying) = (Self.transports, true)
        try side.receiveOffer(Self.description(Self.lines(2, "actpass"), transport: first.name))
        _ = try side.makeAnswer()
        #expect(side.agreed?.audio?.transport == first)
        for other in Self.transports where other != first {
            try side.receiveOffer(Self.description(Self.lines(2, "actpass"), transport: other.name))
            #expect(throws: SDPError.self) { _ = try side.makeAnswer() }
            side.rollBack()
        }
        #expect(try side.makeOffer().media[0].transport == first)
        var generator = SystemRandomNumberGenerator()
        var wishes = side.wishes(ofSuccessor: side.configuration, using: &generator)
        #expect(wishes.media[0].protocols == [first])
        side.configuration.media[0].keepsKeying = false
        wishes = side.wishes(ofSuccessor: side.configuration, using: &generator)
        #expect(wishes.media[0].protocols == Self.transports)
    }
}
