import Foundation
import Glibc
import TestSupport
import Testing

/// `agent try` with the agents of Examples, as a newcomer runs them.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentTryRealTimeTests {
    /// Debian's, which has its packages.
    private static let python = "/usr/bin/python3"
    private static let hasWebSockets: Bool = {
        guard let run = try? ProgramRun(python, ["-c", "import websockets"]) else { return false }
        return run.wait() == 0
    }()

    /// Starts an agent of Examples, and waits until it listens.
    private static func agent(_ name: String, on port: UInt16) throws -> ProgramRun {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        let run = try ProgramRun(python, ["-u", root.appending(path: "Examples/\(name)").path, "\(port)"])
        try #require(run.prints("listening"), "\(run.output) \(run.errors)")
        return run
    }

    @Test(.enabled(if: hasWebSockets, "needs python3-websockets"))
    func `an agent of AudioSocket greets, hears keys, and gives back what it hears`() throws {
        let (scratch, port) = (try Scratch(), try FreePort.pair())
        let agent = try Self.agent("agent-audiosocket.py", on: port)
        defer { agent.send(SIGKILL) }
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 8000)
        let run = try ToolRun.finished(
            "agent",
            "try",
            "--to",
            "audiosocket:127.0.0.1:\(port)",
            "--input",
            scratch.file("tone.wav"),
            "--output",
            scratch.file("heard.wav"),
            "--dtmf",
            "5",
            "--seconds",
            "2.5",
            "--json"
        )
        #expect(run.wait() == 0, "\(run.errors)")
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
        let (scratch, port) = (try Scratch(), try FreePort.pair())
        let agent = try Self.agent("agent-twilio.py", on: port)
        defer { agent.send(SIGKILL) }
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 8000)
        let run = try ToolRun.finished(
            "agent",
            "try",
            "--to",
            "ws://127.0.0.1:\(port)/ws",
            "--input",
            scratch.file("tone.wav"),
            "--seconds",
            "2",
            "--parameter",
            "from=alice",
            "--json"
        )
        #expect(run.wait() == 0, "\(run.errors)")
        let lines = try run.jsonLines()
        let marks = lines.filter { $0["event"] as? String == "marked" }
        #expect(marks.count == 10 && marks.allSatisfy { $0["played"] as? Bool == false }, "\(marks)")
        let report = try #require(lines.last)
        #expect(report["clears"] as? Int == 1, "\(report)")
        #expect(try #require(report["unheardSeconds"] as? Double) > 8, "\(report)")
        #expect(agent.prints("note 1 was cut off"), "\(agent.output)")
    }

    @Test func `nobody there, and what is no agent, are told in one sentence`() throws {
        let port = try FreePort.pair()
        let run = try ToolRun.finished("agent", "try", "--to", "ws://127.0.0.1:\(port)/", "--json")
        #expect(run.wait() == 1 && run.errors.contains("ws://127.0.0.1:\(port) cannot be reached"), "\(run.errors)")
    }
}
