import Foundation
import TestSupport
import Testing

/// Messages between processes, each a run of the tool.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct GroupCommandRealTimeTests {
    private let scratch: Scratch
    private let group: String
    private let runs = Runs()

    /// Runs that end with the test.
    private final class Runs {
        private var started: [ToolRun] = []

        func start(_ arguments: [String]) throws -> ToolRun {
            let run = try ToolRun(arguments)
            started.append(run)
            return run
        }

        deinit {
            for run in started where run.isRunning { run.killAtOnce() }
        }
    }

    init() throws {
        scratch = try Scratch()
        group = scratch.file("group")
    }

    private func place(_ name: String) -> [String] { ["--group", group, "--name", name] }

    /// A server that is ready.
    private func serve(_ name: String, _ options: String...) throws -> ToolRun {
        let run = try runs.start(["group", "serve", "--json"] + place(name) + options)
        run.wait { run.errors.contains("Serving") }
        try #require(run.isRunning, "\(run.errors)")
        return run
    }

    private func send(_ name: String, _ body: String, _ options: String...) throws -> ToolRun {
        let run = try ToolRun(["group", "send"] + place(name) + ["--body", body] + options)
        run.wait()
        return run
    }

    /// A listener that has begun to hear what is said of `topic`.
    private func listen(_ name: String, hearing topic: String, _ options: String...) throws -> ToolRun {
        let run = try runs.start(["group", "listen", "--json"] + place(name) + options)
        try waitUntilHeard(run, name, topic)
        return run
    }

    /// Sends a word until it is heard.
    private func waitUntilHeard(_ listener: ToolRun, _ name: String, _ topic: String) throws {
        let word = "\"heard \(UUID().uuidString)\""
        for _ in 0..<100 {
            #expect(try send(name, word, "--topic", topic).status == 0)
            if listener.output.contains(word) { break }
        }
        try #require(listener.output.contains(word), "\(listener.errors)")
    }

    private func status() throws -> [[String: Any]] {
        let run = try ToolRun.finished("group", "status", "--group", group, "--json")
        #expect(run.status == 0)
        return try run.jsonLines()
    }

    /// Bodies of messages, without the words that tell whether a listener hears.
    private func bodies(_ run: ToolRun) throws -> [String] {
        try run.jsonLines().compactMap { $0["body"] as? String }.filter { !$0.hasPrefix("heard ") }
    }

    @Test func `a message is printed with its sender as the kernel knows it`() throws {
        let server = try serve("news")
        let sender = try send("news", #"{"b":[1,2.5,null,true],"a":"é"}"#, "--json")
        #expect(sender.status == 0)
        let sent = try sender.json()
        #expect(sent["sent"] as? Bool == true && sent["pid"] as? Int32 == server.processIdentifier)
        server.wait { server.output.hasSuffix("\n") }
        let line = try #require(try server.jsonLines().first)
        #expect(line["kind"] as? String == "message")
        #expect(line["pid"] as? Int32 == sender.processIdentifier)
        #expect(line["uid"] as? UInt32 == geteuid())
        let tool = URL(fileURLWithPath: ToolRun.path).resolvingSymlinksInPath().path
        #expect(line["executable"] as? String == tool)
        #expect(line["topic"] is NSNull && line["blobBytes"] is NSNull)
        #expect(server.output.contains(#""body":{"a":"é","b":[1,2.5,null,true]}"#))
        server.interrupt()
        #expect(server.wait() == 0)
        #expect(try status().isEmpty)
    }

    @Test func `an open file is passed with its facts and without its name`() throws {
        let server = try serve("news")
        try Data(repeating: 7, count: 12345).write(to: URL(fileURLWithPath: scratch.file("secret-name")))
        #expect(try send("news", "1", "--file", scratch.file("secret-name")).status == 0)
        server.wait { server.output.hasSuffix("\n") }
        let files = try #require(try server.jsonLines().first?["files"] as? [[String: Any]])
        #expect(files.count == 1 && files[0]["bytes"] as? Int == 12345)
        #expect(files[0]["kind"] as? String == "file" && files[0]["access"] as? String == "read")
        #expect(!server.output.contains("secret-name"))
    }

    @Test func `a request is answered, with its own body under --echo`() throws {
        let (plain, echo) = (try serve("plain"), try serve("echo", "--echo"))
        #expect(try send("plain", "[1]", "--request").output == "{\"received\":true}\n")
        let body = #"{"a":[-1,0.5,"x\n"],"z":{}}"#
        #expect(try send("echo", body, "--request", "--json").output == body + "\n")
        #expect(try send("echo", "-5", "--request").output == "-5\n")
        let numbers = "[9223372036854775807,-9007199254740993,1.5e+300]"
        #expect(try send("echo", numbers, "--request").output == numbers + "\n")
        #expect(try plain.jsonLines().first?["kind"] as? String == "request")
        #expect(try echo.jsonLines().count == 3)
    }

    @Test func `a server that starts at the same moment is waited for, and none that never comes`() throws {
        let server = try runs.start(["group", "serve", "--json"] + place("news"))
        #expect(try send("news", "1").status == 0)
        server.wait { server.output.hasSuffix("\n") }
        #expect(try server.jsonLines().count == 1)
        let lost = try send("nobody", "1", "--timeout", "50")
        #expect(lost.status == 1 && lost.errors.contains("nobody"))
    }

    @Test func `a server that is stopped in its tracks fails a request after its time-out`() throws {
        let server = try serve("slow")
        kill(server.processIdentifier, SIGSTOP)
        let sender = try send("slow", "1", "--request", "--timeout", "200")
        #expect(sender.status == 1 && sender.output.isEmpty)
        #expect(sender.errors.contains("slow") && sender.errors.contains("0.2 seconds"), "\(sender.errors)")
        kill(server.processIdentifier, SIGCONT)
        #expect(try send("slow", "2", "--request").status == 0)
    }

    @Test func `listeners get their topic and what has none, in order`() throws {
        _ = try serve("news")
        let calls = try listen("news", hearing: "calls", "--topic", "calls")
        let all = try listen("news", hearing: "weather")
        for (word, topic) in [("1", "calls"), ("2", "weather"), ("3", "calls"), ("4", nil)] {
            let options = topic.map { ["--topic", $0] } ?? []
            let run = try ToolRun(["group", "send"] + place("news") + ["--body", "\"\(word)\""] + options)
            #expect(run.wait() == 0)
            // Senders are not in order among themselves.
            all.wait { all.output.contains("\"body\":\"\(word)\"") }
        }
        calls.wait { calls.output.contains("\"body\":\"4\"") }
        #expect(try bodies(calls) == ["1", "3", "4"])
        #expect(try bodies(all) == ["1", "2", "3", "4"])
        #expect(try calls.jsonLines().last?["topic"] is NSNull)
        for listener in [calls, all] {
            listener.interrupt()
            #expect(listener.wait() == 0)
        }
    }

    @Test func `a listener waits for its server, and outlives it when it is killed`() throws {
        let listener = try runs.start(["group", "listen", "--json"] + place("news"))
        let first = try serve("news")
        try waitUntilHeard(listener, "news", "any")
        first.killAtOnce()
        let left = try status()
        #expect(left.count == 1 && left[0]["state"] as? String == "stale" && left[0]["pid"] is NSNull)
        let orphan = try send("news", "1")
        #expect(orphan.status == 1 && orphan.errors.contains("Start its server"), "\(orphan.errors)")
        let second = try serve("news")
        #expect(try status()[0]["state"] as? String == "live")
        #expect(try status()[0]["pid"] as? Int32 == second.processIdentifier)
        try waitUntilHeard(listener, "news", "any")
        #expect(listener.errors.contains("Waiting for news") && listener.isRunning)
        listener.interrupt()
        #expect(listener.wait() == 0)
    }

    @Test func `a listener that waits ends at Ctrl-C`() throws {
        let listener = try runs.start(["group", "listen"] + place("news"))
        FileWatch.wait(for: group, byteCount: 0)
        listener.interrupt()
        #expect(listener.wait() == 0 && listener.output.isEmpty)
    }

    @Test func `a live server keeps its name, and another name is free`() throws {
        let first = try serve("news")
        let second = try ToolRun(["group", "serve"] + place("news"))
        #expect(second.wait() == 1)
        #expect(second.errors.contains("\(first.processIdentifier)"), "\(second.errors)")
        #expect(second.errors.split(separator: "\n").count == 1)
        let other = try serve("weather")
        let listed = try status()
        #expect(listed.map { $0["name"] as? String } == ["news", "weather"])
        #expect(listed.map { $0["pid"] as? Int32 } == [first.processIdentifier, other.processIdentifier])
        #expect(try send("news", "1", "--request").status == 0)
        let table = try ToolRun.finished("group", "status", "--group", group)
        #expect(table.output.contains("NAME") && table.output.contains("live"))
    }

    @Test func `what is no socket is no server and is left alone`() throws {
        _ = try serve("news")
        try Data("mine".utf8).write(to: URL(fileURLWithPath: group + "/notes"))
        #expect(try status().count == 1)
        let run = try ToolRun(["group", "serve"] + place("notes"))
        #expect(run.wait() == 1 && run.errors.contains("notes"))
        #expect(try String(contentsOfFile: group + "/notes", encoding: .utf8) == "mine")
    }

    @Test func `a body larger than the server takes is refused before it is sent`() throws {
        let server = try serve("news")
        for (count, status) in [(900_000, Int32(0)), (1_100_000, 1), (17 << 20, 64)] {
            let quote = Data([UInt8(ascii: "\"")])
            let body = quote + Data(repeating: UInt8(ascii: "x"), count: count) + quote
            try body.write(to: URL(fileURLWithPath: scratch.file("body")))
            let command =
                "'\(ToolRun.path)' group send --group '\(group)' --name news --body - <'\(scratch.file("body"))'"
            let run = try ToolRun(["-c", command], program: "/bin/sh")
            #expect(run.wait() == status, "\(run.errors)")
            if status == 1 { #expect(run.errors.contains("1048576"), "\(run.errors)") }
        }
        #expect(try send("news", "1", "--request").status == 0)
        func lineCount() -> Int { server.output.utf8.count { $0 == UInt8(ascii: "\n") } }
        server.wait { lineCount() == 2 }
        #expect(lineCount() == 2)
    }
}
