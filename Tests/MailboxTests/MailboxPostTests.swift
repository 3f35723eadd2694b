import SharedCore
import Testing

@testable import Mailbox

/// Files of posts.
@Suite struct MailboxPostTests {
    @Test func `a line is a message or an invitation, with its script`() throws {
        let posts = try MailboxPost.parse(
            lines: """
                {"callID":"1","from":"sip:ada@example.org","text":"Zürich"}

                {"callID":"2","messageID":"m2","room":"sip:r@example.org","from":"sip:b@example.org","text":"hi","delayMs":250}
                {"room":"sip:r@example.org","from":"sip:b@example.org","subject":"tea","duplicates":2,"disconnectAfter":true}
                """
        )
        #expect(
            try posts == [
                MailboxPost(.message(IncomingMessage(callID: "1", sender: "sip:ada@example.org", text: "Zürich"))),
                MailboxPost(
                    .message(
                        IncomingMessage(
                            callID: "2",
                            messageID: "m2",
                            room: "sip:r@example.org",
                            sender: "sip:b@example.org",
                            text: "hi"
                        )
                    ),
                    delay: .milliseconds(250)
                ),
                MailboxPost(
                    .invitation(
                        RoomInvitation(address: "sip:r@example.org", subject: "tea", invitedBy: "sip:b@example.org")
                    ),
                    duplicates: 2,
                    disconnectsAfter: true
                ),
            ]
        )
    }

    @Test(arguments: [
        ("nonsense", "it is no JSON"),
        ("[]", "it is no JSON object"),
        (#"{"callID":"1","text":"t"}"#, "it has no from"),
        (#"{"callID":"1","from":"f"}"#, "it has no text"),
        (#"{"from":"f","text":"t"}"#, "it has no room"),
        (#"{"callID":1,"from":"f","text":"t"}"#, "callID is of another type"),
        (#"{"callID":"","from":"f","text":"t"}"#, "cannot be acknowledged"),
        (#"{"callID":"1","from":"f","text":"t","delay":1}"#, "there is no member delay."),
        (#"{"callID":"1","from":"f","text":"t","delayMs":-1}"#, "Give 0 to 86400000 ms"),
        (#"{"callID":"1","from":"f","text":"t","delayMs":9223372036854775807}"#, "Give 0 to 86400000 ms"),
        (#"{"callID":"1","from":"f","text":"t","duplicates":1001}"#, "Give 0 to 1000"),
        (#"{"callID":"0","from":"f","text":"t"}"#, "0 is on line 1 already"),
        (#"{"callID":"1","from":"f","text":"\#(String(repeating: "x", count: 65_536))"}"#, "A line may have 65536"),
    ])
    func `a line that is wrong is named with what is wrong`(line: String, reason: String) throws {
        let error = try #require(throws: MailboxError.self) {
            try MailboxPost.parse(lines: #"{"callID":"0","from":"f","text":"t"}"# + "\n" + line)
        }
        #expect(error.code == .invalidPost)
        #expect(error.message.hasPrefix("Line 2: ") && error.message.contains(reason), "\(error)")
    }

    @Test func `lines may end as on Windows`() throws {
        let lines = ["a", "b"].map { #"{"callID":"\#($0)","from":"sip:a@b","text":"hi"}"# }
        let posts = try MailboxPost.parse(lines: lines.joined(separator: "\r\n") + "\r\n")
        let messages = ["a", "b"].map { IncomingMessage(callID: $0, sender: "sip:a@b", text: "hi") }
        #expect(try posts == messages.map { try MailboxPost(.message($0)) })
    }
}
