import CallBasics
import Testing

@testable import SIP

@Suite struct HeaderValueTests {
    @Test(arguments: [
        ("SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa;rport", "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa;rport"),
        ("SIP / 2.0 / TCP  host : 5061 ; a = b", "SIP/2.0/TCP host:5061;a=b"),
        ("sip/2.0/TLS [2001:db8::1];received=[2001:db8::2]", "SIP/2.0/TLS [2001:db8::1];received=[2001:db8::2]"),
        ("SIP/2.0/UDP h;received=2001:db8::2", "SIP/2.0/UDP h;received=2001:db8::2"),
    ])
    func `a Via is written strictly`(text: String, written: String) throws {
        #expect(try Via(parsing: Bytes(text)).bytes.text == written)
    }

    @Test(arguments: [
        "", "SIP/2.0/UDP", "SIP/2.0/UDP ", "SIP/3.0/UDP h", "SIP/2.0/UDP h;;", "SIP/2.0/UDP h;,", "SIP/2.0/UDP h:99999",
        "SIP/2.0/UDP h x",
    ])
    func `a broken Via deserves a 400`(text: String) {
        let error = #expect(throws: SIPError.self) { try Via(parsing: Bytes(text)) }
        #expect(error?.code.statusCode == 400)
    }

    @Test func `the cookie alone makes no unique branch`() throws {
        #expect(try !Via(parsing: Bytes("SIP/2.0/UDP h;branch=z9hG4bK")).hasUniqueBranch)
        #expect(try !Via(parsing: Bytes("SIP/2.0/UDP h;branch=abcdefgh")).hasUniqueBranch)
        #expect(try !Via(parsing: Bytes("SIP/2.0/UDP h")).hasUniqueBranch)
        #expect(try Via(parsing: Bytes("SIP/2.0/UDP h;branch=z9hG4bKx")).hasUniqueBranch)
    }

    @Test(arguments: [
        ("SIP/2.0/UDP 10.1.1.1;rport;branch=b", "SIP/2.0/UDP 10.1.1.1;rport=9988;branch=b;received=192.0.2.1"),
        ("SIP/2.0/UDP host;branch=b", "SIP/2.0/UDP host;branch=b;received=192.0.2.1"),
        ("SIP/2.0/TCP 192.0.2.1:6379;branch=b;received=127.0.0.1", "SIP/2.0/TCP 192.0.2.1:6379;branch=b"),
        ("SIP/2.0/UDP 192.0.2.1;branch=b", "SIP/2.0/UDP 192.0.2.1;branch=b"),
    ])
    func `a server notes where a request came from`(text: String, noted: String) throws {
        var via = try Via(parsing: Bytes(text))
        via.note(sourceHost: Bytes("192.0.2.1"), port: 9988)
        #expect(via.bytes.text == noted)
    }

    @Test(arguments: [
        ("sip:a@b;tag=1", "<sip:a@b>;tag=1"),
        ("<sip:a@b;x=y>;tag=1", "<sip:a@b;x=y>;tag=1"),
        ("Alice <sip:a@b>", "\"Alice\" <sip:a@b>"),
        ("Bell, A.G. <sip:a@b> ; q = 0.1", "\"Bell, A.G.\" <sip:a@b>;q=0.1"),
        ("\"A \\\"B\\\" \\\\\" <sip:a@b?c=d,e>", "\"A \\\"B\\\" \\\\\" <sip:a@b?c=d,e>"),
        ("\"\"<isbn:2983792873>", "\"\" <isbn:2983792873>"),
        ("<sip:a@b>;+sip.instance=\"<urn:uuid:0;1>\";reg-id=1", "<sip:a@b>;+sip.instance=\"<urn:uuid:0;1>\";reg-id=1"),
    ])
    func `an address is written with quotes and brackets`(text: String, written: String) throws {
        let address = try NameAddress(parsing: Bytes(text))
        #expect(address.bytes.text == written)
        #expect(try NameAddress(parsing: address.bytes) == address)
    }

    @Test(arguments: [
        "", "<sip:a@b", "\"A <sip:a@b>", "A \"B <sip:a@b>", "sip:a@b?c=d", "sip:a,b@c", "<sip:a@b>x", "<sip:a@b>;;",
        "<>",
        "\"A\" sip:a@b",
    ])
    func `a broken address deserves a 400`(text: String) {
        let error = #expect(throws: SIPError.self) { try NameAddress(parsing: Bytes(text)) }
        #expect(error?.code.statusCode == 400)
    }

    @Test func `parameters without brackets belong to the header, within them to the URI`() throws {
        let bare = try NameAddress(parsing: Bytes("sip:a@b;tag=1"))
        #expect(bare.tag?.text == "1")
        #expect(bare.uri.parameter("tag") == nil)
        let bracketed = try NameAddress(parsing: Bytes("<sip:a@b;tag=1>"))
        #expect(bracketed.tag == nil)
        #expect(bracketed.uri.parameter("tag") == "1")
    }

    @Test func `a tag is set, replaced and taken away`() throws {
        var address = try NameAddress(parsing: Bytes("<sip:a@b>;x;TAG=1"))
        address.tag = Bytes("2")
        #expect(address.bytes.text == "<sip:a@b>;x;TAG=2")
        address.tag = nil
        #expect(address.bytes.text == "<sip:a@b>;x")
        address.tag = Bytes("3")
        #expect(address.bytes.text == "<sip:a@b>;x;tag=3")
    }

    @Test(arguments: [
        ("0.7", 700), ("1", 1000), ("1.000", 1000), ("0", 0), ("0.05", 50), ("x", 1000), ("7", 1000), ("0.", 0),
    ])
    func `preferences are thousandths`(text: String, preference: Int) throws {
        #expect(try NameAddress(parsing: Bytes("<sip:a@b>;q=\(text)")).preference == preference)
    }

