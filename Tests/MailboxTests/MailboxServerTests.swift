import NIOCore
import NIOEmbedded
import SharedCore
import Testing

@testable import Mailbox

/// Connections of a mailbox, without sockets and in virtual time.
@Suite struct MailboxServerTests {
    private let loop = EmbeddedEventLoop()

    @Test func `what falls due is pushed at that very time`() throws {
        let exchange = MailboxExchange(loop: loop, posts: [try post("1", delay: 30)]) { _ in }
        let channel = try connect(to: exchange)
        try channel.writeInbound(ByteBuffer(string: "{\"listen\":true}\n{\"fetch\":true}\n"))
        #expect(try sent(channel) == [#"{"pending":1}"#])
        loop.advanceTime(by: .milliseconds(29))
        #expect(try sent(channel) == [])
        loop.advanceTime(by: .milliseconds(1))
        #expect(try sent(channel) == [#"{"callID":"1","from":"s","text":"t"}"#])
        exchange.end()
        loop.run()
    }

    @Test func `a client that does not read is sent nothing more, and loses nothing`() throws {
        let exchange = MailboxExchange(loop: loop, posts: try (0..<3).map { try post("\($0)") }) { _ in }
        let channel = try connect(to: exchange)
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        try channel.writeInbound(ByteBuffer(string: "{\"fetch\":true}\n"))
        #expect(try sent(channel) == [])
        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
        #expect(try sent(channel).count == 4)
        exchange.end()
        loop.run()
    }

    @Test(arguments: ["nonsense\n", "{}\n", "{\"fetch\":false}\n", String(repeating: "x", count: 65_537)])
    func `what is not of the protocol is answered with an error, and the connection ends`(text: String) throws {
        let exchange = MailboxExchange(loop: loop, posts: []) { _ in }
        let channel = try connect(to: exchange)
        try channel.writeInbound(ByteBuffer(string: text))
        let lines = try sent(channel)
        #expect(lines.count == 1 && lines[0].hasPrefix(#"{"error":"#), "\(lines)")
        loop.run()
        #expect(!channel.isActive)
        #expect(exchange.state.counts.openConnections == 0)
        exchange.end()
    }

    @Test func `more connections than a mailbox takes are closed`() throws {
        let exchange = MailboxExchange(loop: loop, posts: []) { _ in }
        let channels = try (0..<1025).map { _ in try connect(to: exchange) }
        loop.run()
        #expect(channels.count(where: \.isActive) == 1024 && channels.last?.isActive == false)
        exchange.end()
        loop.run()
        #expect(channels.count(where: \.isActive) == 0)
    }

    private func connect(to exchange: MailboxExchange) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: loop)
        try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(MailboxLineDecoder()))
        try channel.pipeline.syncOperations.addHandler(MailboxServerHandler(exchange: exchange))
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        return channel
    }

    private func sent(_ channel: EmbeddedChannel) throws -> [String] {
        var lines: [String] = []
        while let line = try channel.readOutbound(as: ByteBuffer.self) {
            lines.append(String(String(buffer: line).dropLast()))
        }
        return lines
    }

    private func post(_ callID: String, delay: Int = 0) throws -> MailboxPost {
        try MailboxPost(.message(IncomingMessage(callID: callID, sender: "s", text: "t")), delay: .milliseconds(delay))
    }
}
