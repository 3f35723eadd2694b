import Testing

@testable import SIP

/// Messages to begin with, and what all can be asked for.
enum Messages {
    static let invite = lines(
        "INVITE sip:bob@biloxi.example.com SIP/2.0",
        "Via: SIP/2.0/TCP client.atlanta.example.com:5060;branch=z9hG4bK74bf9, SIP/2.0/UDP [2001:db8::1];branch=z9hG4b",
        "Max-Forwards: 70",
        "f: Alice <sip:alice@atlanta.example.com>;tag=9fxced76sl",
        "To: \"Bob, \\\"B\\\"\" <sip:bob@biloxi.example.com>",
        "Call-ID: 3848276298220188511@atlanta.example.com",
        "CSeq: 1 INVITE",
        "Route: <sip:p1.example.com;lr>,",
        " <sip:p2.example.com;lr>",
        "Contact: <sip:alice@client.atlanta.example.com;transport=tcp>;q=0.5",
        "Supported: replaces, 100rel",
        "X-Unknown:  ;;,,;;,; ",
        "Authorization: Digest username=\"a\", realm=\"r, x\", nc=00000001",
        "Content-Type: application/sdp",
        "Content-Length: 5",
        "",
        "v=0"
    )

    static let ok = lines(
        "SIP/2.0 200 OK",
        "v: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKx;received=192.0.2.9;rport=5061",
        "f: <sip:a@example.com>;tag=1",
        "t: <sip:b@example.com>;tag=2",
        "i: 1@x",
        "CSeq: 7 REGISTER",
        "m: <sip:a@192.0.2.1>;expires=3600",
        "l: 0",
        ""
    )

    /// Lines that each end with CR LF.
    static func lines(_ lines: String...) -> [UInt8] { Array(lines.map { $0 + "\r\n" }.joined().utf8) }

    static let options = "OPTIONS sip:a@b SIP/2.0"

    /// A request that is whole but for what `extra` adds.
    static func request(_ start: String = options, method: String = "OPTIONS", _ extra: String...) -> [UInt8] {
        lines(start, "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1", "From: <sip:b@example.com>;tag=1")
            + lines("To: <sip:a@example.com>", "Call-ID: c1", "CSeq: 1 \(method)")
            + extra.flatMap { lines($0) } + lines("")
    }

    /// Reads all that can be read of a message.
    static func exercise(_ message: SIPMessage) {
        _ = (message.method, message.statusCode, message.reasonPhrase, message.body, message.isAnswerable)
        _ = (message.values(named: "x-unknown"), message.hasWildcardContact, message.callID)
        if let uri = try? message.requestURI() {
            _ = (uri.user, uri.host, uri.parameter("lr"), uri.headers, uri.isEquivalent(to: uri), uri.detached)
        }
        _ = try? message.validated()
        for via in (try? message.list(.via, as: Via.self)) ?? [] {
            _ = (via.hasUniqueBranch, via.received, via.responsePort, via.maddr, HostAddress(via.host))
        }
        for name in HeaderName.allCases where message.count(of: name) > 0 {
            _ = try? message.tokens(of: name)
            _ = try? message.authentication(name)
            _ = (try? message.list(name, as: NameAddress.self))?.map { ($0.tag, $0.preference, try? $0.expires()) }
            _ = try? message.list(name, as: ParameterizedValue.self)
            _ = try? message.list(name, as: RetryAfter.self)
            _ = try? message.list(name, as: DialogReference.self)
            _ = try? message.list(name, as: MediaType.self)
            _ = try? message.list(name, as: RAck.self)
            _ = try? message.list(name, as: SessionInterval.self)
        }
    }

    /// What is written of a sound message reads the same; an answer to it does not hold more lines than it should.
    static func expectRoundTrip(_ message: SIPMessage, _ cause: String) {
        guard message.defect == nil else { return }
        let written = message.bytes
        guard let again = try? SIPMessage(datagram: written), again.defect == nil else {
            Issue.record("what was written cannot be read: \(cause)")
            return
        }
        let isSame =
            again.bytes == written && again.method == message.method && again.statusCode == message.statusCode
            && again.body == message.body
            && HeaderName.allCases.allSatisfy {
                $0 == .contentLength || again.values(of: $0) == message.values(of: $0)
            }
        if !isSame { Issue.record("what was written reads differently: \(cause)") }
    }
}
