import CallBasics
import Testing

@testable import SIP

/// Messages of calls, each side's.
enum Calls {
    static func lines(_ lines: [String]) throws -> SIPMessage {
        try SIPMessage(datagram: Array(lines.map { $0 + "\r\n" }.joined().utf8) + Array("\r\n".utf8))
    }

    static func invite(_ extra: String..., uri: String = "sip:bob@biloxi.example.com") throws -> SIPMessage {
        try lines(
            [
                "INVITE \(uri) SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1",
                "From: \"Alice\" <sip:alice@atlanta.example.com>;tag=a1", "To: <sip:bob@biloxi.example.com>",
                "Call-ID: c1", "CSeq: 10 INVITE", "Contact: <sip:alice@192.0.2.1>",
            ] + extra
        )
    }

    static func response(
        _ status: Int,
        _ extra: String...,
        tag: String? = "b1",
        contact: String? = "sip:bob@192.0.2.2"
    ) throws -> SIPMessage {
        let to = "To: <sip:bob@biloxi.example.com>" + (tag.map { ";tag=\($0)" } ?? "")
        return try lines(
            [
                "SIP/2.0 \(status) X", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1",
                "From: \"Alice\" <sip:alice@atlanta.example.com>;tag=a1", to, "Call-ID: c1", "CSeq: 10 INVITE",
            ] + (contact.map { ["Contact: <\($0)>"] } ?? []) + extra
        )
    }

    static func request(_ method: String, number: Int, _ extra: String...) throws -> SIPMessage {
        try lines(
            [
                "\(method) sip:bob@192.0.2.2 SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK9",
                "From: <sip:alice@atlanta.example.com>;tag=a1", "To: <sip:bob@biloxi.example.com>;tag=b1",
                "Call-ID: c1", "CSeq: \(number) \(method)",
            ] + extra
        )
    }

    static func client(_ response: SIPMessage) throws -> Dialog {
        try Dialog(client: invite(), response: response, on: Transactions.clientFlow())
    }

    static func server(_ request: SIPMessage, isConfirmed: Bool = true) throws -> Dialog {
        try Dialog(
            server: request,
            tag: Bytes("b1"),
            isConfirmed: isConfirmed,
            number: 500,
            on: Transactions.serverFlow()
        )
    }
}

