import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Agents that answer and make calls by SIP.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentServeRealTimeTests {
    /// Starts an agent of this folder, or of Examples.
    private static func agent(_ path: String) throws -> (run: ProgramRun, port: UInt16) {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let port = try FreePort.pair()
        let script = tests.appending(path: path).standardized.path
        let run = try ProgramRun(AgentTryRealTimeTests.python, ["-u", script, "\(port)"])
        try #require(run.prints("listening"), "\(run.output) \(run.errors)")
        return (run, port)
    }

    private static func names(_ lines: [[String: Any]]) -> [String] { lines.compactMap { $0["event"] as? String } }

    @Test(.enabled(if: AgentTryRealTimeTests.hasWebSockets, "needs python3-websockets"))
    func `an agent is told of a call, presses keys, holds, resumes, and is heard to the end when it hangs up`() throws {
        let scratch = try Scratch()
        let (agent, port) = try Self.agent("Agents/director.py")
        defer { agent.send(SIGKILL) }
        let serving = try ToolRun(
            ["agent", "serve", "--sip", "127.0.0.1:0", "--to", "ws://127.0.0.1:\(port)/", "--calls", "1", "--json"]
                + ["--record", scratch.file(""), "--parameter", "purpose=test"]
        )
        let calling = try ToolRun.finished(
            "sip",
            "call",
            "sip:+49123@\(try serving.address())",
            "--codec",
            "PCMU",
            "--input",
            try SIPCallRealTimeTests.speech(scratch, seconds: 6),
            "--output",
            scratch.file("heard.wav"),
            "--dtmf",
            "12,349",
            "--header",
            "X-Customer: 4711",
            "--json",
            "--events"
        )
        #expect(calling.status == 0, "\(calling.errors)")
        let heard = try calling.jsonLines()
        #expect(
            heard.filter { $0["event"] as? String == "digit" }.compactMap { $0["digit"] as? String } == ["1", "2", "#"]
        )
        let turns = Self.names(heard).filter { ["held", "resumed"].contains($0) }
        #expect(turns == ["held", "resumed"], "\(heard)")
        #expect(heard.last?["endedBy"] as? String == "them", "\(heard)")
        let tenths = try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 }
        #expect(9...11 ~= tenths, "\(tenths)")
        #expect(agent.prints("stop hungUp"), "\(agent.output)")
        let told = agent.output.split(separator: "\n").map(String.init)
        #expect(
            told.contains { $0.contains("X-Customer=4711 from=sip:") && $0.contains(" purpose=test to=sip:+49123@") }
        )
        #expect(told.contains { $0.hasSuffix(" to_number=+49123") })
        #expect(told.contains("transfer failed 400") && told.contains("mark farewell True"), "\(told)")
        #expect(serving.wait() == 0, "\(serving.errors)")
        let last = try #require(try serving.jsonLines().last)
        #expect((last["agent"] as? [String: Any])?["playedSeconds"] as? Double == 1, "\(last)")
        try Self.checkRecording(try #require(last["recording"] as? String))
    }

    /// Whether the agent is heard in a recording where it says so beside.
    private static func checkRecording(_ path: String) throws {
        let text = try Data(contentsOf: URL(fileURLWithPath: String(path.dropLast(4)) + ".json"))
        let told = try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
        let events = try #require(told["events"] as? [[String: Any]])
        func time(of name: String) throws -> Double {
            try #require(events.first { $0["event"] as? String == name }?["atSeconds"] as? Double, "\(events)")
        }
        let (format, samples) = try WAVFile.read(path)
        #expect(format.channelCount == 2)
        let left = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
        let tone = Tone.ours.tenths(of: left, rate: format.sampleRate)
        let first = Double(try #require(tone.firstIndex(of: true), "\(tone)")) / 10
        #expect(try abs(first - time(of: "speaks")) < 0.2 && tone.count { $0 } >= 9, "\(first) \(events)")
        #expect(try time(of: "press") < time(of: "hold") && time(of: "hold") < time(of: "transferTo"))
    }

    @Test(.enabled(if: AgentTryRealTimeTests.hasWebSockets, "needs python3-websockets"))
    func `an agent that goes while it rings ends the call`() throws {
        let (agent, port) = try Self.agent("Agents/director.py")
        let answering = try ToolRun(
            ["sip", "answer", "--local", "127.0.0.1:0", "--policy", "ring", "--echo", "--calls", "1", "--json"]
        )
        let calling = try ToolRun(
            ["agent", "call", "sip:\(try answering.address())", "--to", "ws://127.0.0.1:\(port)/", "--json"]
        )
        try #require(calling.printed("\"progress\""), "\(calling.output) \(calling.errors)")
        agent.send(SIGKILL)
        #expect(calling.ends(within: .seconds(20)) && calling.wait() == 1, "\(calling.output)")
        #expect(Self.names(try calling.jsonLines()).suffix(2) == ["agentEnded", "ended"], "\(calling.output)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        #expect(try answering.jsonLines().last?["code"] as? Int == 487, "\(answering.output)")
    }

    @Test func `where no agent is nobody answers, and nobody is called`() throws {
        let port = try FreePort.pair()
        let serving = try ToolRun(
            [
                "agent", "serve", "--sip", "127.0.0.1:0", "--to", "audiosocket:127.0.0.1:\(port)", "--calls", "1",
                "--json",
            ]
        )
        let calling = try ToolRun.finished(
            "sip",
            "call",
            "sip:\(try serving.address())",
            "--input",
            "/dev/null",
            "--json"
        )
        #expect(try calling.status != 0 && calling.json()["code"] as? Int == 480, "\(calling.output)")
        #expect(serving.wait() == 0, "\(serving.errors)")
        let lines = try serving.jsonLines()
        #expect(Self.names(lines) == ["listening", "incoming", "agentMissing", "ended"], "\(lines)")
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--seconds", "1", "--json"])
        let refused = try ToolRun.finished(
            "agent",
            "call",
            "sip:\(try answering.address())",
            "--to",
            "audiosocket:127.0.0.1:\(port)",
            "--json"
        )
        #expect(refused.status == 1 && refused.errors.contains("cannot be reached"), "\(refused.errors)")
        #expect(try answering.wait() == 0 && Self.names(answering.jsonLines()) == ["listening"])
    }

    @Test(.enabled(if: AgentTryRealTimeTests.hasWebSockets, "needs python3-websockets"))
    func `an agent that dials in answers the call that it was told of`() throws {
        let scratch = try Scratch()
        let serving = try ToolRun(
            ["agent", "serve", "--sip", "127.0.0.1:0", "--agents-at", "127.0.0.1:0", "--calls", "1", "--json"]
                + ["--rate", "16000"]
        )
        let calling = try ToolRun(
            ["sip", "call", "sip:\(try serving.address())", "--dtmf", ",#", "--json"]
                + [
                    "--input", try SIPCallRealTimeTests.speech(scratch, seconds: 6), "--output",
                    scratch.file("heard.wav"),
                ]
        )
        try #require(serving.printed("agentAwaited"), "\(serving.errors)")
        let awaited = try #require(try serving.jsonLines().last)
        let address = try #require(awaited["address"] as? String)
        let agent = try ProgramRun(
            AgentTryRealTimeTests.python,
            ["-u", AgentTryRealTimeTests.example("agent-asterisk.py"), address]
        )
        defer { agent.send(SIGKILL) }
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(agent.prints("key #"), "\(agent.output) \(agent.errors)")
        let callID = try #require(awaited["callID"] as? String)
        #expect(agent.prints("connected \(callID)") && agent.prints("'from': 'sip:"), "\(agent.output)")
        #expect(try calling.jsonLines().last?["endedBy"] as? String == "them", "\(calling.output)")
        #expect(serving.wait() == 0, "\(serving.errors)")
    }

    @Test(.enabled(if: AgentTryRealTimeTests.hasWebSockets, "needs python3-websockets"))
    func `calls that cannot be recorded go on, and both sides fail at their end`() throws {
        let (agent, port) = try Self.agent("../../Examples/agent-audiosocket.py")
        defer { agent.send(SIGKILL) }
        // Nothing can be made there.
        let options = ["--to", "audiosocket:127.0.0.1:\(port)", "--record", "/proc", "--json"]
        let serving = try ToolRun(["agent", "serve", "--sip", "127.0.0.1:0", "--calls", "1"] + options)
        let calling = try ToolRun(["agent", "call", "sip:\(try serving.address())", "--seconds", "1"] + options)
        for run in [calling, serving] {
            #expect(run.wait() == 1, "\(run.errors)")
            #expect(run.errors.contains("Error: Cannot write /proc/"), "\(run.errors)")
            let ended = try #require(try run.jsonLines().first { $0["event"] as? String == "ended" }, "\(run.output)")
            #expect(ended["status"] as? String == "ok" && ended["recording"] is NSNull, "\(ended)")
        }
    }

    @Test(.enabled(if: AgentTryRealTimeTests.hasWebSockets, "needs python3-websockets"))
    func `a recording whose folder goes is none, and that is a failure`() throws {
        let scratch = try Scratch()
        let (files, folder) = (FileManager.default, scratch.file("calls"))
        try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let (agent, port) = try Self.agent("../../Examples/agent-audiosocket.py")
        defer { agent.send(SIGKILL) }
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"])
        let calling = try ToolRun(
            ["agent", "call", "sip:\(try answering.address())", "--to", "audiosocket:127.0.0.1:\(port)"]
                + ["--record", folder, "--json"]
        )
        let hasBegun = Polling.wait { (try? files.contentsOfDirectory(atPath: folder).isEmpty) == false }
        try #require(hasBegun, "\(calling.errors)")
        try files.removeItem(atPath: folder)
        calling.interrupt()
        #expect(calling.wait() == 1 && calling.errors.contains("\(folder)/"), "\(calling.errors)")
        let ended = try #require(try calling.jsonLines().last)
        #expect(ended["event"] as? String == "ended" && ended["recording"] is NSNull, "\(ended)")
        #expect(answering.wait() == 0, "\(answering.errors)")
    }

    @Test func `an agent for a call that is taken back is awaited no longer`() throws {
        let serving = try ToolRun(
            ["agent", "serve", "--sip", "127.0.0.1:0", "--agents-at", "127.0.0.1:0", "--calls", "1", "--json"]
        )
        let calling = try ToolRun(["sip", "call", "sip:\(try serving.address())", "--json"])
        try #require(serving.printed("agentAwaited"), "\(serving.errors)")
        calling.interrupt()
        #expect(calling.wait() == 0 && serving.wait() == 0, "\(serving.errors)")
        let lines = try serving.jsonLines()
        #expect(Self.names(lines) == ["listening", "incoming", "agentAwaited", "ended"], "\(lines)")
    }

    @Test(.enabled(if: AgentTryRealTimeTests.hasWebSockets, "needs python3-websockets"))
    func `an agent calls and greets; a second call finds the other side busy`() throws {
        let scratch = try Scratch()
        let (agent, port) = try Self.agent("../../Examples/agent-audiosocket.py")
        defer { agent.send(SIGKILL) }
        let serving = try ToolRun(
            ["agent", "serve", "--sip", "127.0.0.1:0", "--to", "audiosocket:127.0.0.1:\(port)", "--calls", "2"]
                + ["--json", "--at-once", "1"]
        )
        let calling = try ToolRun(
            ["agent", "call", "sip:\(try serving.address())", "--to", "audiosocket:127.0.0.1:\(port)"]
                + ["--record", scratch.file(""), "--json"]
        )
        try #require(calling.printed("connected"), "\(calling.errors)")
        let second = try ToolRun.finished(
            "sip",
            "call",
            "sip:\(try serving.address())",
            "--input",
            "/dev/null",
            "--json"
        )
        #expect(try second.json()["code"] as? Int == 486, "\(second.output)")
        try #require(calling.printed("\"speaks\""), "\(calling.output)")
        calling.interrupt()
        #expect(calling.wait() == 0, "\(calling.errors)")
        let last = try #require(try calling.jsonLines().last)
        #expect(try #require((last["agent"] as? [String: Any])?["playedSeconds"] as? Double) > 0, "\(last)")
        #expect(last["status"] as? String == "ok" && last["recording"] is String, "\(last)")
        #expect(serving.wait() == 0, "\(serving.errors)")
    }
}
