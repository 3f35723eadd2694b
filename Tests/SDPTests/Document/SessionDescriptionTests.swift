import Testing

@testable import SDP

@Suite struct SessionDescriptionTests {
    /// The example of RFC 8866, section 5, with lines that nobody knows, and values that are not used here.
    static let lines = [
        "v=0", "o=jdoe 3724394400 3724394405 IN IP4 198.51.100.1", "s=Call to John Smith", "i=SDP Offer #1",
        "u=http://www.jdoe.example.com/home.html", "e=Jane Doe <jane@jdoe.example.com>", "p=+1 617 555-6011",
        "c=IN IP4 198.51.100.1", "b=X-YZ:128", "t=0 0", "r=7d 1h 0 25h", "z=2882844526 -1h 2898848070 0", "k=prompt",
        "a=recvonly", "a=x-unknown:a:b = c ", "A=upper", "$=odd",
        "m=audio 49170 RTP/AVP 0", "i=title", "q=x", "m=audio 49180 RTP/AVP 0",
        "m=video 51372/2 RTP/AVP 99", "c=IN IP6 2001:db8::2", "a=rtpmap:99 h263-1998/90000", "a=", "a=:", "s=",
    ]

    @Test(arguments: ["\r\n", "\n", "\r", "\n\r", "\r\n\r\n", "\n  \t"])
    func `every line is written as it was read, whatever ended it`(end: String) throws {
        let text = Self.lines.joined(separator: end)
        for suffix in ["", end] {
            let description = try SessionDescription(parsing: text + suffix)
            #expect(description.texts == Self.lines)
            #expect(try SessionDescription(parsing: description.description) == description)
            #expect(description.byteCount == description.bytes.count)
            #expect(description.media.count == 3)
        }
    }

    @Test func `bytes that are not UTF-8 stay`() throws {
        let bytes =
            Array("v=0\r\ns=".utf8) + [0xE9, 0xFF, 0x09, 0x01, 0x80] + Array("\r\nm=audio 1 RTP/AVP 0\r\n".utf8)
        #expect(try SessionDescription(parsing: bytes).bytes == bytes)
    }

    @Test func `blanks before a type and before the equals sign are left out, others stay`() throws {
        let description = try SessionDescription(parsing: " v=0\n\ts =a  b \nm\t=audio 1 RTP/AVP 0\n")
        #expect(description.texts == ["v=0", "s=a  b ", "m=audio 1 RTP/AVP 0"])
    }

    @Test func `what is no line is left out`() throws {
        let description = try SessionDescription(parsing: "hello\n=x\nv\n\u{FEFF}v=0\nab=c\na b=c\nv=0\n")
        #expect(description.texts == ["v=0"])
    }

    @Test(arguments: ["", "\r\n\r\n", "hello", "==", " = "]) func `a text without a line is refused`(text: String) {
        #expect(failure { () throws(SDPError) in try SessionDescription(parsing: text) }?.code == .notADescription)
    }

    @Test func `NUL is refused with its place`() {
        let found = failure { () throws(SDPError) in try SessionDescription(parsing: "v=0\ns=a\u{0}b\n") }
        #expect(found?.code == .invalidCharacter)
        #expect(found?.message.contains("Byte 7") ?? false)
    }

    @Test func `each limit is kept, and nothing below it is refused`() throws {
        func attributes(_ count: Int) -> String { String(repeating: "a=x\n", count: count) }
        func media(_ count: Int) -> String { String(repeating: "m=audio 1 RTP/AVP 0\n", count: count) }
        func padded(_ count: Int) -> String {
            "v=0\n" + String(repeating: "s", count: 1) + "=" + String(repeating: "x", count: count - 6)
        }
        let cases: [(String, String)] = [
            (padded(65_536), padded(65_537)),
            (String(repeating: "i=\n", count: 2000), String(repeating: "i=\n", count: 2001)),
            (media(16), media(17)),
            (attributes(512) + media(1) + attributes(512), attributes(513)),
            (attributes(512) + media(1) + attributes(512), media(1) + attributes(513)),
            (
                "m=audio 1 RTP/AVP" + String(repeating: " 0", count: 128),
                "m=audio 1 RTP/AVP" + String(repeating: " 0", count: 129)
            ),
        ]
        for (allowed, refused) in cases {
            _ = try SessionDescription(parsing: allowed)
            #expect(failure { () throws(SDPError) in try SessionDescription(parsing: refused) }?.code == .limitExceeded)
        }
    }

    /// What 65,536 bytes can cost at most: lines share the bytes of one copy, and there are 2000 at most.
    @Test func `a line costs less than 64 times its bytes`() {
        let shortest = "a=\n".utf8.count
        // Twice, because an array that grows may have as much in reserve.
        #expect(2 * MemoryLayout<DescriptionLine>.stride + shortest <= 64 * shortest)
        #expect(2 * MemoryLayout<[DescriptionLine]>.stride <= 64 * "m=\n".utf8.count)
    }

