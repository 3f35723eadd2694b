import Foundation
import Glibc
import TestSupport
import Testing

/// `agent try` with the agents of Examples, as a newcomer runs them.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentTryRealTimeTests {
    /// Debian's, which has its packages.
    static let python = "/usr/bin/python3"
    static let hasWebSockets: Bool = {
        guard let run = try? ProgramRun(python, ["-c", "import websockets"]) else { return false }
        return run.wait() == 0
    }()

    static func example(_ name: String) -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        return root.appending(path: "Examples/\(name)").path
    }

    /// Starts an agent of Examples, and has it talked to for as long as a tone takes, and somewhat more.
    private static func talk(
        with name: String,
        at address: (_ port: UInt16) -> String,
        _ options: [String],
        _ scratch: Scratch
    ) throws -> (run: ToolRun, agent: ProgramRun) {
        let port = try FreePort.pair()
        let agent = try ProgramRun(python, ["-u", example(name), "\(port)"])
        try #require(agent.prints("listening"), "\(agent.output) \(agent.errors)")
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 8000)
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        let run = try ToolRun(["agent", "try", "--to", address(port), "--seconds", "2.5", "--json"] + files + options)
        #expect(run.wait() == 0, "\(run.errors)")
        return (run, agent)
    }

    @Test(.enabled(if: hasWebSockets, "needs python3-websockets"))
    func `an agent of AudioSocket greets, hears keys, and gives back what it hears`() throws {
        let scratch = try Scratch()
        let (run, agent) = try Self.talk(
            with: "agent-audiosocket.py",
            at: { "audiosocket:127.0.0.1:\($0)" },
            ["--dtmf", "5"],
            scratch
        )
        defer { agent.send(SIGKILL) }
        let events = try run.jsonLines().compactMap { $0["event"] as? String }
        #expect(events.first == "connected" && events.contains("speaks") && events.last == "report", "\(events)")
        let report = try #require(try run.jsonLines().last)
        #expect(try #require(report["playedSeconds"] as? Double) > 1.5 && report["malformed"] as? Int == 0, "\(report)")
        #expect(try Tone(frequency: 440).tenths(of: scratch.file("heard.wav")).count { $0 } >= 4)
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
        #expect(agent.prints("key 5"), "\(agent.output)")
    }

    @Test(.enabled(if: hasWebSockets, "needs python3-websockets"))
    func `an agent of Twilio's format is interrupted, and knows what was heard`() throws {
        let scratch = try Scratch()
        let (run, agent) = try Self.talk(
            with: "agent-twilio.py",
            at: { "ws://127.0.0.1:\($0)/ws" },
            ["--parameter", "from=alice", "--record", scratch.file("")],
            scratch
        )
        defer { agent.send(SIGKILL) }
        let lines = try run.jsonLines()
        let marks = lines.filter { $0["event"] as? String == "marked" }
        #expect(marks.count == 10 && marks.count { $0["played"] as? Bool == false } >= 8, "\(marks)")
        let report = try #require(lines.last)
        #expect(report["clears"] as? Int == 1, "\(report)")
        #expect(try #require(report["unheardSeconds"] as? Double) > 7, "\(report)")
        #expect(agent.prints("note 10 was cut off"), "\(agent.output)")
        let recording = try #require(report["recording"] as? String)
        let page = scratch.file("talk.html")
        let drawn = try ToolRun.finished("report", recording.dropLast(4) + ".json", "--output", page)
        #expect(drawn.status == 0, "\(drawn.errors)")
        #expect(try String(contentsOfFile: page, encoding: .utf8).contains("alice"))
    }

    @Test(.enabled(if: hasWebSockets, "needs python3-websockets"))
    func `an agent of Asterisk's channel dials in, greets, and gives back what it hears`() throws {
        let scratch = try Scratch()
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16_000)
        let run = try ToolRun(
            ["agent", "try", "--agents-at", "127.0.0.1:0", "--rate", "16000", "--json", "--no-pause"]
                + ["--seconds", "2.5"]
                + ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        )
        try #require(run.printed("agentAwaited"), "\(run.errors)")
        let awaited = try #require(try run.jsonLines().first)
        let address = try #require(awaited["address"] as? String)
        #expect(address.hasSuffix(try #require(awaited["path"] as? String)))
        let agent = try ProgramRun(Self.python, ["-u", Self.example("agent-asterisk.py"), address])
        defer { agent.send(SIGKILL) }
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(agent.prints("greeting was heard"), "\(agent.output) \(agent.errors)")
        let report = try #require(try run.jsonLines().last)
        #expect(try #require(report["playedSeconds"] as? Double) > 1.5 && report["malformed"] as? Int == 0, "\(report)")
        #expect(try Tone(frequency: 440).tenths(of: scratch.file("heard.wav")).count { $0 } >= 4)
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
    }

    @Test(.enabled(if: hasWebSockets, "needs python3-websockets"))
    func `a file that comes by a pipe ends the talk, too`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let agent = try ProgramRun(Self.python, ["-u", Self.example("agent-audiosocket.py"), "\(port)"])
        defer { agent.send(SIGKILL) }
        try #require(agent.prints("listening"), "\(agent.output) \(agent.errors)")
        #expect(try ToolRun.finished("dtmf", "1", "--output", scratch.file("key.wav")).status == 0)
        let command = #"cat "$1" | timeout 20 "$0" agent try --to "$2" --input - --output "$3" --json"#
        let files = [scratch.file("key.wav"), "audiosocket:127.0.0.1:\(port)", scratch.file("heard.wav")]
        let run = try ToolRun(["-c", command, ToolRun.path] + files, program: "/bin/sh")
        #expect(run.ends(within: .seconds(12)))
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try run.jsonLines().last?["event"] as? String == "report", "\(run.output)")
    }

    @Test func `nobody there, and what is no agent, are told in one sentence`() throws {
        let port = try FreePort.pair()
        let run = try ToolRun.finished("agent", "try", "--to", "ws://127.0.0.1:\(port)/", "--json")
        #expect(run.wait() == 1 && run.errors.contains("ws://127.0.0.1:\(port) cannot be reached"), "\(run.errors)")
    }
}
