import CallBasics
import Testing

@testable import SIP

/// What is written of messages has no secrets, and is as long as they are.
@Suite struct RedactionTests {
    private func redacted(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let blotted = Redaction.redacted(bytes)
        #expect(blotted.count == bytes.count)
        return String(decoding: blotted, as: UTF8.self)
    }

    @Test(arguments: [
        (
            #"Authorization: Digest username="a", realm="b", response="0123abc", nc=00000001"#,
            #"Authorization: Digest username="a", realm="b", response="xxxxxxx", nc=00000001"#
        ),
        (
            #"proxy-AUTHORIZATION : digest response=12,uri="a,b""#,
            #"proxy-AUTHORIZATION : digest response=xx,uri="a,b""#
        ),
        (#"Authorization: Digest response="a\",b",nc=1"#, #"Authorization: Digest response="xxxxx",nc=1"#),
        (#"Authorization: Digest token=a, mystery"#, #"Authorization: Digest token=x, xxxxxxx"#),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic xxxxxxxxxxxx"),
        ("Authorization: Bearer a.b c", "Authorization: Bearer xxx x"),
        ("Authorization: secret", "Authorization: xxxxxx"),
        (#"Authentication-Info: rspauth="12", nextnonce="n""#, #"Authentication-Info: rspauth="xx", nextnonce="n""#),
        (
            "Contact: <sip:a@b;pn-provider=apns;PN-PRID=abc;pn-param=T.b>;expires=5",
            "Contact: <sip:a@b;pn-provider=apns;PN-PRID=xxx;pn-param=xxx>;expires=5"
        ),
        ("INVITE sip:a@b;pn-prid=abc SIP/2.0", "INVITE sip:a@b;pn-prid=xxx SIP/2.0"),
        ("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:KEY|2^20", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:xxx|2^20"),
        ("a=ice-pwd:secret", "a=ice-pwd:xxxxxx"), ("k=clear:key", "k=xxxxxxxxx"),
        (#"WWW-Authenticate: Digest realm="b", nonce="n""#, #"WWW-Authenticate: Digest realm="b", nonce="n""#),
        ("From: <sip:a@b>;tag=response", "From: <sip:a@b>;tag=response"),
        ("From: A <SIPS:a:secret@b:5061>;tag=1", "From: A <SIPS:a:xxxxxx@b:5061>;tag=1"),
        ("To: sip:a;x:p:w@b, <sip:c:5060;d=e>", "To: sip:a;x:xxx@b, <sip:c:5060;d=e>"),
    ])
    func `a secret is blotted out, and what may be known stays`(line: String, expected: String) {
        #expect(redacted(line) == expected)
        let message = { (_ line: String) in "OPTIONS sip:a SIP/2.0\r\n\(line)\r\nCSeq: 1 OPTIONS\r\n\r\n" }
        #expect(redacted(message(line)) == message(expected))
    }

    @Test func `credentials that go on in the next line are blotted out there, too`() {
        #expect(
            redacted("Authorization: Digest nc=1,\r\n response=\"ab\",\n\turi=\"u\"\r\nVia: response=\"ab\"")
                == "Authorization: Digest nc=1,\r\n response=\"xx\",\n\turi=\"u\"\r\nVia: response=\"ab\""
        )
        #expect(
            redacted("Authorization: Basic\r\n abc\r\n def\r\nTo: abc")
                == "Authorization: xxxxx\r\n xxx\r\n xxx\r\nTo: abc"
        )
    }

    @Test func `whatever the bytes are, the length stays, and a second time changes nothing`() {
        var generator = SeededGenerator(seed: 5)
        let words = [
            "Authorization: ", "Digest ", "response=", "\"", ",", "\r\n", " ", "pn-prid=", "a=crypto:", "inline:", "k=",
            "s3cret",
        ]
        for _ in 0..<2000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int(generator.next() % 12) {
                bytes += Array(words[Int(generator.next() % UInt64(words.count))].utf8)
                if generator.next() % 8 == 0 { bytes.append(UInt8(truncatingIfNeeded: generator.next())) }
            }
            let once = Redaction.redacted(bytes)
            #expect(once.count == bytes.count)
            #expect(Redaction.redacted(once) == once)
        }
    }
}
