import Foundation
import Mailbox
import MediaEngine
import SharedCore

import TestSupport
import Testing

/// `media-tool core mailbox` as a process of its own.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct CoreMailboxCommandRealTimeTests {
    @Test func `a mailbox serves its file, tells what happens, and ends with its counts`()
        async throws
    {
        let scratch = try Scratch()
        let file = scratch.file("messages.jsonl")
        try """
        {"callID":"1","from":"sip:ada@example.org","text":"hello"}
        {"room":"sip:r@example.org","from":"sip:ada@example.org","delayMs":20}
        {"callID":"later","from":"sip:ada@example.org","text":"hello","delayMs":3600000}
        """.write(toFile: file, atomically: true, encoding: .utf8)
        let run = try ToolRun(["core", "mailbox", "--port", "0", "--messages", file, "--json"])
        run.wait { run.output.contains("\n") }
        let listening = try #require(try events(run).first)
        #expect(listening["event"] as? String == "listening" && listening["held"] as? Int == 3)
        let port = try #require(listening["port"] as? Int)

        let service = MailboxService(host: "127.0.0.1", port: port)
        let (keys, key) = AsyncStream.makeStream(of: String.self)
        await service.start(
            CoreContext(
                epoch: Epoch(rawValue: 1),
                deliver: { message in
                    key.yield(message.callID)
                    return true
                },
                deliverInvitation: { invitation in
                    key.yield(invitation.address)
                    return true
                },
                recordCall: { _ in }
            )
        )
        let running = Task { try await service.run() }
        var received: [String] = []
        for await next in keys {
            received.append(next)
            if received.count == 2 { break }
        }
        #expect(received.sorted() == ["1", "sip:r@example.org"])
        running.cancel()
        _ = await running.result
        try await service.perform(MessageAction(id: "a", callID: "1", kind: .reply("hello, too")))
        await service.stop()
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")

        let all = try events(run)
        #expect(all.contains { $0["event"] as? String == "acknowledged" && $0["callID"] as? String == "1" })
        #expect(
            all.contains { $0["event"] as? String == "acknowledged" && $0["room"] as? String == "sip:r@example.org" }
        )
        #expect(all.contains { $0["event"] as? String == "performed" && $0["text"] as? String == "hello, too" })
        let closed = try #require(all.last)
        #expect(closed["event"] as? String == "closed" && closed["held"] as? Int == 1)
        #expect(closed["acknowledged"] as? Int == 2 && closed["actions"] as? Int == 1)
    }

    @Test(arguments: ["mailbox", "main", "calls"]) func `a core that prints for a reader ends with it`(
        command: String
    ) throws {
        let scratch = try Scratch()
        let group = scratch.file("group")
        // It answers nobody, so that a core has nothing more to print.
        let registrar = try UDPSocket(bind: .loopback(port: 0))
        let place = ["--registrar", "sip:127.0.0.1:\(registrar.localAddress.port)"]
        let add = ["sip", "account", "add", "--group", group, "--account", "sip:bob@127.0.0.1"]
        #expect(try ToolRun(add + place).wait() == 0)
        let options =
            command == "mailbox"
            ? ["--port", "0", "--messages", "/dev/null"]
            : ["--group", group, "--local", "127.0.0.1:0", "--transport", "udp"]
        // `core calls` ends by itself after 15 s.
        let shell = #"{ timeout 12 "$0" core "$@"; echo "status $?" >&2; } | head -1"#
        let run = try ToolRun(["-c", shell, ToolRun.path, command] + options, program: "/bin/sh")
        run.wait()
        #expect(run.errors.contains("status 1\n") && !run.errors.contains("Error"), "\(run.errors)")
        #expect(run.output.split(separator: "\n").count == 1, "\(run.output)")
        withExtendedLifetime(registrar) {}
    }

    @Test func `a line that is wrong is named, with its remedy`() throws {
        let scratch = try Scratch()
        let file = scratch.file("messages.jsonl")
        try #"{"callID":"1","from":"sip:ada@example.org"}"#.write(toFile: file, atomically: true, encoding: .utf8)
        let run = try ToolRun.finished("core", "mailbox", "--port", "0", "--messages", file)
        #expect(run.status == 1 && run.output.isEmpty)
        #expect(run.errors.contains("Line 1: this is no message: it has no text. Write"), "\(run.errors)")
    }

    @Test func `a port that is taken is a failure, and a missing option wrong usage`() async throws {
        let server = try await MailboxServer.start()
        let run = try ToolRun.finished("core", "mailbox", "--port", "\(server.port)", "--messages", "/dev/null")
        #expect(run.status == 1 && run.errors.contains("Choose another port"), "\(run.errors)")
        await server.stop()
        #expect(try ToolRun.finished("core", "mailbox", "--port", "0").status == 64)
    }

    @Test func `a mailbox that is not there is told once, on standard error`() async throws {
        let server = try await MailboxServer.start()
        await server.stop()
        let scratch = try Scratch()
        let run = try ToolRun.finished(
            "core",
            "main",
            "--group",
            scratch.file("group"),
            "--mailbox",
            "127.0.0.1:\(server.port)",
            "--seconds",
            "1",
            "--json"
        )
        #expect(run.status == 0)
        #expect(run.errors.components(separatedBy: "is not to be reached").count == 2, "\(run.errors)")
        #expect(!run.output.contains("reached"))
    }

    private func events(_ run: ToolRun) throws -> [[String: Any]] {
        try run.output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }
}
