import CallBasics
import Foundation
import SIPTesting
import Testing

@testable import SIP

/// Receipts, and messages in and out of their envelopes.
@Suite struct InstantMessageTests {
    @Test func `each receipt is read, or refused, as it has to be`() throws {
        let index = try #require(try Fixture.json("imdn-xml/index.json") as? [String: [String: Any]])
        #expect(index.count == 9)
        for (name, expected) in index {
            let bytes = Array(try Fixture.data("imdn-xml/\(name)"))[...]
            guard expected["valid"] as? Bool == true else {
                #expect(throws: SIPError.self, "\(name)") { try DispositionNotification(parsing: bytes) }
                continue
            }
            let receipt = try DispositionNotification(parsing: bytes)
            #expect(receipt.messageID == expected["message_id"] as? String, "\(name)")
            #expect(receipt.status.rawValue == expected["status"] as? String, "\(name)")
        }
    }

    @Test func `a receipt is read as it was written, whatever the identifier`() throws {
        for (id, isDisplayed) in [("34jk324j", false), ("<a>&\"]]>", true)] {
            let receipt = DispositionNotification(of: id, isDisplayed: isDisplayed)
            #expect(
                try DispositionNotification(parsing: receipt.body(dateTime: "2024-05-01T10:00:00Z")[...]) == receipt
            )
        }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_714_557_600_123, "2024-05-01T10:00:00.123Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
        ] as [(Int64, String)]
    )
    func `a time is written as RFC 3339 says`(time: Int64, text: String) {
        #expect(UTCTime(unixMilliseconds: time).internet == text)
    }

    private func message(_ type: String?, _ body: [UInt8]) throws -> SIPMessage {
        var bytes = Messages.lines("MESSAGE sip:bob@example.com SIP/2.0", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1")
        bytes += Messages.lines(
            "From: \"Anna\" <sip:anna@example.com>;tag=x",
            "To: <sip:bob@example.com>",
            "Call-ID: c1"
        )
        bytes += Messages.lines("CSeq: 7 MESSAGE") + (type.map { Messages.lines("Content-Type: \($0)") } ?? [])
        return try SIPMessage(datagram: bytes + Messages.lines("Content-Length: \(body.count)", "") + body)
    }

    private func letter(_ type: String, _ content: [UInt8]) throws -> CPIMMessage.Letter {
        CPIMMessage.Letter(
            from: try SIPURI("sip:mallory@example.com"),
            to: try SIPURI("sip:bob@example.com"),
            dateTime: "2024-05-01T10:00:00Z",
            messageID: "m1",
            contentType: type,
            content
        )
    }

    @Test func `a text comes bare or in an envelope, which names it and says what is wanted`() throws {
        for type in [nil, "text/plain", "Text/Plain;charset=UTF-8"] {
            let bare = try #require(try InstantMessage(message(type, Array("Grüße".utf8))))
            #expect(
                bare.content == .text("Grüße") && bare.messageID == nil && !bare.wantsDelivery && !bare.wantsDisplay
            )
            #expect(bare.sender.bytes.text == "sip:anna@example.com" && bare.senderName == "Anna")
            #expect(bare.callID == "c1" && bare.distinction == "7 x")
        }
        var letter = try letter("text/plain", Array("Tea?\r\n".utf8))
        letter.wantedReceipts = ["positive-delivery", "display"]
        let read = try #require(try InstantMessage(message("message/cpim", letter.body())))
        #expect(read.content == .text("Tea?\r\n") && read.messageID == "m1" && read.wantsDelivery && read.wantsDisplay)
        // What an envelope says of its sender proves nothing.
        #expect(read.sender.bytes.text == "sip:anna@example.com")
    }

    @Test func `a receipt comes bare or in an envelope, and asks for none`() throws {
        let receipt = DispositionNotification(of: "m0", isDisplayed: true)
        let body = receipt.body(dateTime: "2024-05-01T10:00:00Z")
        #expect(try InstantMessage(message("message/imdn+xml", body))?.content == .receipt(receipt))
        var letter = try letter(DispositionNotification.type, body)
        letter.wantedReceipts = ["positive-delivery"]
        let read = try #require(try InstantMessage(message("message/cpim", letter.body())))
        #expect(read.content == .receipt(receipt) && !read.wantsDelivery)
    }

    @Test(
        arguments: [
            ("<state>active</state><contenttype>text/plain</contenttype><refresh>90</refresh>", true, 90),
            ("<state>idle</state>", false, nil), ("<state>thinking</state><refresh>-1</refresh>", false, nil),
        ] as [(String, Bool, Int?)]
    )
    func `that somebody writes is read, and written as it is read`(state: String, isActive: Bool, refresh: Int?) throws
    {
        let body = "<isComposing xmlns='urn:ietf:params:xml:ns:im-iscomposing'>\(state)</isComposing>"
        let read = try ComposingState(parsing: Bytes(body))
        #expect(read == ComposingState(isActive: isActive, refresh: refresh))
        #expect(try ComposingState(parsing: read.body[...]) == read)
        #expect(try InstantMessage(message(ComposingState.type, Array(body.utf8)))?.content == .composing(read))
        #expect(throws: SIPError.self) { try ComposingState(parsing: Bytes("<isComposing/>")) }
    }

    @Test(
        arguments: [
            ("mixed", ["image/png", "text/plain", "text/plain"], "1"), ("mixed", ["", "text/plain"], "0"),
            ("alternative", ["text/plain", "text/plain", "text/html"], "1"), ("mixed", ["image/png"], nil),
            ("mixed", ["text/plain\r\nContent-Transfer-Encoding: base64", "text/plain"], "1"),
        ] as [(String, [String], String?)]
    )
    func `of several parts the first that is taken is the message, of alternatives the last`(
        kind: String,
        types: [String],
        text: String?
    ) throws {
        let parts = types.enumerated().map { index, type in
            "--x\r\n\(type.isEmpty ? "" : "Content-Type: \(type)\r\n")\r\n\(index)\r\n"
        }
        let request = try message("multipart/\(kind);boundary=x", Array((parts.joined() + "--x--\r\n").utf8))
        #expect(try Capabilities.phone.refusal(of: request) == nil)
        #expect(try InstantMessage(request)?.content == text.map { .text($0) })
    }

    @Test func `another type is not taken, and what breaks its grammar is refused`() throws {
        #expect(try InstantMessage(message("image/png", [1])) == nil)
        #expect(try InstantMessage(message("message/cpim", letter("image/png", [1]).body())) == nil)
        #expect(throws: SIPError.self) { try InstantMessage(message("message/cpim", [1])) }
        #expect(throws: SIPError.self) { try InstantMessage(message("message/imdn+xml", Array("<a/>".utf8))) }
        var wrong = try letter("text/plain", [])
        wrong.messageID = "a\r\nX: y"
        #expect(throws: SIPError.self) { try wrong.body() }
    }

    @Test(arguments: [false, true])
    func `what cannot be read, or is of no type that is taken, is refused and not told`(answers: Bool) throws {
        var world = VirtualNetwork()
        _ = try world.add("alice")
        _ = try world.add("bob") { $0.answersMessages = answers }
        let bob = try SIPURI("sip:bob@192.0.2.2")
        let bodies = [try letter("image/png", [1]).body(), Array("From: a".utf8), try letter("text/plain", []).body()]
        for body in bodies {
            _ = try world.with(0) { agent, now in
                try agent.send(.message, to: bob, type: CPIMMessage.type, body: body, at: now)
            }
            world.run(for: .seconds(1))
        }
        #expect(world.words(0) == ["response 415", "response 400"] + (answers ? ["response 200"] : []))
        #expect(world.words(1).count == 1)
    }

    @Test func `a message that is to be kept first is answered when it is, and once`() throws {
        var world = VirtualNetwork()
        _ = try world.add("alice")
        _ = try world.add("bob") { $0.answersMessages = false }
        let bob = try SIPURI("sip:bob@192.0.2.2")
        for text in ["kept", "refused"] {
            _ = try world.with(0) { agent, now in
                try agent.send(.message, to: bob, type: "text/plain", body: Array(text.utf8), at: now)
            }
            world.run(for: .seconds(3))
            // It was sent again and again meanwhile, and told once.
            let waiting = world.nodes[1].events.compactMap { event -> (SIPMessage, TransactionID)? in
                if case .message(_, let request, let transaction?) = event { (request, transaction) } else { nil }
            }
            let (message, transaction) = try #require(waiting.last)
            #expect(world.words(1) == ["message \(text)"] && world.words(0) == [])
            let status = text == "kept" ? 200 : 480
            world.with(1) { agent, now in agent.answer(message, transaction, status: status, at: now) }
            world.run(for: .seconds(1))
            #expect(world.words(0) == ["response \(status)"])
        }
        world.run(for: .seconds(60))
        #expect(world.nodes.allSatisfy { $0.agent.counts.transactions == TransactionCounts() })
    }
}
