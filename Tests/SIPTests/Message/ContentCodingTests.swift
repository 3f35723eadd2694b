import CallBasics
import Foundation
import SIPTesting
import Testing

@testable import SIP

/// Bodies that come deflated, those of others among them, and what only says so.
@Suite struct ContentCodingTests {
    private func fixture(_ name: String) throws -> [UInt8] { Array(try Fixture.data("deflate/\(name)")) }

    private func request(_ method: String = "MESSAGE", _ headers: String..., body: [UInt8]) throws -> [UInt8] {
        var bytes = Messages.lines("\(method) sip:alice@192.0.2.1 SIP/2.0")
        bytes += Messages.lines("Via: SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK1", "From: <sip:bob@192.0.2.2>;tag=1")
        bytes += Messages.lines("To: <sip:alice@192.0.2.1>", "Call-ID: c1", "CSeq: 1 \(method)")
        bytes += Messages.lines("Contact: <sip:bob@192.0.2.2>") + headers.flatMap { Messages.lines($0) }
        return bytes + Messages.lines("Content-Length: \(body.count)", "") + body
    }

    /// What an agent tells and answers.
    private func take(_ bytes: [UInt8]) throws -> (events: [AgentEvent], answer: SIPMessage?) {
        var world = VirtualNetwork()
        let alice = try world.add("alice")
        let bob = try #require(SocketAddress(host: "192.0.2.2", port: 5060))
        let address = world.nodes[alice].address
        world.handle(.datagram(bytes, local: address, remote: bob), at: .agent(alice))
        return (world.takeEvents(alice), try world.sent.first.map { try SIPMessage(datagram: $0.bytes) })
    }

    @Test func `a receipt that linphone deflated is read`() throws {
        var message = try SIPMessage(datagram: try fixture("linphone-imdn.sip"))
        try message.inflateBody()
        #expect(message.wasDeflated && message.first(.contentEncoding) == nil)
        guard case .receipt(let receipt)? = try InstantMessage(message)?.content else {
            return _ = Issue.record("no receipt")
        }
        #expect(receipt.messageID == "nWQA3DnLAa" && receipt.status == .delivered)
        // What is written has the plain body, and its length.
        var written: [UInt8] = []
        message.serialize(into: &written)
        let again = try SIPMessage(datagram: written)
        #expect(again.body == message.body && again.first(.contentEncoding) == nil)
    }

    @Test(arguments: ["deflate", "Deflate", "identity, deflate"])
    func `a text is read in its plain form, and told to have been deflated`(encoding: String) throws {
        let taken = try take(
            try request("MESSAGE", "Content-Type: text/plain", "e: \(encoding)", body: fixture("text.z"))
        )
        #expect(taken.answer?.statusCode == 200)
        guard case .message(let message, let request, _)? = taken.events.first else {
            return _ = Issue.record("no message")
        }
        #expect(message.content == .text("Grüße") && request.wasDeflated && request.body == Array("Grüße".utf8))
    }

    @Test func `a text in an envelope may be deflated as a whole, or in it`() throws {
        let head = "From: <sip:a@b>\r\nTo: <sip:c@d>\r\n\r\nContent-Type: text/plain\r\n"
        let inner = Array("\(head)Content-Encoding: deflate\r\n\r\n".utf8) + (try fixture("text.z"))
        let message = try SIPMessage(datagram: request("MESSAGE", "Content-Type: message/cpim", body: inner))
        #expect(try InstantMessage(message)?.content == .text("Grüße"))
        let other = Array("\(head)Content-Encoding: br\r\n\r\nx".utf8)
        #expect(
            try InstantMessage(SIPMessage(datagram: request("MESSAGE", "Content-Type: message/cpim", body: other)))
                == nil
        )
    }

    @Test func `as much is inflated as a message may be long, and no more`() throws {
        #expect(try ContentCoding.inflate(fixture("limit.z")[...]).count == 65_536)
        for name in ["beyond.z", "bomb.z"] {
            let body = try fixture(name)
            #expect(throws: SIPError.self) { try ContentCoding.inflate(body[...]) }
            let taken = try take(
                try request("MESSAGE", "Content-Type: text/plain", "Content-Encoding: deflate", body: body)
            )
            #expect(taken.answer?.statusCode == 413 && taken.events.isEmpty, "\(name)")
        }
    }

    @Test func `what is not zlib's, or breaks off, or goes on, is no message`() throws {
        let whole = try fixture("text.z")
        var bodies = (1..<whole.count).map { Array(whole.prefix($0)) }
        bodies += [whole + [0], try fixture("raw.z"), try fixture("dictionary.z"), Array("Grüße".utf8)]
        for place in whole.indices {
            bodies.append(whole)
            bodies[bodies.count - 1][place] ^= 0xFF
        }
        for body in bodies {
            let error = #expect(throws: SIPError.self, "\(body)") { try ContentCoding.inflate(body[...]) }
            #expect(error?.code == .badRequest)
        }
        let taken = try take(
            try request("MESSAGE", "Content-Type: text/plain", "Content-Encoding: deflate", body: bodies[5])
        )
        #expect(taken.answer?.statusCode == 400 && taken.events.isEmpty)
    }

    @Test func `random bytes are inflated to nothing, and end`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            let count = Int(generator.next() % 200)
            let body = [0x78, 0x9C] + (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            #expect(throws: SIPError.self) { try ContentCoding.inflate(body[...]) }
        }
    }

    @Test(arguments: ["gzip", "deflate, deflate", "br, deflate"])
    func `another encoding is refused with what would be taken, also where the body may be passed over`(
        encoding: String
    )
        throws
    {
        for more in ["X: y", "Content-Disposition: render;handling=optional"] {
            let taken = try take(
                try request(
                    "MESSAGE",
                    "Content-Type: text/plain",
                    "Content-Encoding: \(encoding)",
                    more,
                    body: fixture("text.z")
                )
            )
            #expect(taken.answer?.statusCode == 415 && taken.events.isEmpty)
            #expect(taken.answer?.values(named: "Accept-Encoding") == ["deflate, identity"])
        }
    }

    @Test func `parts of a body are inflated, each by what it says`() throws {
        let text = try fixture("text.z")
        var body = Array("--b\r\nContent-Type: text/plain\r\nContent-Encoding: deflate\r\n\r\n".utf8) + text
        body += Array("\r\n--b\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\nx\r\n--b--\r\n".utf8)
        let parts = try SIPMessage(
            datagram: request("INVITE", "Content-Type: multipart/mixed;boundary=b", body: body)
        ).bodyParts()
        #expect(parts.map(\.isPlain) == [true, false])
        #expect(parts.first?.bytes.text == "Grüße")
    }
}
