import Testing

@testable import SIP

@Suite struct MessageSummaryTests {
    /// RFC 3842, section 5.2.
    @Test func `accounts and counts are read`() throws {
        let summary = try MessageSummary(
            parsing: Bytes(
                "Messages-Waiting: yes\r\nMessage-Account: sip:alice@vmail.example.com\r\n"
                    + "Voice-Message: 2/8 (0/2)\r\nfax-message:0/1\r\n\r\nTo: <alice@atlanta.example.com>\r\n"
            )
        )
        #expect(summary.isWaiting)
        #expect(summary.account == "sip:alice@vmail.example.com")
        #expect(
            summary.counts == [
                "voice-message": .init(new: 2, old: 8, urgentNew: 0, urgentOld: 2),
                "fax-message": .init(new: 0, old: 1, urgentNew: 0, urgentOld: 0),
            ]
        )
    }

    @Test(arguments: ["", "Voice-Message: 1/2", "Messages-Waiting: perhaps", "Messages-Waiting", ":"])
    func `what does not say whether messages wait is refused`(body: String) {
        #expect(throws: SIPError.self) { try MessageSummary(parsing: Bytes(body)) }
    }

    @Test(arguments: ["1", "1/", "/2", "1/2 (3)", "1/2 (3/4", "4294967296/1", "1/2 x", "-1/2"])
    func `counts that are none are passed over`(counts: String) throws {
        let summary = try MessageSummary(parsing: Bytes("Messages-Waiting: no\nVoice-Message: \(counts)\n"))
        #expect(!summary.isWaiting && summary.counts.isEmpty)
    }

    @Test func `lines beyond the limit are passed over`() throws {
        let lines = (0..<10_000).map { "Kind-\($0): 1/1" }.joined(separator: "\n")
        #expect(throws: SIPError.self) { try MessageSummary(parsing: Bytes("Messages-Waiting: no\n\(lines)")) }
        let some = (0..<1000).map { "Kind-\($0): 1/1" }.joined(separator: "\n")
        #expect(try MessageSummary(parsing: Bytes("Messages-Waiting: no\n\(some)")).counts.count == 63)
    }
}
