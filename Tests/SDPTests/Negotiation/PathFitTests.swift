import CallBasics
import Testing

@testable import SDP

/// ICE and BUNDLE in descriptions: what this side, which only answers checks, tells and agrees on.
@Suite struct PathFitTests {
    private static let own = ICECredentials(userFragment: "ours", password: "password-of-our-own-side")

    private static func side(at address: String = "192.0.2.1", ice: ICECredentials? = own) -> OfferAnswer {
        var medium = MediaConfiguration(port: 4000, formats: [.pcmu])
        medium.ice = ice.map { OwnICE($0) }
        return OfferAnswer(configuration: SessionConfiguration(address: address, media: [medium]), sessionID: 1)
    }

    private static let browser = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=ice-options:trickle\r\n"

    /// An offer of audio with `attributes`, behind session lines and before other media.
    private static func offer(
        _ attributes: String,
        before: String = "",
        behind: String = "",
        host: String = "0.0.0.0"
    ) throws -> SessionDescription {
        try SessionDescription(
            parsing: "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\(before)m=audio 9 RTP/AVP 0\r\n"
                + "c=IN IP4 \(host)\r\n\(attributes)\(behind)"
        )
    }

    private static func answer(_ offer: SessionDescription) throws -> (text: String, audio: AgreedMedia) {
        var side = side()
        try side.receiveOffer(offer)
        let text = try side.makeAnswer().description
        return (text, try #require(side.agreed?.audio))
    }

    @Test func `an offer tells the own address, and that checks are only answered`() throws {
        var side = Self.side()
        let text = try side.makeOffer().description
        let (session, media) = try #require(text.firstRange(of: "m=audio")).split(text)
        #expect(session.contains("a=ice-lite\r\na=ice-options:ice2\r\n") && !media.contains("ice-lite"))
        #expect(media.contains("a=ice-ufrag:ours\r\na=ice-pwd:password-of-our-own-side\r\n"))
        #expect(media.contains("a=candidate:1 1 UDP 2130706431 192.0.2.1 4000 typ host\r\na=end-of-candidates\r\n"))
        let candidates = try SessionDescription(parsing: text).media[0].keyingAttributes.candidates
        #expect(candidates.map(\.port) == [4000] && candidates.allSatisfy { $0.kind == "host" })
        try side.receiveAnswer(Self.offer(Self.browser + "a=rtcp-mux\r\n"))
        let agreed = try #require(side.agreed?.audio?.ice)
        #expect(agreed.session.local == Self.own && agreed.session.remote.userFragment == "abcd")
    }

    @Test func `an answer on one port tells one address, and the browser may not have one yet`() throws {
        let (text, audio) = try Self.answer(Self.offer(Self.browser + "a=rtcp-mux\r\n"))
        #expect(text.contains("a=candidate:1 1 UDP 2130706431 192.0.2.1 4000 typ host\r\na=end-of-candidates\r\n"))
        #expect(text.contains("a=ice-lite\r\n") && !text.contains("4001"))
        #expect(audio.ice?.session.remote.password == "0123456789012345678901")
        #expect(audio.remote == nil && !audio.isHeldRemotely && audio.direction == .sendReceive)
    }

    @Test func `who has RTCP on a port of its own is answered without ICE, and has none by its answer`() throws {
        #expect(try !Self.answer(Self.offer(Self.browser)).text.contains("ice-"))
        var side = Self.side()
        _ = try side.makeOffer()
        #expect(try side.receiveAnswer(Self.offer(Self.browser)).audio?.ice == nil)
    }

    @Test(arguments: [
        "", "a=ice-ufrag:abcd\r\n", browser + "a=ice-mismatch\r\n", browser + "a=ice-lite\r\n",
        "a=ice-ufrag:abc\r\na=ice-pwd:0123456789012345678901\r\n",
        "a=ice-ufrag:abcd\r\na=ice-pwd:012345678901234567890\r\n",
        "a=ice-ufrag:abcd\r\na=ice-pwd:\(String(repeating: "x", count: 257))\r\n",
    ])
    func `who checks nothing is answered without ICE`(_ attributes: String) throws {
        let (text, audio) = try Self.answer(Self.offer(attributes + "a=rtcp-mux\r\n", host: "192.0.2.2"))
        #expect(!text.contains("ice-") && !text.contains("candidate"))
        #expect(audio.ice == nil && audio.remote?.host == "192.0.2.2")
    }

    @Test func `without credentials of our own there is no ICE`() throws {
        var side = Self.side(ice: nil)
        try side.receiveOffer(Self.offer(Self.browser + "a=rtcp-mux\r\n", host: "192.0.2.2"))
        #expect(try !side.makeAnswer().description.contains("ice-"))
        #expect(side.agreed?.audio?.ice == nil)
    }

    @Test func `an address of IPv6 is told without its zone`() throws {
        var side = Self.side(at: "fe80::1%eth0")
        #expect(try side.makeOffer().description.contains("UDP 2130706431 fe80::1 4000 typ host\r\n"))
    }

    // MARK: A side that looks for the way

    /// A side that checks ways itself, whose ports are seen from outside as others.
    private static func full(mapped: SocketAddress? = SocketAddress(ipv4: 0xCB00_7109, port: 7)) -> OfferAnswer {
        var side = side()
        var ice = OwnICE(own, isFull: true)
        ice.mapped = mapped
        ice.controlMapped = mapped.map { $0.with(port: $0.port + 1) }
        side.configuration.media[0].ice = ice
        return side
    }

    @Test func `an offer tells each port, as it is and as it is seen, and nothing of answering alone`() throws {
        var side = Self.full()
        let text = try side.makeOffer().description
        #expect(text.contains("a=ice-options:ice2\r\n") && !text.contains("ice-lite"))
        let candidates = try SessionDescription(parsing: text).media[0].keyingAttributes.candidates
        #expect(
            candidates.map { "\($0.foundation) \($0.component) \($0.kind) \($0.host) \($0.port)" } == [
                "1 1 host 192.0.2.1 4000", "2 1 srflx 203.0.113.9 7", "1 2 host 192.0.2.1 4001",
                "2 2 srflx 203.0.113.9 8",
            ]
        )
        #expect(candidates.map(\.priority) == [2_130_706_431, 1_694_498_815, 2_130_706_430, 1_694_498_814])
        #expect(candidates.map(\.relatedPort) == [nil, 4000, nil, 4001])
    }

