import CallBasics
import Testing

@testable import SIP

@Suite struct SIPMessageTests {
    @Test func `a request gives its parts`() throws {
        let message = try SIPMessage(datagram: Messages.invite)
        _ = try message.validated()
        #expect(message.method == .invite)
        #expect(try message.requestURI().host == "biloxi.example.com")
        #expect(try message.list(.via, as: Via.self).count == 2)
        #expect(try message.topVia()?.transport.text == "TCP")
        #expect(try message.from()?.tag?.text == "9fxced76sl")
        #expect(try message.to()?.displayName?.text == "Bob, \"B\"")
        #expect(message.values(of: .route).map(\.text) == ["<sip:p1.example.com;lr>", "<sip:p2.example.com;lr>"])
        #expect(try message.tokens(of: .supported) == ["replaces", "100rel"])
        #expect(message.values(named: "x-UNKNOWN") == [";;,,;;,;"])
        #expect(try message.authentication(.authorization).count == 1)
        #expect(message.body == Array("v=0\r\n".utf8))
    }

    @Test func `what is written is strict and keeps unknown headers in their place`() throws {
        let written = try SIPMessage(datagram: Messages.invite).description
        let expected = Messages.lines(
            "INVITE sip:bob@biloxi.example.com SIP/2.0",
            "Via: SIP/2.0/TCP client.atlanta.example.com:5060;branch=z9hG4bK74bf9",
            "Via: SIP/2.0/UDP [2001:db8::1];branch=z9hG4b",
            "Max-Forwards: 70",
            "From: Alice <sip:alice@atlanta.example.com>;tag=9fxced76sl",
            "To: \"Bob, \\\"B\\\"\" <sip:bob@biloxi.example.com>",
            "Call-ID: 3848276298220188511@atlanta.example.com",
            "CSeq: 1 INVITE",
            "Route: <sip:p1.example.com;lr>",
            "Route: <sip:p2.example.com;lr>",
            "Contact: <sip:alice@client.atlanta.example.com;transport=tcp>;q=0.5",
            "Supported: replaces, 100rel",
            "X-Unknown: ;;,,;;,;",
            "Authorization: Digest username=\"a\", realm=\"r, x\", nc=00000001",
            "Content-Type: application/sdp",
            "Content-Length: 5",
            "",
            "v=0"
        )
        #expect(written == String(decoding: expected, as: UTF8.self))
    }

    @Test func `a response is read with compact names`() throws {
        let message = try SIPMessage(datagram: Messages.ok)
        _ = try message.validated()
        #expect(message.statusCode == 200)
        #expect(message.reasonPhrase == "OK")
        #expect(try message.topVia()?.responsePort == 5061)
        #expect(try message.topVia()?.received?.text == "192.0.2.9")
        #expect(try message.contacts().first?.expires() == 3600)
        #expect(throws: SIPError.self) { try message.requestURI() }
    }

    @Test func `every known name is found in each spelling`() {
        for name in HeaderName.allCases where name != .other {
            #expect(HeaderName(Bytes("\(name.canonical)")) == name)
            #expect(HeaderName(Bytes("\(name.canonical)".uppercased())) == name)
        }
        let compact: [(String, HeaderName)] = [
            ("i", .callID), ("m", .contact), ("e", .contentEncoding), ("l", .contentLength), ("c", .contentType),
            ("f", .from),
            ("s", .subject), ("k", .supported), ("t", .to), ("v", .via), ("o", .event), ("r", .referTo),
            ("b", .referredBy),
            ("u", .allowEvents), ("x", .sessionExpires), ("a", .acceptContact), ("j", .rejectContact),
            ("d", .requestDisposition), ("y", .identity), ("q", .other),
        ]
        for (letter, name) in compact {
            #expect(HeaderName(Bytes(letter)) == name)
            #expect(HeaderName(Bytes(letter.uppercased())) == name)
        }
    }

    @Test(arguments: [
        ("OPTIONS sip:a@b SIP/3.0", "OPTIONS", "", 505), ("OPTIONS soap.beep://a SIP/2.0", "OPTIONS", "", 416),
        ("OPTIONS sip:a@b;  lr SIP/2.0", "OPTIONS", "", 400), ("OPTIONS sip:a@b?Route=c SIP/2.0", "OPTIONS", "", 400),
        (Messages.options, "INVITE", "", 400), (Messages.options, "OPTIONS", "To: <sip:x@y>", 400),
        (Messages.options, "OPTIONS", "no header", 400), (Messages.options, "OPTIONS", "X: a\rb", 400),
        (Messages.options, "OPTIONS", "X: a\0b", 400), (Messages.options, "OPTIONS", "l: 1", 400),
        (Messages.options, "OPTIONS", "l: -1", 400), (Messages.options, "OPTIONS", "l: 0\r\nl: 0", 400),
        (Messages.options, "OPTIONS", "Max-Forwards: 256", 400),
        (Messages.options, "OPTIONS", "Expires: 4294967296", 400),
        (Messages.options, "OPTIONS", "Contact: <sip:a@b>;expires=4294967296", 400),
        (Messages.options, "OPTIONS", "Contact: \"a <sip:a@b>", 400),
        (Messages.options, "OPTIONS", "c: sdp", 400), ("OPTIONS  SIP/2.0", "OPTIONS", "", 400),
    ])
    func `a faulty request deserves its answer`(start: String, method: String, extra: String, status: Int) throws {
        let bytes =
            extra.isEmpty ? Messages.request(start, method: method) : Messages.request(start, method: method, extra)
        let message = try SIPMessage(datagram: bytes)
        let error = #expect(throws: SIPError.self) { try message.validated() }
        #expect(error?.code.statusCode == status)
        #expect(message.isAnswerable)
    }