    @Test(arguments: [("0", 0), ("4294967295", 4_294_967_295)] as [(String, UInt32)])
    func `a binding lasts seconds of 32 bits`(text: String, seconds: UInt32) throws {
        #expect(try NameAddress(parsing: Bytes("<sip:a@b>;expires=\(text)")).expires() == seconds)
    }

    @Test func `more than 32 bits of seconds are refused`() throws {
        let address = try NameAddress(parsing: Bytes("<sip:a@b>;expires=4294967296"))
        #expect(throws: SIPError.self) { try address.expires() }
    }

    @Test(arguments: ["2147483648 INVITE", "-1 INVITE", "1", "INVITE", "1 INV ITE", "1INVITE", ""])
    func `a broken CSeq is refused`(text: String) {
        #expect(throws: SIPError.self) { try CSeq(parsing: Bytes(text)) }
    }

    @Test func `CSeq and RAck are numbers and a method`() throws {
        #expect(try CSeq(parsing: Bytes("0009  INVITE")) == CSeq(9, .invite))
        let rAck = try RAck(parsing: Bytes("776656 1 INVITE"))
        #expect(rAck == RAck(responseNumber: 776_656, cSeq: CSeq(1, .invite)))
        #expect(rAck.bytes.text == "776656 1 INVITE")
        #expect(throws: SIPError.self) { try RAck(parsing: Bytes("0 1 INVITE")) }
    }

    @Test func `words with parameters are read`() throws {
        let event = try EventHeader(parsing: Bytes("refer;id=93809824"))
        #expect(event.package.text == "refer")
        #expect(event.id?.text == "93809824")
        let state = try SubscriptionState(parsing: Bytes("terminated ;reason=noresource;retry-after=5"))
        #expect(state.isTerminated)
        #expect(state.reason?.text == "noresource")
        #expect(state.retryAfter == 5)
        #expect(try SubscriptionState(parsing: Bytes("active;expires=60")).expires == 60)
        let reason = try ReasonHeader(parsing: Bytes("SIP;cause=200;text=\"Call completed, elsewhere\""))
        #expect(reason.protocolName.text == "SIP")
        #expect(reason.cause == 200)
        #expect(reason.text?.text == "Call completed, elsewhere")
    }

    @Test func `intervals and dialogs are read and written`() throws {
        let interval = try SessionInterval(parsing: Bytes("1800 ; refresher=UAS"))
        #expect(interval.seconds == 1800)
        #expect(interval.refresher == .uas)
        #expect(SessionInterval(seconds: 90, refresher: .uac).bytes.text == "90;refresher=uac")
        let replaces = try DialogReference(
            parsing: Bytes("98732@example.com;from-tag=r33th4x0r;to-tag=ff87ff;early-only")
        )
        #expect(replaces.callID.text == "98732@example.com")
        #expect(replaces.localTag?.text == "ff87ff")
        #expect(replaces.remoteTag?.text == "r33th4x0r")
        #expect(replaces.isEarlyOnly)
        let retry = try RetryAfter(parsing: Bytes("18000 (in a meeting; really);duration=3600"))
        #expect(retry.seconds == 18_000)
        #expect(retry.bytes.text == "18000 (in a meeting; really);duration=3600")
    }

    @Test func `a challenge keeps its parameters as they came`() throws {
        let text = "Digest realm=\"a, \\\"b\\\"\", nonce=\"n=\", algorithm=SHA-256,qop=\"auth,auth-int\" , stale=TRUE"
        let challenge = try AuthenticationValue(parsing: Bytes(text))
        #expect(challenge.isDigest)
        #expect(challenge["realm"]?.text == "a, \"b\"")
        #expect(challenge["NONCE"]?.text == "n=")
        #expect(challenge["algorithm"]?.text == "SHA-256")
        #expect(challenge["qop"]?.text == "auth,auth-int")
        #expect(challenge["opaque"] == nil)
        #expect(try AuthenticationValue(parsing: challenge.bytes) == challenge)
        var credentials = AuthenticationValue(scheme: "Digest")
        credentials.append("username", Bytes("a\"b"), isQuoted: true)
        credentials.append("nc", Bytes("00000001"), isQuoted: false)
        #expect(credentials.bytes.text == "Digest username=\"a\\\"b\", nc=00000001")
    }

    @Test(arguments: ["Digest", "Digest ", "Digest a", "Digest a=", "Digest a=b,", "Digest a=\"b", "Digest a=b c=d"])
    func `a broken challenge is refused`(text: String) {
        #expect(throws: SIPError.self) { try AuthenticationValue(parsing: Bytes(text)) }
    }

    @Test func `types are compared without case and parameters`() throws {
        let type = try MediaType(parsing: Bytes("Application / SDP ; charset=\"utf-8\""))
        #expect(type.isNamed("application", "sdp"))
        #expect(type.bytes.text == "Application/SDP;charset=\"utf-8\"")
        #expect(throws: SIPError.self) { try MediaType(parsing: Bytes("sdp")) }
    }

    @Test func `more than 32 parameters are refused`() throws {
        let many = (0..<33).map { ";p\($0)" }.joined()
        #expect(throws: SIPError.self) { try NameAddress(parsing: Bytes("<sip:a@b>" + many)) }
        #expect(throws: SIPError.self) { try SIPURI("sip:a@b" + many) }
        #expect(throws: Never.self) { try SIPURI("sip:a@b" + (0..<32).map { ";p\($0)" }.joined()) }
    }
}