    @Test func `an offer tells the addresses at a relay, with how that sees this side`() throws {
        var side = Self.full(mapped: nil)
        side.configuration.media[0].ice?.relayed = SocketAddress(ipv4: 0xC633_6401, port: 50_000)
        side.configuration.media[0].ice?.controlRelayed = SocketAddress(ipv4: 0xC633_6401, port: 50_001)
        side.configuration.media[0].ice?.mapped = SocketAddress(ipv4: 0xCB00_7109, port: 7)
        var moved = side
        let candidates = try side.makeOffer().media[0].keyingAttributes.candidates.filter { $0.kind == "relay" }
        #expect(
            candidates.map { "\($0.foundation) \($0.component) \($0.host) \($0.port)" } == [
                "3 1 198.51.100.1 50000", "3 2 198.51.100.1 50001",
            ]
        )
        #expect(candidates.map(\.priority) == [16_777_215, 16_777_214])
        #expect(candidates.map(\.relatedPort) == [7, 4001])
        moved.configuration.media[0].ice?.takeServers(of: nil)
        let kinds = try moved.makeOffer().media[0].keyingAttributes.candidates.map(\.kind)
        #expect(kinds == ["host", "host"])
    }

    @Test(arguments: [true, false]) func `an answer tells RTCP's port where that is one of its own`(shares: Bool) throws
    {
        var side = Self.full(mapped: nil)
        try side.receiveOffer(Self.offer(Self.browser + (shares ? "a=rtcp-mux\r\n" : "")))
        let candidates = try side.makeAnswer().media[0].keyingAttributes.candidates
        #expect(candidates.map(\.component) == (shares ? [1] : [1, 2]))
        #expect(try #require(side.agreed?.audio?.ice).isFull)
    }

    private static func candidates(_ lines: [String]) -> String {
        lines.map { "a=candidate:1 \($0)\r\n" }.joined()
    }

    @Test func `the other side's addresses are those that can be reached from here`() throws {
        var side = Self.full()
        let told = Self.candidates([
            "1 udp 9 192.0.2.7 5000 typ host", "1 UDP 8 203.0.113.7 5000 typ srflx raddr 192.0.2.7 rport 5000",
            "2 UDP 7 192.0.2.7 5001 typ host", "1 TCP 9 192.0.2.7 9 typ host tcptype active",
            "1 UDP 9 2001:db8::7 5000 typ host",
            "1 UDP 9 0.0.0.0 5000 typ host", "1 UDP 9 ::ffff:0.0.0.0 5000 typ host",
            "1 UDP 9 ::ffff:224.0.0.251 5000 typ host", "1 UDP 9 224.0.0.1 5000 typ host",
            "1 UDP 9 127.0.0.1 5000 typ host",
            "1 UDP 9 f3a1.local 5000 typ host", "1 UDP 9 192.0.2.7 0 typ host", "1 UDP 9 192.0.2.7 5000 typ magic",
            "3 UDP 9 192.0.2.7 5002 typ host",
        ])
        try side.receiveOffer(Self.offer(Self.browser + told))
        _ = try side.makeAnswer()
        let ice = try #require(side.agreed?.audio?.ice)
        #expect(ice.candidates.map(\.address.description) == ["192.0.2.7:5000", "203.0.113.7:5000"])
        #expect(ice.ofControl.candidates.map(\.address.port) == [5001] && ice.ofControl.component == .control)
        #expect(ice.kind(of: ice.candidates[1].address) == .serverReflexive)
        #expect(ice.kind(of: ice.candidates[0].address.with(port: 1)) == .peerReflexive)
    }

    @Test func `more addresses than anybody has are not taken`() throws {
        var side = Self.full()
        let told = Self.candidates((1...200).map { "1 UDP 9 192.0.2.7 \($0) typ host" })
        try side.receiveOffer(Self.offer(Self.browser + told))
        _ = try side.makeAnswer()
        #expect(side.agreed?.audio?.ice?.candidates.count == 100)
    }

    @Test func `who has offered controls, and goes on to, but for a side that only answers`() throws {
        var side = Self.full()
        _ = try side.makeOffer()
        try side.receiveAnswer(Self.offer(Self.browser + "a=rtcp-mux\r\n"))
        #expect(try #require(side.agreed?.audio?.ice).isControlling)
        try side.receiveOffer(Self.offer(Self.browser + "a=rtcp-mux\r\n"))
        _ = try side.makeAnswer()
        #expect(try #require(side.agreed?.audio?.ice).isControlling)
        side = Self.full()
        try side.receiveOffer(Self.offer(Self.browser + "a=rtcp-mux\r\n"))
        _ = try side.makeAnswer()
        #expect(try !#require(side.agreed?.audio?.ice).isControlling)
        side = Self.full()
        try side.receiveOffer(Self.offer(Self.browser + "a=ice-lite\r\na=rtcp-mux\r\n"))
        _ = try side.makeAnswer()
        #expect(try #require(side.agreed?.audio?.ice).isControlling)
    }

    @Test func `where there is a certificate, media by DTLS alone has ICE, offered and answered`() throws {
        var side = Self.full()
        side.configuration.media[0].certificate = OwnCertificate(
            Fingerprint(hash: "sha-256", bytes: [1]),
            associationID: "association-of-our-own-side"
        )
        side.configuration.media[0].protocols = [.rtpAVP, .dtlsSAVPF]
        var other = side
        let offer = try side.makeOffer().description
        #expect(!offer.contains("ice-") && !offer.contains("candidate") && !offer.contains("BUNDLE"))
        // Nor is it told that ICE has gone wrong there.
        let told = Self.browser + Self.candidates(["1 UDP 9 192.0.2.7 5000 typ host"]) + "a=rtcp-mux\r\n"
        let text = try Self.offer(told, host: "192.0.2.2").description.replacing("m=audio 9", with: "m=audio 5002")
        try other.receiveOffer(SessionDescription(parsing: text))
        #expect(try !other.makeAnswer().description.contains("ice-") && other.agreed?.audio?.ice == nil)
    }

    @Test(arguments: [
        ("192.0.2.7", 5000, true), ("192.0.2.7", 5002, false), ("198.51.100.9", 5000, false), ("0.0.0.0", 5002, true),
        ("198.51.100.9", 9, true), ("relay.example", 5002, true),
    ]) func `who has come to be described elsewhere than ICE says is told, and answered without`(
        host: String,
        port: Int,
        isTaken: Bool
    ) throws {
        let lines = Self.browser + Self.candidates(["1 UDP 9 192.0.2.7 5000 typ host"]) + "a=rtcp-mux\r\n"
        let text = try Self.offer(lines, host: host).description.replacing("m=audio 9", with: "m=audio \(port)")
        var side = Self.full()
        try side.receiveOffer(SessionDescription(parsing: text))
        let answer = try side.makeAnswer().description
        #expect(answer.contains("a=ice-mismatch") == !isTaken && answer.contains("a=ice-ufrag") == isTaken)
        #expect((side.agreed?.audio?.ice != nil) == isTaken)
        side = Self.full()
        _ = try side.makeOffer()
        #expect(try (side.receiveAnswer(SessionDescription(parsing: text)).audio?.ice != nil) == isTaken)
    }

    // MARK: BUNDLE

    private static let video = "m=video 9 RTP/AVP 96\r\nc=IN IP4 0.0.0.0\r\na=mid:v\r\na=rtpmap:96 VP8/90000\r\n"

    @Test func `the line that is taken is alone in its group`() throws {
        let lines = "a=mid:a\r\n\(Self.browser)a=rtcp-mux\r\n"
        let (text, _) = try Self.answer(Self.offer(lines, before: "a=group:BUNDLE v a\r\n", behind: Self.video))
        #expect(text.contains("a=group:BUNDLE a\r\n") && text.contains("a=mid:a\r\n"))
        #expect(text.contains("m=video 0 ") && !text.contains("a=mid:v"))
    }

    @Test func `an offer with ICE has its line in a group, and goes on by the name that the line has there`() throws {
        var side = Self.side()
        let offer = try side.makeOffer().description
        #expect(offer.contains("a=group:BUNDLE 0\r\n") && offer.contains("a=mid:0\r\n"))
        side = Self.side()
        try side.receiveOffer(Self.offer("a=mid:a\r\n\(Self.browser)a=rtcp-mux\r\n", before: "a=group:BUNDLE a\r\n"))
        _ = try side.makeAnswer()
        let next = try side.makeOffer().description
        #expect(next.contains("a=group:BUNDLE a\r\n") && next.contains("a=mid:a\r\n"))
        side = Self.side(ice: nil)
        #expect(try !side.makeOffer().description.contains("a=mid"))
    }

    @Test func `a line that attributes name, or that is off, is in no group`() throws {
        var side = Self.side()
        side.configuration.media[0].attributes = [SDPAttribute("mid", "own")]
        let lines = "a=mid:a\r\n\(Self.browser)a=rtcp-mux\r\n"
        try side.receiveOffer(Self.offer(lines, before: "a=group:BUNDLE a\r\n"))
        let answer = try side.makeAnswer().description
        #expect(!answer.contains("a=group") && answer.ranges(of: "a=mid:").count == 1)
        side = Self.side()
        _ = try side.makeOffer()
        try side.receiveAnswer(
            SessionDescription(parsing: Self.offer("").description.replacing("m=audio 9", with: "m=audio 0"))
        )
        #expect(try !side.makeOffer(.agreedFormats).description.contains("a=group"))
    }

    @Test(arguments: ["a=group:LS a v\r\n", "a=group:BUNDLE v\r\n", ""])
    func `a line that is in no such group is not in one here`(_ group: String) throws {
        let (text, _) = try Self.answer(Self.offer("a=mid:a\r\na=rtcp-mux\r\n", before: group, behind: Self.video))
        #expect(!text.contains("a=group") && !text.contains("a=mid"))
    }

    @Test func `a line with a port of its own for RTCP is in no group`() throws {
        let (text, _) = try Self.answer(Self.offer("a=mid:a\r\n", before: "a=group:BUNDLE a\r\n"))
        #expect(!text.contains("a=group"))
    }

    @Test func `a password is not shown`() {
        #expect(!"\(Self.own)".contains("password") && Mirror(reflecting: Self.own).children.isEmpty)
    }
}

extension Range<String.Index> {
    /// What is before it, and the rest.
    fileprivate func split(_ text: String) -> (String, String) {
        (String(text[..<lowerBound]), String(text[lowerBound...]))
    }
}