/// What a dialog remembers, and the requests that it makes.
@Suite struct DialogTests {
    @Test func `the caller's requests go to the Contact, by the proxies in reverse`() throws {
        let ok = try Calls.response(
            200,
            "Record-Route: <sip:p2.example.com;lr>",
            "Record-Route: <sip:p1.example.com;lr>"
        )
        var dialog = try Calls.client(ok)
        #expect(
            dialog.state == .confirmed
                && dialog.id == DialogID(callID: Bytes("c1"), localTag: Bytes("a1"), remoteTag: Bytes("b1"))
        )
        let bye = try dialog.makeRequest(.bye)
        #expect(try bye.requestURI().description == "sip:bob@192.0.2.2")
        #expect(bye.values(named: "Route") == ["<sip:p1.example.com;lr>", "<sip:p2.example.com;lr>"])
        #expect(bye.values(named: "From") == ["\"Alice\" <sip:alice@atlanta.example.com>;tag=a1"])
        #expect(bye.values(named: "To") == ["<sip:bob@biloxi.example.com>;tag=b1"])
        #expect(try bye.cSeq() == CSeq(11, .bye) && bye.values(named: "Call-ID") == ["c1"])
        #expect(dialog.nextHop.description == "sip:p1.example.com;lr" && bye.first(.via) == nil)
        #expect(try dialog.makeRequest(.info).cSeq() == CSeq(12, .info))
        let ack = try dialog.makeAcknowledgement(number: 10)
        #expect(try ack.cSeq() == CSeq(10, .ack) && ack.values(named: "Route").count == 2)
    }

    @Test func `the called side's requests go by the proxies as they came`() throws {
        let invite = try Calls.invite("Record-Route: <sip:p2.example.com;lr>, <sip:p1.example.com;lr>")
        var dialog = try Calls.server(invite)
        #expect(dialog.id == DialogID(callID: Bytes("c1"), localTag: Bytes("b1"), remoteTag: Bytes("a1")))
        let bye = try dialog.makeRequest(.bye)
        #expect(bye.values(named: "Route") == ["<sip:p2.example.com;lr>", "<sip:p1.example.com;lr>"])
        #expect(bye.values(named: "From") == ["<sip:bob@biloxi.example.com>;tag=b1"])
        #expect(try bye.cSeq() == CSeq(501, .bye) && bye.requestURI().description == "sip:alice@192.0.2.1")
        var response = try Calls.response(200)
        try response.copyRecordRoute(from: invite)
        #expect(response.values(named: "Record-Route") == ["<sip:p2.example.com;lr>", "<sip:p1.example.com;lr>"])
    }

    // RFC 3261, section 12.2.1.1.
    @Test func `a strict router reads its own URI first, and the peer's last`() throws {
        let ok = try Calls.response(200, "Record-Route: <sip:p2.example.com;lr>, <sip:p1.example.com?x=y>")
        var dialog = try Calls.client(ok)
        let bye = try dialog.makeRequest(.bye)
        #expect(try bye.requestURI().description == "sip:p1.example.com")
        #expect(bye.values(named: "Route") == ["<sip:p2.example.com;lr>", "<sip:bob@192.0.2.2>"])
    }

    @Test func `the 2xx makes the way of an early dialog anew, once`() throws {
        var dialog = try Calls.client(try Calls.response(180, "Record-Route: <sip:early.example.com;lr>", contact: nil))
        #expect(dialog.state == .early && dialog.remoteTarget.description == "sip:bob@biloxi.example.com")
        #expect(try dialog.makeRequest(.update).values(named: "Route") == ["<sip:early.example.com;lr>"])
        try dialog.confirm(by: try Calls.response(200, "Record-Route: <sip:late.example.com;lr>"))
        #expect(dialog.state == .confirmed && dialog.remoteTarget.description == "sip:bob@192.0.2.2")
        try dialog.confirm(by: try Calls.response(200, contact: "sip:other@192.0.2.3"))
        #expect(dialog.routes.map(\.uri.host) == ["late.example.com"])
        #expect(dialog.remoteTarget.description == "sip:bob@192.0.2.2")
    }

    @Test func `a preloaded route is none of the dialog's, and a refresh moves the target alone`() throws {
        let invite = try Calls.invite("Route: <sip:outbound.example.com;lr>")
        var dialog = try Dialog(client: invite, response: try Calls.response(200), on: Transactions.clientFlow())
        #expect(dialog.routes.isEmpty)
        let moved = try Calls.response(
            200,
            "Record-Route: <sip:new.example.com;lr>",
            contact: "sip:bob@203.0.113.9:5070"
        )
        try dialog.refreshTarget(by: moved)
        #expect(dialog.routes.isEmpty && dialog.nextHop.description == "sip:bob@203.0.113.9:5070")
        try dialog.refreshTarget(by: try Calls.response(200, contact: nil))
        #expect(dialog.nextHop.description == "sip:bob@203.0.113.9:5070")
    }

    @Test func `requests that are older than one that was taken are out of order`() throws {
        var dialog = try Calls.server(try Calls.invite())
        #expect(dialog.remoteNumber == 10)
        let numbers: [(String, Int, Dialog.Verdict)] = [
            ("INFO", 12, .taken), ("INFO", 12, .outOfOrder), ("BYE", 11, .outOfOrder), ("ACK", 10, .taken),
            ("CANCEL", 10, .taken), ("BYE", 40, .taken),
        ]
        for (method, number, verdict) in numbers {
            #expect(try dialog.receive(Calls.request(method, number: number)) == verdict, "\(method) \(number)")
        }
        #expect(dialog.remoteNumber == 40)
        var caller = try Calls.client(try Calls.response(200))
        #expect(try caller.receive(Calls.request("BYE", number: 1)) == .taken)
    }

    @Test func `a dialog is found by the tags of each message`() throws {
        let known = DialogID(callID: Bytes("c1"), localTag: Bytes("b1"), remoteTag: Bytes("a1"))
        #expect(try DialogID(received: Calls.request("BYE", number: 11)) == known)
        #expect(try DialogID(received: Calls.invite()) == nil)
        #expect(try DialogID(response: Calls.response(100)) == nil)
        #expect(try DialogID(response: Calls.response(180, tag: nil)) == nil)
        #expect(try DialogID(response: Calls.response(200, tag: nil))?.remoteTag.isEmpty == true)
    }

    @Test func `what makes no dialog is refused`() throws {
        #expect(throws: SIPError.self) { try Calls.client(try Calls.response(180, tag: nil)) }
        #expect(throws: SIPError.self) { try Calls.client(try Calls.response(100)) }
        #expect(throws: SIPError.self) { try Calls.client(try Calls.response(200, contact: "sip:")) }
    }

    @Test func `a caller of RFC 2543 without a Contact is found by From`() throws {
        let noContact = try Calls.request("INVITE", number: 1)
        let from = try #require(try noContact.from())
        #expect(try Calls.server(noContact).remoteTarget == from.uri)
    }

    @Test func `only a sips URI by TLS makes it secure`() throws {
        let flow = Transactions.clientFlow(.tls)
        let secure = try Calls.invite(uri: "sips:bob@biloxi.example.com")
        #expect(try Dialog(client: secure, response: Calls.response(200), on: flow).isSecure)
        #expect(try !Dialog(client: Calls.invite(), response: Calls.response(200), on: flow).isSecure)
        #expect(try !Dialog(client: secure, response: Calls.response(200), on: Transactions.clientFlow()).isSecure)
    }
}
