import CallBasics
import SDP
import Testing

@testable import SIP

/// Bodies of several parts (RFC 2046, section 5.1; RFC 5621).
@Suite struct BodyPartTests {
    private static let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n"

    private func message(_ body: String, type: String) throws -> SIPMessage {
        let head = "INVITE sip:a@b SIP/2.0\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        return try SIPMessage(datagram: Array((head + body).utf8))
    }

    private func texts(_ body: String, type: String = "multipart/mixed;boundary=x") throws -> [String] {
        try message(body, type: type).bodyParts().map { part in
            let type = part.type.map { "\($0.type.text)/\($0.subtype.text)" } ?? "none"
            return "\(type)\(part.isRequired ? " required" : ""): \(part.bytes.text)"
        }
    }

    @Test func `parts stand between delimiters, without the line end before the next`() throws {
        let body = """
            preamble\r
            --x\r
            Content-Type: text/plain\r
            Content-Disposition: render;handling=required\r
            \r
            one\r
            two\r
            --x  \r
            c: application/\r
             sdp\r
            \r
            v=0\r
            \r
            --x\r
            \r
            bare--x\r
            --x--\r
            --x\r
            epilogue
            """
        #expect(
            try texts(body) == [
                "text/plain required: one\r\ntwo", "application/sdp: v=0\r\n", "none: bare--x",
            ]
        )
    }

    @Test func `lines may end by LF, and the last delimiter may be missing`() throws {
        let body = "--x\nContent-Type: text/plain\n\none\n--x\n\ntwo\n"
        #expect(try texts(body, type: "multipart/mixed; boundary=\"x\"") == ["text/plain: one", "none: two\n"])
        #expect(try texts("--x\n", type: "multipart/mixed;boundary=x") == ["none: "])
        #expect(try texts("one", type: "text/plain") == ["text/plain: one"])
    }

    @Test func `parts within parts come in their order`() throws {
        let inner = "--y\r\nContent-Type: a/b\r\n\r\n1\r\n--y\r\n\r\n2\r\n--y--\r\n"
        let body = "--x\r\nContent-Type: multipart/related;boundary=y\r\n\r\n\(inner)\r\n--x\r\n\r\n3\r\n--x--"
        #expect(try texts(body) == ["a/b: 1", "none: 2", "none: 3"])
    }

    @Test(arguments: [
        ("--x\r\n\r\n1", "multipart/mixed"), ("--x\r\n\r\n1", "multipart/mixed;boundary=\"\""),
        ("nothing", "multipart/mixed;boundary=x"), ("--x\r\nno header\r\n\r\n1", "multipart/mixed;boundary=x"),
        ("--x\r\nContent-Type: none\r\n\r\n1", "multipart/mixed;boundary=x"),
        (String(repeating: "--x\r\n\r\n1\r\n", count: 17), "multipart/mixed;boundary=x"),
        (
            (0..<5).reduce("1") { body, depth in
                "--x\(depth)\r\nContent-Type: multipart/mixed;boundary=x\(depth - 1)\r\n\r\n\(body)"
            }, "multipart/mixed;boundary=x4"
        ),
    ])
    func `what has no parts, or too many, is a bad request`(body: String, type: String) throws {
        let message = try message(body, type: type)
        let error = #expect(throws: SIPError.self) { try message.bodyParts() }
        #expect(error?.code == .badRequest)
    }

    @Test func `the session is found among other parts, the last one of several`() throws {
        let other = "--x\r\nContent-Type: application/isup;version=itu-t92+\r\n\r\n\u{1}\u{2}\r\n"
        func part(_ name: String) -> String {
            "--x\r\nContent-Type: Application/SDP\r\n\r\n" + Self.sdp.replacing("s=-", with: "s=\(name)")
        }
        let mixed = try message(
            other + part("first") + "\r\n" + part("second") + "\r\n--x--",
            type: "multipart/mixed;boundary=x"
        )
        #expect(try #require(try mixed.sessionDescription()).sessionName == "second")
        let none = try message(other + "--x--", type: "multipart/mixed;boundary=x")
        #expect(try none.sessionDescription() == nil)
        let packed = try message(
            "--x\r\nContent-Type: application/sdp\r\nContent-Transfer-Encoding: base64\r\n\r\ndj0w\r\n--x--",
            type: "multipart/mixed;boundary=x"
        )
        #expect(try packed.sessionDescription() == nil)
    }

    @Test func `an unknown part refuses the message only where it is required`() throws {
        let rules = Capabilities.phone
        for (handling, status) in [("", nil), (";handling=optional", nil), (";handling=required", 415)]
            as [(String, Int?)]
        {
            let body =
                "--x\r\nContent-Type: application/isup\r\nContent-Disposition: signal\(handling)\r\n\r\n1\r\n"
                + "--x\r\nContent-Type: application/sdp\r\n\r\n\(Self.sdp)\r\n--x--"
            let refusal = try rules.refusal(of: message(body, type: "multipart/mixed;boundary=x"))
            #expect(refusal?.status == status)
        }
        let related = try message("--x\r\n\r\n1", type: "multipart/signed;boundary=x")
        #expect(try rules.refusal(of: related)?.status == 415)
    }

    @Test func `any cut, and any byte, is read or refused`() throws {
        let body = Array("--x\r\nContent-Type: a/b;c=\"d\"\r\n e\r\n\r\n1\r\n--x\r\n\r\n2\r\n--x--".utf8)
        let head = Array("INVITE sip:a@b SIP/2.0\r\nContent-Type: multipart/mixed;boundary=x\r\n\r\n".utf8)
        var generator = SeededGenerator(seed: 9)
        for cut in 0...body.count {
            _ = try? SIPMessage(datagram: head + body[..<cut]).bodyParts()
            for _ in 0..<20 where cut < body.count {
                var changed = body
                changed[cut] = UInt8(truncatingIfNeeded: generator.next())
                let parts = try? SIPMessage(datagram: head + changed).bodyParts()
                #expect(parts?.count ?? 0 <= MessageLimits.partCount)
            }
        }
    }
}