    @Test func `a sound request is sound`() throws {
        _ = try SIPMessage(datagram: Messages.request()).validated()
        _ = try SIPMessage(datagram: Messages.request("OPTIONS tel:+1 SIP/2.0  ")).validated()
    }

    @Test(arguments: [
        "", "\r\n", "GET / HTTP/1.1\r\n\r\n", "SIP/2.0 20\r\n", "SIP/2.0 700 X\r\n", "SIP/2.0 2000 X\r\n",
        "INVITE\r\n\r\n",
    ])
    func `what is no message is told so`(text: String) {
        let error = #expect(throws: SIPError.self) { try SIPMessage(datagram: Array(text.utf8)) }
        #expect(error?.code == .notAMessage)
        #expect(error?.code.statusCode == nil)
    }

    @Test func `more than the limits is refused`() throws {
        let error = #expect(throws: SIPError.self) { try SIPMessage(datagram: Array(repeating: 65, count: 65_537)) }
        #expect(error?.code.statusCode == 513)
        func isRefused(_ extra: String) throws -> Bool {
            try SIPMessage(datagram: Messages.request(Messages.options, extra)).defect != nil
        }
        let line = "X: a\r\n"
        #expect(try !isRefused(String(repeating: line, count: 122) + "Y: b"))
        #expect(try isRefused(String(repeating: line, count: 123) + "Y: b"))
        #expect(try isRefused("X: a" + String(repeating: "\r\n b", count: 200)))
        #expect(try !isRefused("X: " + String(repeating: "a", count: 16_384)))
        #expect(try isRefused("X: " + String(repeating: "a", count: 16_385)))
        #expect(try !isRefused("Route: " + Array(repeating: "<sip:a>", count: 64).joined(separator: ",")))
        #expect(try isRefused("Route: " + Array(repeating: "<sip:a>", count: 65).joined(separator: ",")))
    }

    @Test func `many values count as many headers`() throws {
        let line = "Route: " + Array(repeating: "<sip:a>", count: 64).joined(separator: ",")
        func message(_ lineCount: Int) throws -> SIPMessage {
            let lines = Array(repeating: line, count: lineCount).joined(separator: "\r\n")
            return try SIPMessage(datagram: Messages.request(Messages.options, lines))
        }
        #expect(try message(7).defect == nil)
        let tooMany = try message(8)
        #expect(tooMany.defect?.code.statusCode == 400)
        #expect(tooMany.fields.count <= MessageLimits.fieldCount)
    }

    @Test func `values that are more than lines may be are written in the lines that they came in`() throws {
        let values = (0..<60).map { "<sip:a\($0)>" }.joined(separator: ",")
        let lines = Array(repeating: "Route: \(values)\r\nX: a", count: 3) + ["k: b,c"]
        var message = try SIPMessage(datagram: Messages.request(Messages.options, lines.joined(separator: "\r\n")))
        message.removeFirst(.route)
        try message.prepend(.route, NameAddress(try SIPURI("sip:first")))
        // So that what edits have left is taken out.
        for body in [[UInt8](repeating: 0, count: 60_000), []] { message.setBody(body) }
        let written = try SIPMessage(datagram: message.bytes)
        #expect(written.defect == nil)
        for name in [HeaderName.route, .supported] {
            #expect(written.values(of: name).map(\.text) == message.values(of: name).map(\.text))
        }
        #expect(written.count(of: .route) == 180)
        #expect(message.bytes.count < Messages.request(Messages.options, lines.joined()).count + 300)
    }

    @Test func `a NUL in quotes is refused where a value alone would have it outside`() throws {
        let inQuotes = try SIPMessage(datagram: Messages.request(Messages.options, "f: \"\\\0, \" <sip:a>"))
        #expect(inQuotes.defect == nil)
        let values = "Route: <sip:a\">, <sip:b\\\0\">"
        let message = try SIPMessage(datagram: Messages.request(Messages.options, values))
        #expect(message.values(of: .route).map(\.text) == ["<sip:a\">", "<sip:b\\\0\">"])
        #expect(message.defect?.code.statusCode == 400)
    }

