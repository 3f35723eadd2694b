import CallBasics
import Testing

@testable import SIP

/// What is refused, by which code, and what the refusal tells.
@Suite struct CapabilitiesTests {
    static let phone = Capabilities(
        methods: [.invite, .ack, .cancel, .bye, .options, .info, .message],
        extensions: ["100rel", "timer"],
        bodies: [
            .init(.invite, ["application/sdp", "multipart/mixed"]), .init(.info, ["application/dtmf-relay"]),
            .init(.message, ["text/plain", "multipart/mixed"]),
        ]
    )

    private func refusal(_ method: String, _ headers: String..., body: String = "") throws -> Capabilities.Refusal? {
        var bytes = Messages.lines("\(method) sip:a@b SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1")
        bytes += Messages.lines("From: <sip:b@example.com>;tag=1", "To: <sip:a@example.com>", "Call-ID: c1")
        bytes += Messages.lines("CSeq: 1 \(method)") + headers.flatMap { Messages.lines($0) }
        bytes += Messages.lines("Content-Length: \(body.utf8.count)", "") + Array(body.utf8)
        return try Self.phone.refusal(of: SIPMessage(datagram: bytes))
    }

    @Test(arguments: [("SUBSCRIBE", 405), ("REGISTER", 405), ("NEWMETHOD", 501), ("invite", 501)])
    func `a method that is not taken is told from one that nobody knows`(method: String, status: Int) throws {
        let refusal = try #require(try refusal(method))
        let allow = refusal.headers.first { $0.name == .allow }?.value
        #expect(refusal.status == status)
        #expect(allow == "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, MESSAGE")
    }

    @Test func `a required extension that is not understood is named, each on a line`() throws {
        let refusal = try #require(try refusal("INVITE", "Require: 100REL, nothingSupports, foo", "Require: bar"))
        #expect(refusal.status == 420)
        #expect(refusal.headers.map(\.value) == ["nothingSupports", "foo", "bar"])
        #expect(refusal.headers.allSatisfy { $0.name == .unsupported })
        #expect(try self.refusal("INVITE", "Require: timer") == nil)
        // RFC 3261, section 8.2.2.3.
        for method in ["ACK", "CANCEL"] { #expect(try self.refusal(method, "Require: foo") == nil) }
    }

    @Test func `a body of another type, or an encoded one, is refused with what would be taken`() throws {
        let unknown = try #require(try refusal("INVITE", "Content-Type: application/unknown", body: "x"))
        #expect(
            unknown == .init(status: 415, headers: [.init(name: .accept, value: "application/sdp, multipart/mixed")])
        )
        let zipped = try #require(
            try refusal("INVITE", "Content-Type: application/sdp", "Content-Encoding: gzip", body: "x")
        )
        #expect(zipped == .init(status: 415, headers: [.init(name: .acceptEncoding, value: "deflate, identity")]))
        for encoding in ["Identity", "Deflate", "identity, deflate"] {
            #expect(try refusal("INVITE", "Content-Type: Application/SDP", "e: \(encoding)", body: "x") == nil)
        }
        #expect(
            try refusal("INVITE", "Content-Type: application/sdp", "e: deflate, deflate", body: "x")?.status == 415
        )
    }

    @Test func `a body that may be passed over, or is none, is not looked at`() throws {
        let optional = "Content-Disposition: session;handling=Optional"
        #expect(try refusal("INVITE", "Content-Type: application/unknown", optional, body: "x") == nil)
        #expect(try refusal("INVITE", "Content-Type: application/unknown") == nil)
        #expect(try refusal("OPTIONS", "Content-Type: application/unknown", body: "x") == nil)
        #expect(try refusal("INFO", "Content-Type: text/plain", body: "x")?.status == 415)
    }

    @Test(arguments: [
        ("text/html", true), ("text/html, application/json;q=0.5", true), ("application/SDP", false),
        ("text/html, application/sdp;level=1", false), ("application/*", false), ("text/*, */*;q=0.1", false),
        ("", false), ("no type", false),
    ])
    func `a call whose caller reads no session description is refused`(accept: String, isRefused: Bool) throws {
        #expect(try refusal("INVITE", "Accept: \(accept)")?.status == (isRefused ? 406 : nil))
        #expect(try refusal("OPTIONS", "Accept: \(accept)") == nil)
    }

    @Test func `the method is judged before extensions, and these before the body`() throws {
        let all = try refusal("PUBLISH", "Require: foo", "Content-Type: application/unknown", body: "x")
        #expect(all?.status == 405)
        #expect(try refusal("INVITE", "Require: foo", "Content-Type: application/unknown", body: "x")?.status == 420)
    }

    @Test func `what is taken is told, each type once`() throws {
        var answer = try SIPMessage(status: 200, reason: "OK")
        try Self.phone.describe(in: &answer)
        #expect(answer.values(named: "Allow") == ["INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, MESSAGE"])
        #expect(
            answer.values(named: "Accept")
                == ["application/sdp, multipart/mixed, application/dtmf-relay, text/plain"]
        )
        #expect(answer.values(named: "Supported") == ["100rel, timer"])
        #expect(answer.values(named: "Accept-Encoding") == ["deflate, identity"])
    }

    @Test func `a refusal is a response to its request`() throws {
        let request = try SIPMessage(datagram: Messages.request("PUBLISH sip:a@b SIP/2.0", method: "PUBLISH"))
        let response = try #require(try Self.phone.refusal(of: request)).response(to: request, tag: Bytes("t"))
        #expect(response.statusCode == 405 && response.reasonPhrase == "Method Not Allowed")
        #expect(try response.to()?.tag?.text == "t" && response.cSeq() == CSeq(1, SIPMethod("PUBLISH") ?? .ack))
    }
}
