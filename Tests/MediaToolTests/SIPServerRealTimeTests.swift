import Foundation
import TestSupport
import Testing

/// Accounts, calls and texts through `sip server` on 127.0.0.1: three runs of the tool.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPServerRealTimeTests {
    private let scratch: Scratch
    private let server: ToolRun
    /// Where it listens, as the value of a Route.
    private let way: String

    init() throws {
        scratch = try Scratch()
        try #"{"alice": {"password": "wonderland"}, "bob": {"password": "builder"}, "carol": {}}"#
            .write(toFile: scratch.file("users.json"), atomically: true, encoding: .utf8)
        let rules = [
            #"{"method": "MESSAGE", "to": "carol", "do": "answer", "code": 603}"#,
            #"{"method": "OPTIONS", "do": "drop", "times": 1}"#,
        ]
        try rules.joined(separator: "\n")
            .write(toFile: scratch.file("script.jsonl"), atomically: true, encoding: .utf8)
        server = try ToolRun([
            "sip", "server", "--domain", "example.test", "--users", scratch.file("users.json"), "--script",
            scratch.file("script.jsonl"), "--local", "127.0.0.1:0", "--algorithm", "SHA-256", "--json",
        ])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let names = try #require(try server.jsonLines().first?["addresses"] as? [String])
        way = "sip:\(try #require(names.first?.split(separator: " ").last));lr"
    }

    /// The arguments that say who somebody is.
    private func account(_ name: String) -> [String] {
        ["--account", "sip:\(name)@example.test", "--proxy", way, "--json"]
    }

    private func run(_ arguments: [String], as name: String, password: String) throws -> ToolRun {
        try ToolRun(["sip"] + arguments + account(name), environment: ["MEDIA_TOOL_SIP_PASSWORD": password])
    }

    @Test(arguments: thorough(["udp", "tcp"], quick: ["tcp"]))
    func `a call between two accounts goes through the server`(transport: String) throws {
        let answering = try run(
            ["answer", "--echo", "--calls", "1", "--transport", transport],
            as: "bob",
            password: "builder"
        )
        try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
        let calling = try run(
            ["call", "sip:bob@example.test", "--seconds", "1", "--dtmf", "7"],
            as: "alice",
            password: "wonderland"
        )
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        #expect(try answering.jsonLines().last?["dtmf"] as? String == "7")
        server.interrupt()
        #expect(server.wait() == 0)
        let last = try #require(try server.jsonLines().last)
        #expect(last["event"] as? String == "closed")
        // Both have taken their bindings away.
        #expect(last["bindings"] as? Int == 0)
    }

    @Test func `wrong passwords, absent users and the script's answers are told`() throws {
        let refused = try run(["register", "--once"], as: "alice", password: "queen")
        #expect(refused.wait() == 1)
        let absent = try run(["call", "sip:bob@example.test"], as: "alice", password: "wonderland")
        #expect(absent.wait() == 1)
        #expect(try absent.json()["code"] as? Int == 480)
        let text = try run(["message", "sip:carol@example.test", "Hello"], as: "alice", password: "wonderland")
        #expect(text.wait() == 1)
        #expect(text.errors.contains("603"), "\(text.errors)")
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test func `a peer is asked as often as was said, and one answer is enough`() throws {
        let place = try server.address(by: "udp")
        let words = ["sip", "options", "sip:\(place)", "--transport", "udp", "--json"]
        // The first question is dropped, and not repeated in so short a time.
        let asked = try ToolRun(words + ["--count", "3", "--interval", "0.01", "--timeout", "2", "--t1", "5000"])
        #expect(asked.wait() == 0, "\(asked.errors)")
        let answers = try asked.jsonLines()
        #expect(answers.map { $0["code"] as? Int } == [200, 200], "\(answers)")
        for answer in answers {
            let keys = ["code", "phrase", "roundTripMs", "targets", "allow", "accept", "supported", "server"]
            #expect(Set(answer.keys) == Set(keys))
            #expect(answer["targets"] as? [String] == ["udp \(place)"])
            #expect(try #require(answer["roundTripMs"] as? Double) < 2000)
        }
        // Ctrl-C ends it between two questions.
        let patient = try ToolRun(words + ["--count", "2", "--interval", "60"])
        #expect(patient.printed(#""code":200"#), "\(patient.errors)")
        patient.interrupt()
        #expect(patient.wait() == 0)
        #expect(try patient.jsonLines().count == 1)
        server.interrupt()
        #expect(server.wait() == 0)
        // Of four, the one that was dropped is not counted.
        #expect(try server.jsonLines().last?["requests"] as? Int == 3)
    }

    @Test func `a users file or a script that is none is told with its line`() throws {
        try "{\"do\": \"drop\"}\n{\"do\": \"sing\"}".write(
            toFile: scratch.file("bad.jsonl"),
            atomically: true,
            encoding: .utf8
        )
        let script = try ToolRun.finished("sip", "server", "--domain", "a.test", "--script", scratch.file("bad.jsonl"))
        #expect(script.status == 1 && script.errors.contains("line 2"), "\(script.errors)")
        let users = try ToolRun.finished("sip", "server", "--domain", "a.test", "--users", scratch.file("bad.jsonl"))
        #expect(users.status == 1 && users.errors.contains("lists no users"), "\(users.errors)")
        server.interrupt()
        #expect(server.wait() == 0)
    }
}
