import Foundation
import MediaEngine
import TestSupport
import Testing

@testable import media_tool

/// Calls, texts and questions by SIP between two runs of the tool, on 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPCallRealTimeTests {
    private func events(_ run: ToolRun) throws -> [String] { try run.jsonLines().compactMap { $0["event"] as? String } }

    static func speech(_ scratch: Scratch, seconds: Int) throws -> String {
        let path = scratch.file("tone.wav")
        let made = try ToolRun.finished("dtmf", "5", "--duration", "\(seconds * 1000)", "--output", path)
        try #require(made.status == 0)
        return path
    }

    @Test(arguments: thorough(["udp", "tcp"], quick: ["udp"]))
    func `a call is answered, echoed, keyed and ended, with sound both ways`(transport: String) throws {
        let scratch = try Scratch()
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"])
        let uri = "sip:bob@\(try answering.address());transport=\(transport)"
        let calling = try ToolRun.finished(
            "sip",
            "call",
            uri,
            "--input",
            try Self.speech(scratch, seconds: 2),
            "--output",
            scratch.file("heard.wav"),
            "--dtmf",
            "159#",
            "--json"
        )
        #expect(calling.status == 0, "\(calling.errors)")
        let report = try calling.json()
        #expect(report["status"] as? String == "ok")
        #expect(report["endedBy"] as? String == "us")
        #expect(try #require(report["setupMs"] as? Double) < 1000)
        #expect(answering.wait() == 0, "\(answering.errors)")
        let last = try #require(try answering.jsonLines().last)
        #expect(last["dtmf"] as? String == "159#")
        #expect(last["endedBy"] as? String == "them")
        #expect(try events(answering).filter { $0 != "digit" } == ["listening", "incoming", "connected", "ended"])
        let (_, samples) = try WAVFile.read(scratch.file("heard.wav"))
        #expect(samples.count { abs(Int($0)) > 1000 } > samples.count / 4)
    }

    @Test func `hold, resume and keys by INFO are told on both sides`() throws {
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1", "--echo", "--calls", "1", "--json"])
        let calling = try ToolRun.finished(
            "sip",
            "call",
            "sip:\(try answering.address())",
            "--codec",
            "PCMU",
            "--seconds",
            "1.5",
            "--hold-after",
            "0.6",
            "--resume-after",
            "1",
            "--dtmf",
            "12",
            "--dtmf-way",
            "info",
            "--json",
            "--events"
        )
        #expect(calling.status == 0, "\(calling.errors)")
        #expect(try events(calling) == ["calling", "connected", "held", "resumed", "ended"])
        #expect(answering.wait() == 0)
        let expected = ["listening", "incoming", "connected", "held", "resumed", "ended"]
        #expect(try events(answering).filter { $0 != "digit" } == expected)
        #expect(try answering.jsonLines().compactMap { $0["way"] as? String } == ["info", "info"])
    }

    @Test(arguments: [
        (["--policy", "busy"], "busy", 486), (["--policy", "reject"], "rejected", 603),
        (["--policy", "reject", "--code", "404"], "rejected", 404), (["--codec", "PCMA"], "rejected", 488),
    ])
    func `a refusal is told with its code, and the exit says that it failed`(
        policy: [String],
        status: String,
        code: Int
    ) throws {
        let command = ["sip", "answer", "--local", "127.0.0.1", "--echo", "--calls", "1", "--json"]
        let answering = try ToolRun(command + policy)
        let calling = try ToolRun.finished(
            "sip",
            "call",
            "sip:\(try answering.address())",
            "--codec",
            "PCMU",
            "--json"
        )
        #expect(calling.status == 1)
        #expect(try calling.json()["status"] as? String == status)
        #expect(try calling.json()["code"] as? Int == code)
        #expect(calling.errors.contains("\(code)"), "\(calling.errors)")
        #expect(answering.wait() == 0)
    }

    @Test func `Ctrl-C while it rings takes the call back`() throws {
        let answering = try ToolRun(
            ["sip", "answer", "--local", "127.0.0.1", "--policy", "ring", "--calls", "1", "--json"]
        )
        let calling = try ToolRun(["sip", "call", "sip:\(try answering.address())", "--json", "--events"])
        #expect(calling.printed(#""code":180"#))
        calling.interrupt()
        #expect(calling.wait() == 0)
        let report = try #require(try calling.jsonLines().last)
        #expect(report["status"] as? String == "cancelled")
        #expect(answering.wait() == 0)
        #expect(try answering.jsonLines().last?["status"] as? String == "cancelled")
    }

    @Test(
        arguments: thorough(
            [[], ["--loss", "30"], ["--transport", "tcp", "--codec", "PCMU"]],
            quick: [["--loss", "30"]]
        )
    )
    func `a whole call in virtual time gives the same bytes for the same seed`(options: [String]) throws {
        // They know no real time: beside each other.
        let scratches = try [Scratch(), Scratch(), Scratch()]
        let runs = try zip([7, 7, 8], scratches).map { seed, scratch in
            let story = ["--story", scratch.file("story.json")]
            let call = ["sip", "call", "--virtual", "--seed", "\(seed)", "--seconds", "1", "--dtmf", "15#", "--json"]
            return try ToolRun(call + options + story)
        }
        for run in runs { #expect(run.wait() == 0, "\(run.errors)") }
        let stories = try scratches.map { try $0.bytes("story.json") }
        #expect(stories[1] == stories[0] && stories[2] != stories[0])
        let told = try Story(parsing: stories[0])
        #expect(told.seed == 7 && told.outcome?.status == "ok")
        for word in ["INVITE sip:bob", "SIP/2.0 200", "agreed", "established", "BYE sip:bob", "report"] {
            #expect(told.steps.contains { $0.what.hasPrefix(word) }, "\(told.steps)")
        }
        #expect(told.steps.map(\.time) == told.steps.map(\.time).sorted())
        let outputs = zip(runs, scratches).map { $0.output.replacing($1.path, with: "") }
        #expect(outputs[1] == outputs[0])
        #expect(outputs[2] != outputs[0])
        let report = try runs[0].json()
        #expect(report["status"] as? String == "ok")
        #expect((report["legs"] as? [Any])?.count == 2)
        #expect(report["dtmf"] as? String == "15#")
    }

    @Test func `nobody there is told with a remedy`() throws {
        let port = try FreePort.pair()
        let run = try ToolRun.finished("sip", "call", "sip:127.0.0.1:\(port)", "--t1", "10", "--json")
        #expect(run.status == 1)
        #expect(try run.json()["status"] as? String == "timeout")
        #expect(run.errors.contains("--transport tcp"), "\(run.errors)")
        let refused = try ToolRun.finished("sip", "options", "sip:127.0.0.1:\(port);transport=tcp")
        #expect(refused.status == 1)
        #expect(refused.errors.contains("cannot be reached"), "\(refused.errors)")
    }

    @Test func `a text arrives, and a question is answered`() throws {
        let listening = try ToolRun(["sip", "message", "--listen", "--local", "127.0.0.1", "--count", "2", "--json"])
        let address = try listening.address()
        let asked = try ToolRun.finished("sip", "options", "sip:\(address)", "--json")
        #expect(asked.status == 0, "\(asked.errors)")
        #expect(try asked.json()["code"] as? Int == 200)
        #expect((try asked.json()["allow"] as? [String])?.contains("INVITE") == true)
        let sent = try ToolRun.finished("sip", "message", "sip:bob@\(address)", "Die Tür ist offen.", "--json")
        #expect(try sent.json()["code"] as? Int == 200)
        // What goes to a room says who wrote it, and has a name.
        let enveloped = try ToolRun.finished("sip", "message", "sip:bob@\(address)", "Tea?", "--room", "--json")
        let name = try enveloped.json()["messageID"] as? String
        #expect(listening.wait() == 0)
        let texts = try listening.jsonLines().filter { $0["event"] as? String == "message" }
        #expect(texts.map { $0["text"] as? String } == ["Die Tür ist offen.", "Tea?"])
        #expect(name != nil && texts.last?["messageID"] as? String == name)
        // Neither came from a room that it is in.
        #expect(texts.allSatisfy { $0["room"] is NSNull })
    }

    @Test func `a transfer that is declined is told, and the call goes on`() throws {
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1", "--echo", "--calls", "1", "--json"])
        let calling = try ToolRun.finished(
            "sip",
            "call",
            "sip:\(try answering.address())",
            "--seconds",
            "2",
            "--transfer-to",
            "sip:carol@192.0.2.3",
            "--transfer-after",
            "0.5",
            "--json",
            "--events"
        )
        #expect(calling.status == 0, "\(calling.errors)")
        let transfer = try #require(try calling.jsonLines().first { $0["event"] as? String == "transfer" })
        #expect(transfer["state"] as? String == "failed" && transfer["code"] as? Int == 603)
        #expect(
            try events(calling) == ["calling", "connected", "held", "transfer", "resumed", "ended"]
        )
        #expect(answering.wait() == 0)
    }

    @Test func `a call that is led on goes on with its sound, and is one to its end`() throws {
        let scratch = try Scratch()
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        let target = try ToolRun([
            "sip", "answer", "--local", "127.0.0.1", "--output", scratch.file("heard.wav"), "--calls", "1", "--json",
        ])
        let led = try ToolRun([
            "sip", "answer", "--local", "127.0.0.1", "--input", scratch.file("tone.wav"), "--calls", "1", "--json",
            "--follow-transfers",
        ])
        let uri = "sip:carol@\(try target.address())"
        let leading = try ToolRun.finished(
            "sip",
            "call",
            "sip:\(try led.address())",
            "--transfer-to",
            uri,
            "--transfer-after",
            "0.3",
            "--json",
            "--events"
        )
        #expect(leading.status == 0, "\(leading.errors)")
        #expect(led.printed(#""event":"resumed""#), "\(led.output)")
        #expect(FileWatch.wait(for: scratch.file("heard.wav"), byteCount: 60_000))
        target.interrupt()
        #expect(target.wait() == 0, "\(target.errors)")
        #expect(led.wait() == 0, "\(led.errors)")
        let lines = try led.jsonLines()
        let transfers = lines.filter { $0["event"] as? String == "transfer" }
        #expect(transfers.map { $0["code"] as? Int } == [202, 200], "\(transfers)")
        #expect(transfers.allSatisfy { $0["to"] as? String == uri && $0["by"] as? String == "them" }, "\(transfers)")
        let names = lines.compactMap { $0["event"] as? String }
        #expect(names.count { $0 == "connected" } == 1 && names.count { $0 == "ended" } == 1, "\(names)")
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).contains(true))
    }

    @Test(arguments: thorough(["udp", "tcp"], quick: ["tcp"]))
    func `a peer is scored by its answers to messages that are hard to read`(transport: String) throws {
        let scratch = try Scratch()
        let (way, end) = (
            "Via: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK\(transport)", "From: <sip:b@c>;tag=1\r\nCall-ID: c\r\n"
        )
        for (name, method, to) in [("good", "OPTIONS", "<sip:a@b>"), ("bad", "OPTIONS", "\"Open <sip:a@b>")] {
            try ["\(method) sip:a@127.0.0.1 SIP/2.0", way + name + ";rport", "To: \(to)", end + "CSeq: 1 \(method)"]
                .joined(separator: "\r\n").appending("\r\nMax-Forwards: 9\r\nContent-Length: 0\r\n\r\n")
                .write(toFile: scratch.file(name), atomically: true, encoding: .utf8)
        }
        try "name\tsection\texpect\ngood\t1\taccept\nbad\t1\t400\n"
            .write(toFile: scratch.file("table"), atomically: true, encoding: .utf8)
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--json"])
        let peer = try answering.address()
        let arguments = ["sip", "torture", scratch.path, "--expect", scratch.file("table"), "--transport", transport]
        let score = try ToolRun(arguments + ["--to", peer, "--mutations", "20", "--json"])
        #expect(score.wait() == 0, "\(score.errors)")
        let report = try score.json()
        #expect(report["ok"] as? Int == 2, "\(report)")
        #expect(report["crashed"] as? Int == 0)
        #expect(report["mutations"] as? Int == 40)
        answering.interrupt()
        #expect(answering.wait() == 0)
        let nobody = try ToolRun(arguments + ["--to", peer])
        #expect(nobody.wait() == 1)
        #expect(nobody.errors.contains("Nothing answers OPTIONS"), "\(nobody.errors)")
    }

    @Test func `a call is told as a story, and drawn as a ladder`() throws {
        let scratch = try Scratch()
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"])
        let peer = try answering.address()
        let (story, page) = (scratch.file("story.json"), scratch.file("story.html"))
        let capture = scratch.file("call.pcap")
        let call = try ToolRun([
            "sip", "call", "sip:\(peer)", "--seconds", "0.3", "--story", story, "--pcap", capture, "--json",
        ])
        #expect(call.wait() == 0, "\(call.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        let told = try Story(parsing: [UInt8](Data(contentsOf: URL(filePath: story))))
        let words = told.steps.map { $0.isSent == nil ? $0.what : String($0.what.prefix { $0 != ":" }) }
        for word in [
            "targets", "INVITE sip", "SIP/2.0 200 OK", "agreed", "established", "ACK sip", "BYE sip", "report",
        ] {
            #expect(words.contains(word), "\(words)")
        }
        #expect(told.outcome?.status == "ok" && told.outcome?.because == nil)
        #expect(told.callID == (try call.json()["callID"] as? String))
        let report = try ToolRun(["report", story, "--output", page, "--json"])
        #expect(report.wait() == 0, "\(report.errors)")
        #expect(try report.json()["status"] as? String == "ok")
        #expect(try String(contentsOfFile: page, encoding: .utf8).contains("BYE sip"))
        let both = try ToolRun(["report", capture, "--story", story, "--output", page, "--json"])
        #expect(both.wait() == 0, "\(both.errors)")
        #expect((try both.json()["story"] as? [String: Any])?["status"] as? String == "ok")
        #expect((try both.json()["directions"] as? [Any])?.count == 2)
        let drawn = try String(contentsOfFile: page, encoding: .utf8)
        #expect(drawn.contains("BYE sip") && drawn.ranges(of: " ms of the ladder on").count == 2)
        let twice = try ToolRun(["report", story, "--story", story, "--output", page])
        #expect(twice.wait() == 1 && twice.errors.contains("Leave out --story"), "\(twice.errors)")
        // Nobody listens there any more.
        let lost = try ToolRun(["sip", "call", "sip:\(peer);transport=tcp", "--story", story, "--json"])
        #expect(lost.wait() == 1)
        let cause = try Story(parsing: [UInt8](Data(contentsOf: URL(filePath: story)))).outcome?.because
        #expect(cause == "flow failed: tcp \(peer): Connection refused")
        let nowhere = try ToolRun(["sip", "call", "sip:a@x.invalid", "--hosts", "/dev/null", "--story", story])
        #expect(nowhere.wait() == 1)
        let reason = try Story(parsing: [UInt8](Data(contentsOf: URL(filePath: story)))).outcome?.because
        #expect(reason?.contains("no host x.invalid") == true)
        let silent = try ToolRun(["sip", "call", "--virtual", "--input", "/none.wav", "--story", story])
        #expect(silent.wait() == 1)
        let missing = try Story(parsing: [UInt8](Data(contentsOf: URL(filePath: story)))).outcome?.because
        #expect(missing?.contains("/none.wav") == true)
    }

    @Test func `the one who answers and the one who registers tell their stories, too`() throws {
        let scratch = try Scratch()
        let (story, other) = (scratch.file("story.json"), scratch.file("other.json"))
        let answering = try ToolRun([
            "sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--story", story, "--json",
        ])
        let peer = try answering.address()
        let call = try ToolRun(["sip", "call", "sip:\(peer)", "--seconds", "1", "--update-after", "0.3", "--json"])
        #expect(call.wait() == 0, "\(call.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        let told = try Story(parsing: [UInt8](Data(contentsOf: URL(filePath: story))))
        let words = told.steps.map { String($0.what.prefix { $0 != ":" }) }
        for word in ["INVITE sip", "agreed", "UPDATE sip", "BYE sip", "report"] {
            #expect(words.contains(word), "\(words)")
        }
        #expect(told.kind == "call" && told.outcome?.status == "ok")
        #expect(told.callID == (try call.json()["callID"] as? String))
        let lines = try ToolRun(["sip", "parse", "--story", story])
        #expect(lines.wait() == 0 && lines.output.contains("UPDATE sip:"), "\(lines.errors)")
        // Nobody listens there.
        let registering = try ToolRun([
            "sip", "register", "--account", "sip:alice@example.test", "--registrar", "sip:\(peer)", "--transport",
            "tcp",
            "--once", "--story", other,
        ])
        #expect(registering.wait() == 1)
        let failed = try Story(parsing: [UInt8](Data(contentsOf: URL(filePath: other))))
        #expect(failed.kind == "registration" && failed.outcome?.status != "ok")
        #expect(failed.outcome?.because?.hasPrefix("flow failed: tcp \(peer)") == true)
    }

    @Test func `a port that is taken is told`() throws {
        let listening = try ToolRun(["sip", "answer", "--local", "127.0.0.1", "--echo", "--json"])
        let address = try listening.address()
        let other = try ToolRun.finished("sip", "answer", "--local", address, "--echo")
        #expect(other.status == 1)
        #expect(other.errors.contains("is taken"), "\(other.errors)")
        listening.interrupt()
        #expect(listening.wait() == 0)
    }

    @Test func `a password that others can read is not taken`() throws {
        let scratch = try Scratch()
        let path = scratch.file("secret")
        try "secret".write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        let run = try ToolRun.finished(
            "sip",
            "register",
            "--account",
            "sip:a@127.0.0.1",
            "--password-file",
            path,
            "--once"
        )
        #expect(run.status == 1)
        #expect(run.errors.contains("chmod 600"), "\(run.errors)")
    }
}