    @Test func `a datagram's rest is dropped, and without a length the body goes to its end`() throws {
        let two = Messages.request(Messages.options, "l: 2") + Array("abINVITE".utf8)
        #expect(try SIPMessage(datagram: two).body == Array("ab".utf8))
        #expect(try SIPMessage(datagram: Messages.request() + [1, 2]).body == [1, 2])
    }

    @Test func `lines may end with LF alone, and folded ones become one`() throws {
        let text =
            "\r\n\nOPTIONS sip:a@b SIP/2.0\nVia: SIP/2.0/UDP h;\n\tbranch=z\r\nSubject: a  \r\n \t b\r\n\tc\n\nbody"
        let message = try SIPMessage(datagram: Array(text.utf8))
        #expect(message.defect == nil)
        #expect(try message.topVia()?.branch?.text == "z")
        #expect(message.values(named: "Subject") == ["a b c"])
        #expect(message.body == Array("body".utf8))
    }

    @Test func `edits keep the order and are written`() throws {
        var message = try SIPMessage(datagram: Messages.ok)
        try message.prepend(.via, Via(transport: Bytes("TCP"), host: Bytes("h"), port: 5060, branch: Bytes("z9hG4bK2")))
        #expect(try message.topVia()?.bytes.text == "SIP/2.0/TCP h:5060;branch=z9hG4bK2;rport")
        #expect(message.count(of: .via) == 2)
        message.removeFirst(.via)
        #expect(try message.topVia()?.host.text == "192.0.2.1")
        var via = try #require(try message.topVia())
        via.host = Bytes("x")
        try message.replaceFirst(.via, by: via)
        #expect(try message.topVia()?.host.text == "x")
        #expect(message.count(of: .via) == 1)
        try message.append(.recordRoute, Bytes("<sip:p1;lr>"))
        try message.append(.recordRoute, Bytes("<sip:p2;lr>"))
        try message.set(.cSeq, to: CSeq(8, .register))
        try message.append(named: "X-New", "value")
        message.remove(.contact)
        message.setBody(Array("abc".utf8))
        let lines = message.description.split(separator: "\r\n").map(String.init)
        #expect(lines[5] == "CSeq: 8 REGISTER")
        #expect(
            Array(lines[6...]) == [
                "Record-Route: <sip:p1;lr>", "Record-Route: <sip:p2;lr>", "X-New: value", "Content-Length: 3", "abc",
            ]
        )
    }

    @Test(arguments: ["a\r\nX: y", "a\nb", "a\rb", "a\0b"]) func `a value that would end its line is refused`(
        value: String
    ) throws {
        var message = try SIPMessage(datagram: Messages.ok)
        let before = message.bytes
        #expect(throws: SIPError.self) { try message.append(named: "Subject", value) }
        #expect(throws: SIPError.self) { try message.append(named: "X-Y", value) }
        #expect(throws: SIPError.self) { try message.append(named: value, "y") }
        #expect(throws: SIPError.self) { try message.set(.subject, to: Bytes(value)) }
        #expect(throws: SIPError.self) { try SIPMessage(status: 200, reason: value) }
        #expect(throws: SIPError.self) { try SIPURI("sip:a@b;c=\(value)") }
        #expect(message.bytes == before)
    }

    @Test func `many edits take no more memory than the message needs`() throws {
        var message = SIPMessage(.options, to: try SIPURI("sip:a@b"))
        for number in 0..<10_000 { try message.set(.cSeq, to: CSeq(UInt32(number), .options)) }
        #expect(message.storage.count < 10_000)
        #expect(message.bytes == Messages.lines(Messages.options, "CSeq: 9999 OPTIONS", "Content-Length: 0", ""))
        message.setRequestURI(try SIPURI("sip:c@d"))
        #expect(try message.requestURI().user == "c")
    }

    @Test func `an answer takes over what it must`() throws {
        let request = try SIPMessage(datagram: Messages.invite)
        let answer = try request.response(status: 180, reason: "Ringing", tag: Bytes("t1"))
        #expect(answer.values(of: .via) == request.values(of: .via))
        #expect(answer.first(.from) == request.first(.from))
        #expect(answer.callID == request.callID)
        #expect(try answer.cSeq() == CSeq(1, .invite))
        #expect(try answer.to()?.tag?.text == "t1")
        #expect(answer.count(of: .route) == 0)
        #expect(try request.response(status: 100, reason: "Trying", tag: Bytes("t1")).to()?.tag == nil)
    }

    @Test func `an ACK is never answered`() throws {
        let ack = try SIPMessage(datagram: Messages.request("ACK sip:a@b SIP/3.0", method: "ACK"))
        #expect(!ack.isAnswerable)
        #expect(try !SIPMessage(datagram: Messages.ok).isAnswerable)
    }
}
