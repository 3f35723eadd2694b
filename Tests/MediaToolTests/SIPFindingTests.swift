import SIP
import Testing

@testable import media_tool

/// What `sip parse` finds in messages, streams, URIs and session descriptions.
@Suite struct SIPFindingTests {
    private static func lines(_ lines: String...) -> [UInt8] { Array(lines.map { $0 + "\r\n" }.joined().utf8) }

    private static let head = lines(
        "INVITE sip:bob@biloxi.example.com SIP/2.0",
        "v: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1",
        "From: <sip:alice@example.com>;tag=1",
        "To: <sip:bob@biloxi.example.com>"
    )
    private static let ending = lines("Call-ID: c1", "CSeq: 1 INVITE", "l: 3", "")

    private func value(_ finding: SIPFinding, _ key: String, _ printing: SIPParseCommand.Printing = .none) -> String? {
        guard case .object(let members) = finding.json("f", printing) else { return nil }
        return members.first { $0.0 == key }?.1.text
    }

    @Test func `a sound message is told by its parts, and as it would be written`() {
        let finding = SIPFinding(datagram: Self.head + Self.ending + Array("v=0behind".utf8))
        #expect(finding.problem == nil && finding.kind == "request")
        let expected = [
            "method": "\"INVITE\"", "uri": "\"sip:bob@biloxi.example.com\"", "code": "null", "headers": "6",
            "body": "3",
            "rest": "6", "problem": "null", "answer": "null", "printed": "null",
        ]
        for (key, text) in expected { #expect(value(finding, key) == text, "\(key)") }
        #expect(
            value(finding, "printed", .canonical)?.contains("\\r\\nContent-Length: 3\\r\\n\\r\\nv=0\"") == true
        )
        let text = finding.text("a\u{1B}.sip", .canonical)
        #expect(
            text.hasPrefix(
                "a\\u{1b}.sip: INVITE sip:bob@biloxi.example.com, 6 headers, 3 bytes of body, 6 bytes behind it\n"
            )
        )
        #expect(text.contains("\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\n"))
    }

    @Test func `what is wrong is told with its header, its place and the answer that it gets`() {
        let broken = Self.head + Self.lines("Contact: <sip:a@b") + Self.ending + Array("v=0".utf8)
        let finding = SIPFinding(datagram: broken)
        #expect(finding.problem?.header == "Contact" && value(finding, "answer") == "400")
        #expect(finding.problem?.offset == Self.head.count + "Contact: ".utf8.count)
        #expect(finding.text("f", .none).contains("\n  wrong in Contact at byte \(Self.head.count + 9): "))
        let missing = SIPFinding(datagram: Self.head + Self.lines("CSeq: 1 INVITE", ""))
        #expect(missing.problem?.header == nil && missing.text("f", .none).contains("gets 400\n"))
    }

    @Test func `a fault in an ACK, or in a response, gets no answer`() {
        let ack = SIPFinding(datagram: Self.lines("ACK sip:a@b SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.1", ""))
        #expect(ack.problem != nil && value(ack, "answer") == "null")
        #expect(ack.text("f", .none).contains("gets no answer\n"))
        let response = SIPFinding(datagram: Self.lines("SIP/2.0 200 OK", "Via: SIP/2.0/UDP 192.0.2.1", ""))
        #expect(response.kind == "response" && value(response, "answer") == "null" && value(response, "code") == "200")
        let nothing = SIPFinding(datagram: Array("GET / HTTP/1.1\r\n\r\n".utf8))
        #expect(nothing.kind == "invalid" && nothing.text("f", .canonical).hasPrefix("f: invalid\n  wrong: "))
    }

    @Test func `a stream is read to the place from which nobody can go on`() {
        let message = Self.head + Self.ending + Array("v=0".utf8)
        let keepAlive = Self.lines("", "")
        #expect(SIPFinding.all(inStream: message + keepAlive + message).map(\.kind) == ["request", "request"])
        let cut = SIPFinding.all(inStream: message + message.dropLast())
        #expect(cut.map(\.kind) == ["request", "invalid"] && cut[1].problem?.what.contains("no whole message") == true)
        let typed = Self.head + Self.lines("Call-ID: c", "CSeq: 1 INVITE", "Content-Type: a/b", "")
        let lost = SIPFinding.all(inStream: typed + message)
        #expect(lost.map(\.kind) == ["request"] && lost[0].problem?.what.contains("Content-Length") == true)
    }

    @Test func `URIs and session descriptions are read alone`() {
        let uri = SIPFinding(uri: "sips:al%69ce@[2001:db8::1]:5061;transport=tcp;lr")
        #expect(value(uri, "scheme") == "\"sips\"" && value(uri, "user") == "\"alice\"" && value(uri, "port") == "5061")
        #expect(value(uri, "parameters") == "{\"transport\":\"tcp\",\"lr\":null}")
        #expect(SIPFinding(uri: "sip:a b@c").problem != nil)
        let sdp = SIPFinding(sdp: Self.lines("v=0", "m=audio 5004 RTP/AVP 0", "m=video 0 RTP/AVP 31"))
        #expect(sdp.kind == "sdp" && value(sdp, "media") == "2")
        #expect(SIPFinding(sdp: [0]).problem != nil)
    }

    @Test func `a strict reader does not forgive`() {
        let head = Self.lines(
            "INVITE sip:b@192.0.2.2 SIP/2.0",
            "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1",
            "Max-Forwards: 70",
            "From: <sip:a@192.0.2.1>;tag=a",
            "To: <sip:b@192.0.2.2>",
            "Call-ID: c",
            "CSeq: 1 INVITE"
        )
        let contact = Self.lines("Contact: <sip:a@192.0.2.1>")
        let end = Self.lines("Content-Length: 0", "")
        let sound = head + contact + end
        let loose = Array(String(decoding: sound, as: UTF8.self).replacing("\r\n", with: "\n").utf8)
        for (bytes, words) in [
            (sound, nil), (loose, "LF alone"), (sound + [65], "behind the body"),
            (head + contact + Self.lines(""), "Content-Length is missing"), (head + end, "One Contact"),
        ] as [([UInt8], String?)] {
            #expect(SIPFinding(datagram: bytes).problem == nil)
            let problem = SIPFinding(datagram: bytes, isStrict: true).problem?.what
            let isKnown = words.map { problem?.contains($0) == true } ?? (problem == nil)
            #expect(isKnown, "\(problem ?? "nothing")")
        }
    }

    @Test func `push parameters and envelopes are read alone, and of a token the end is shown`() {
        let contact = "<sip:a@192.0.2.1;pn-provider=apns;pn-param=T.b.voip;pn-prid=0123456789abcdef:voip>"
        let push = SIPFinding(contact: contact)
        #expect(push.kind == "push" && value(push, "tokens") == "{\"voip\":\"...cdef\"}")
        #expect(push.text("c", .none) == "c: push by apns for voip\n")
        #expect(SIPFinding(contact: "<sip:a@192.0.2.1>").problem != nil)
        let head = Self.lines("From: <sip:a@b>", "NS: imdn <urn:ietf:params:imdn>", "imdn.Message-ID: 7", "")
        let cpim = SIPFinding(cpim: head + Self.lines("Content-Type: text/plain", "") + [65])
        #expect(cpim.kind == "cpim" && value(cpim, "messageID") == "\"7\"" && value(cpim, "body") == "1")
        #expect(SIPFinding(cpim: [65]).problem != nil)
    }

    @Test func `headers are printed one by one, without what proves a password`() {
        let secret = "Authorization: Digest username=\"a\", realm=\"r\", response=\"0123456789abcdef\""
        let finding = SIPFinding(datagram: Self.head + Self.lines("CSeq: 1 INVITE", secret, ""))
        let printed = value(finding, "printed", .json) ?? ""
        #expect(printed.contains("\"name\":\"CSeq\",\"value\":\"1 INVITE\""))
        #expect(printed.contains("Authorization") && !printed.contains("0123456789abcdef"))
    }
}