    @Test func `the session's lines have their views`() throws {
        let description = try SessionDescription(
            parsing: "v=0\no=- 18446744069414584320 18446462598732840960 IN IP6 ::1\ns=A call\nt=1 2\n"
                + "a=group:BUNDLE 0 1\na=ice-lite\n"
        )
        let origin = SessionOrigin(
            userName: "-",
            sessionID: "18446744069414584320",
            version: "18446462598732840960",
            address: "::1"
        )
        #expect(description.origin == origin && description.sessionName == "A call" && description.times == "1 2")
        #expect(description.groups.map(\.identifiers) == [["0", "1"]] && description.groups[0].semantics == "BUNDLE")
        #expect(description.attributes == [SDPAttribute("group", "BUNDLE 0 1"), SDPAttribute("ice-lite")])
        #expect(description.media.isEmpty)
    }

    @Test(arguments: ["t=x 0", "t=0", "t=0 0 0", "t=", "s=x"]) func `a time that is none is one without end`(
        line: String
    ) throws {
        #expect(try SessionDescription(parsing: line).times == "0 0")
    }

    @Test func `a description may lack everything`() throws {
        let description = try SessionDescription(parsing: "m=")
        #expect(description.origin == nil && description.sessionName == nil && description.protocolVersion == nil)
        let medium = try #require(description.media.first)
        #expect(medium.kind.isEmpty && medium.port == 0 && medium.formats.isEmpty && medium.host == nil)
        #expect(!medium.isWellFormed && medium.direction == .sendReceive)
    }

    @Test(arguments: 0..<10)
    func `what would be two lines, or holds a control character, is not written`(field: Int) {
        for evil in ["\r\na=evil", "\na=evil", "\ra=evil", "\u{0}", "\u{1}", "\u{7F}", "\t"] {
            var configuration = SessionConfiguration.audio()
            switch field {
            case 0: configuration.address += evil
            case 1: configuration.userName += evil
            case 2: configuration.sessionName += evil
            case 3: configuration.attributes = [SDPAttribute("x", evil)]
            case 4: configuration.attributes = [SDPAttribute("x" + evil)]
            case 5: configuration.media[0].attributes = [SDPAttribute("x", evil)]
            case 6: configuration.media[0].kind += evil
            case 7: configuration.media[0].protocols = [.other("RTP/AVP" + evil)]
            case 8: configuration.media[0].formats[0].encodingName += evil
            default: configuration.media[0].formats[0].parameters = evil
            }
            var session = OfferAnswer(configuration)
            let found = failure { () throws(SDPError) in try session.makeOffer() }
            #expect(found?.code == .invalidCharacter || found?.code == .invalidConfiguration)
            #expect(found?.message.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } ?? false, "\(found?.message ?? "")")
            #expect(session.state == .stable)
        }
    }

    @Test func `blanks in a word are refused, in a text they stay`() throws {
        var session = OfferAnswer(.audio(address: "a b"))
        #expect(failure { () throws(SDPError) in try session.makeOffer() }?.code == .invalidConfiguration)
        session.configuration.address = "fe80::1%eth0"
        session.configuration.sessionName = "A call"
        let offer = try session.makeOffer()
        #expect(offer.texts[2...3] == ["s=A call", "c=IN IP6 fe80::1"])
    }

    @Test func `numbers that no description can have are refused`() {
        let changes: [(inout MediaConfiguration) -> Void] = [
            { $0.packetTime = 0 }, { $0.packetTime = 10_001 }, { $0.maximumPacketTime = -1 }, { $0.maximumBitRate = 0 },
            { $0.formats = [] }, { $0.formats[0].clockRate = 0 }, { $0.formats[0].channelCount = 256 },
            { $0.formats = Array(repeating: .pcmu, count: 129) }, { $0.attributes = [SDPAttribute("rtpmap", "0 X/1")] },
            { $0.attributes = [SDPAttribute("SendRecv")] }, { $0.attributes = [SDPAttribute("a:b", "c")] },
            { $0.attributes = [SDPAttribute("")] },
        ]
        for change in changes {
            var session = OfferAnswer(.audio(.phone, change))
            #expect(failure { () throws(SDPError) in try session.makeOffer() }?.code == .invalidConfiguration)
        }
    }

    @Test func `what is announced keeps its numbers`() throws {
        let sound = PayloadFormat(payloadType: 77, encodingName: "PCMA", clockRate: 8000)
        var medium = MediaConfiguration(port: 5004, formats: [sound, PayloadFormat(redundant: sound, payloadType: 5)])
        medium.direction = .sendOnly
        medium.isMultiplexed = false
        medium.packetTime = 20
        let configuration = SessionConfiguration(address: "192.0.2.7", media: [medium])
        let announced = try SessionDescription(announcing: configuration, sessionID: 42)
        #expect(
            announced.description == """
                v=0\r
                o=- 42 1 IN IP4 192.0.2.7\r
                s=-\r
                c=IN IP4 192.0.2.7\r
                t=0 0\r
                m=audio 5004 RTP/AVP 77 5\r
                a=rtpmap:77 PCMA/8000\r
                a=rtpmap:5 red/8000\r
                a=fmtp:5 77/77\r
                a=ptime:20\r
                a=sendonly\r

                """
        )
    }
}
