import Foundation
import Testing

@testable import SIP

@Suite struct CPIMMessageTests {
    @Test func `each file is read, or refused, as it has to be`() throws {
        let index = try #require(try Fixture.json("cpim/index.json") as? [String: [String: Any]])
        #expect(index.count == 9)
        for (name, expected) in index {
            let bytes = Bytes(Array(try Fixture.data("cpim/\(name)"))[...])
            if expected["valid"] as? Bool == false || expected["valid"] as? String == "limit" {
                #expect(throws: SIPError.self, "\(name)") { try CPIMMessage(parsing: bytes) }
                continue
            }
            let message = try CPIMMessage(parsing: bytes)
            if let id = expected["message_id"] { #expect(message.messageID == id as? String, "\(name)") }
            if let body = expected["body"] as? String {
                #expect(String(decoding: message.content, as: UTF8.self) == body)
            }
            if let wants = expected["wants"] as? [String] { #expect(message.wantedReceipts == wants, "\(name)") }
            if let count = expected["body_length"] as? Int { #expect(message.content.count == count, "\(name)") }
        }
    }

    @Test func `the example of RFC 5438 is read without the line that it leaves out`() throws {
        let message = try CPIMMessage(parsing: Bytes(Array(try Fixture.data("cpim/rfc5438-hello.cpim"))[...]))
        #expect(message.messageID == "34jk324j" && message.contentType == "text/plain")
        #expect(message.wantedReceipts == ["positive-delivery", "negative-delivery"])
        #expect(message.value("From") == "Alice <im:alice@example.com>")
        #expect(String(decoding: message.content, as: UTF8.self).hasPrefix("Hello World"))
    }

    @Test func `a prefix is what its NS says, and any cut is read or refused`() throws {
        let text = "From: <sip:a@b>\nNS: r <urn:ietf:params:imdn>\nr.Message-ID: 7\n\nContent-Type: text/plain\n\nx"
        #expect(try CPIMMessage(parsing: Bytes(text)).messageID == "7")
        let all = Array(text.utf8)
        for end in all.indices { _ = try? CPIMMessage(parsing: all[..<end]) }
        let many = String(repeating: "X: y\n", count: 100) + "\n\n"
        #expect(throws: SIPError.self) { try CPIMMessage(parsing: Bytes(many)) }
    }
}
