import CallBasics
import Testing

@testable import SIP

@Suite struct SIPURITests {
    @Test func `a URI gives its parts`() throws {
        let uri = try SIPURI("sips:al%20ice:secret@[2001:db8::9]:5071;transport=tcp;lr?subject=a%20b&priority=urgent")
        #expect(uri.scheme == .sips)
        #expect(uri.user == "al ice")
        #expect(uri.host == "[2001:db8::9]")
        #expect(uri.port == 5071)
        #expect(uri.parameter("Transport") == "tcp")
        #expect(uri.parameter("lr") == "")
        #expect(uri.parameter("maddr") == nil)
        #expect(uri.isLooseRoute)
        #expect(uri.headers.map(\.name.text) == ["subject", "priority"])
        #expect(uri.description.hasPrefix("sips:al%20ice:secret@"))
    }

    @Test func `semicolons before the at sign belong to the user`() throws {
        let uri = try SIPURI("sip:user;par=u%40example.net@example.com")
        #expect(uri.user == "user;par=u@example.net")
        #expect(uri.host == "example.com")
        #expect(uri.parameters.bytes.isEmpty)
    }

    @Test func `a number keeps its context`() throws {
        let uri = try SIPURI("tel:7042;phone-context=example.com")
        #expect(uri.scheme == .tel)
        #expect(uri.user == "7042")
        #expect(uri.host.isEmpty)
        #expect(uri.parameter("phone-context") == "example.com")
    }

    @Test(arguments: [
        "", "sip", "sip:", ":a@b", "sip:@b", "sip:a@", "sip:a@b:", "sip:a@b:65536", "sip:a@b:x", "sip:a@b@c",
        "sip:a@[::1",
        "sip:a@[]", "sip:a b@c", "sip:a%4@b", "sip:a@b;", "sip:a@b;=c", "sip:a@b;c=", "sip:a@b?", "sip:a@b?=c",
        "sip:a@b?c",
        "sip:a@b>", "sip:a@b;c=\"d\"", "tel:", "tel:--", "tel:12x", "1sip:a@b", "sip:a@b\r\nX: y",
    ])
    func `what breaks the grammar is refused`(text: String) {
        #expect(throws: SIPError.self) { try SIPURI(text) }
    }

    @Test func `more than 32 headers are refused, for each is compared with each`() throws {
        #expect(try SIPURI("sip:a@b?" + Array(repeating: "c=d", count: 32).joined(separator: "&")).headers.count == 32)
        #expect(throws: SIPError.self) {
            try SIPURI("sip:a@b?" + Array(repeating: "c=d", count: 33).joined(separator: "&"))
        }
    }

    @Test func `a URI that is too long has its own answer`() throws {
        let error = #expect(throws: SIPError.self) { try SIPURI("sip:" + String(repeating: "a", count: 16_384)) }
        #expect(error?.code.statusCode == 414)
    }

    /// The table of RFC 3261, section 19.1.4, and addresses as in RFC 5118, section 4.9.
    @Test(arguments: [
        ("sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtLanTa.CoM;Transport=tcp"),
        ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5"),
        ("sip:carol@chicago.com", "sip:carol@chicago.com;security=on"),
        (
            "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
            "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com"
        ),
        (
            "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
            "sip:alice@atlanta.com?priority=urgent&subject=project%20x"
        ),
        ("sip:a@[2001:db8::1]", "sip:a@[2001:DB8:0:0:0:0:0:1]"),
        ("sip:a@[::ffff:192.0.2.1]", "sip:a@[::ffff:c000:201]"),
        // A name may stand once (section 19.1.1); who writes it twice still means what he means.
        ("sip:alice;day=tuesday;day=friday", "sip:alice;day=tuesday;day=friday"),
        ("tel:+1-201-555-0123", "TEL:+12015550123"),
        ("tel:+1201;a=1;b=2", "tel:+1201;b=2;a=1"),
    ])
    func `these mean the same`(one: String, other: String) throws {
        #expect(try SIPURI(one).isEquivalent(to: SIPURI(other)))
        #expect(try SIPURI(other).isEquivalent(to: SIPURI(one)))
    }

    /// The table of RFC 3261, section 19.1.4, and more.
    @Test(arguments: [
        ("SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP"),
        ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"),
        ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp"),
        ("sip:bob@biloxi.com", "sip:bob@biloxi.com:6000;transport=tcp"),
        ("sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting"),
        ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"),
        ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off"),
        ("sip:bob@biloxi.com", "sips:bob@biloxi.com"),
        ("sip:bob@biloxi.com", "sip:biloxi.com"),
        ("sip:a:b@c", "sip:a:B@c"),
        ("sip:a%3Bb@c", "sip:a;b@c"),
        ("sip:a@c", "sip:a@c;pn-prid=x"),
        ("sip:a@c", "sip:a@c;maddr=192.0.2.1"),
        ("sip:a@[::ffff:192.0.2.1]", "sip:a@192.0.2.1"),
        ("tel:+1201", "tel:+1201;ext=5"),
    ])
    func `these mean something else`(one: String, other: String) throws {
        #expect(try !SIPURI(one).isEquivalent(to: SIPURI(other)))
        #expect(try !SIPURI(other).isEquivalent(to: SIPURI(one)))
    }

    @Test(arguments: [
        ("sip:a@b?Subject=x", "sip:a@b"), ("sip:a?b@c;lr?Replaces=x", "sip:a?b@c;lr"), ("sip:a?b@c", "sip:a?b@c"),
        ("sip:a@b;x=y", "sip:a@b;x=y"), ("tel:+1201", "tel:+1201"),
    ])
    func `without its headers a URI is what it was, with a question mark in the user, too`(
        text: String,
        rest: String
    ) throws {
        #expect(try SIPURI(text).withoutHeaders.description == rest)
    }

    @Test(arguments: [
        "1.2.3", "1.2.3.256", "1.2.3.4.5", ":::", ":1", "1:", "1::2::3", "1:2:3:4:5:6:7", "12345::", "g::", "::1.2.3",
    ])
    func `what is no address is a name`(text: String) {
        #expect(HostAddress(Bytes(text)) == nil)
    }

    @Test(arguments: ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4", "[fe80::1]", "255.255.255.255"])
    func `an address is known`(text: String) {
        #expect(HostAddress(Bytes(text)) != nil)
    }
}
