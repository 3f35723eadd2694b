import NIOCore
import NIOEmbedded
import SharedCore
import Testing

@testable import Mailbox

/// The protocol's lines, and how a stream is cut into them.
@Suite struct MailboxLineTests {
    static let requests: [MailboxRequest] = [
        .fetch, .listen(true), .listen(false), .acknowledge("call/1"),
        .action(MessageAction(id: "7", callID: "1", kind: .reply("grüezi\n\"you\""))),
        .action(MessageAction(id: "8", callID: "1", kind: .markAsSeen)),
    ]

    @Test(
        arguments: zip(
            requests,
            [
                #"{"fetch":true}"#, #"{"listen":true}"#, #"{"listen":false}"#, #"{"acknowledge":"call/1"}"#,
                #"{"action":{"callID":"1","id":"7","kind":"reply","text":"grüezi\n\"you\""}}"#,
                #"{"action":{"callID":"1","id":"8","kind":"markAsSeen"}}"#,
            ]
        )
    )
    func `a request is written as documented and read back`(request: MailboxRequest, line: String) throws {
        #expect(String(decoding: MailboxLine.encode(request), as: UTF8.self) == line)
        #expect(try MailboxLine.decode(MailboxRequest.self, from: ByteBuffer(string: line)) == request)
    }

    @Test(
        arguments: zip(
            [
                MailboxResponse.pending(3), .performed("7"), .error("no"),
                .post(.message(IncomingMessage(callID: "1", room: "sip:r@b", sender: "sip:a@b", text: "t"))),
                .post(.invitation(RoomInvitation(address: "sip:r@b", subject: "s", invitedBy: "sip:a@b"))),
            ],
            [
                #"{"pending":3}"#, #"{"performed":"7"}"#, #"{"error":"no"}"#,
                #"{"callID":"1","from":"sip:a@b","room":"sip:r@b","text":"t"}"#,
                #"{"from":"sip:a@b","room":"sip:r@b","subject":"s"}"#,
            ]
        )
    )
    func `a response is written as documented and read back`(response: MailboxResponse, line: String) throws {
        #expect(String(decoding: response.line, as: UTF8.self) == line)
        #expect(try MailboxLine.decode(MailboxResponse.self, from: ByteBuffer(string: line)) == response)
    }

    @Test func `every truncation of a line is an error`() {
        for request in Self.requests {
            let line = MailboxLine.encode(request)
            for count in 0..<line.count {
                #expect(throws: MailboxError.self, "\(request) cut at \(count)") {
                    try MailboxLine.decode(MailboxRequest.self, from: ByteBuffer(bytes: line.prefix(count)))
                }
            }
        }
    }

    @Test func `random bytes and deep nesting are errors`() {
        var generator = SplitMix64(seed: 4)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0..<64, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            #expect(throws: MailboxError.self, "\(bytes)") {
                try MailboxLine.decode(MailboxRequest.self, from: ByteBuffer(bytes: bytes))
            }
        }
        let deep = ByteBuffer(repeating: UInt8(ascii: "["), count: MailboxLine.mostBytes)
        #expect(throws: MailboxError.self) { try MailboxLine.decode(MailboxResponse.self, from: deep) }
    }

    @Test func `any split and any coalescing give the same lines`() throws {
        let text = "first\n\nsecond, longer\n"
        for size in 1...text.utf8.count {
            let channel = EmbeddedChannel(handler: ByteToMessageHandler(MailboxLineDecoder()))
            var rest = ByteBuffer(string: text)
            while let part = rest.readSlice(length: min(size, max(rest.readableBytes, 1))) {
                try channel.writeInbound(part)
            }
            var lines: [String] = []
            while let line = try channel.readInbound(as: ByteBuffer.self) { lines.append(String(buffer: line)) }
            #expect(lines == ["first", "", "second, longer"], "parts of \(size) bytes")
            _ = try channel.finish()
        }
    }

    @Test(arguments: [1, 1000, 65_537]) func `a line of one byte too many is refused`(size: Int) throws {
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(MailboxLineDecoder()))
        try channel.writeInbound(ByteBuffer(string: String(repeating: "x", count: MailboxLine.mostBytes) + "\n"))
        #expect(try channel.readInbound(as: ByteBuffer.self)?.readableBytes == MailboxLine.mostBytes)
        var rest = ByteBuffer(repeating: UInt8(ascii: "x"), count: MailboxLine.mostBytes + 1)
        let error = #expect(throws: MailboxError.self) {
            while rest.readableBytes > 0, let part = rest.readSlice(length: min(size, rest.readableBytes)) {
                try channel.writeInbound(part)
            }
        }
        #expect(error?.code == .protocolViolation)
        // Whether it is told once more is not asked here.
        _ = try? channel.finish()
    }

    @Test func `what comes before the end without an end of line is left out`() throws {
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(MailboxLineDecoder()))
        try channel.writeInbound(ByteBuffer(string: "whole\nhal"))
        let leftOver = try channel.finish()
        guard case .leftOvers(let inbound, _, _) = leftOver else {
            Issue.record("nothing was read")
            return
        }
        #expect(inbound.count == 1)
    }
}
