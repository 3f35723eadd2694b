import Foundation
import TestSupport
import Testing

/// The examples, run as processes.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct ExampleRealTimeTests {
    @Test func `the first call carries keys and leaves a WAV file`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "first-call-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let run = try Example.run("first-call", in: folder)
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("its keys were 159#"))
        let heard = try Data(contentsOf: folder.appending(path: "heard.wav"))
        #expect(heard.starts(with: Data("RIFF".utf8)))
        // Two seconds at 48 kHz, less what the way takes.
        #expect(heard.count > 100_000)
    }

    @Test func `key feedback measures every key`() throws {
        let run = try Example.run("dtmf-feedback", "15#", "null")
        #expect(run.status == 0, "\(run.text)")
        // Where a process may not have a real-time thread, a line says so.
        let lines = run.text.split(separator: "\n").filter { $0.hasPrefix("key ") }
        try #require(lines.count == 3, "\(run.text)")
        for (line, key) in zip(lines, "15#") {
            #expect(line.hasPrefix("key \(key): first sample at the card after "))
            let delay = try #require(line.split(separator: " ").dropLast().last.flatMap { Double($0) })
            // A tick of 5 ms, and what a busy machine adds; the figure itself is a benchmark's.
            #expect(delay > -1 && delay < 1000, "\(line)")
        }
    }

    @Test func `key feedback refuses what is no key`() throws {
        let run = try Example.run("dtmf-feedback", "1x", "null")
        #expect(run.status == 64)
        #expect(run.text.contains("x is no key."))
    }

    @Test func `the harness finds every claim true`() throws {
        let run = try Example.run("loopback-call")
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.split(separator: "\n").count { $0.hasPrefix("ok ") } == 9, "\(run.text)")
        #expect(!run.text.contains("FAILED"))
    }

    @Test func `calls go through codecs of plugins in Swift and in C`() throws {
        let run = try Example.run("codec-plugin")
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("l8: registered L8/16000"))
        #expect(run.text.contains("libmsexample: registered DVI4/16000"))
        for codec in ["L8", "DVI4"] {
            #expect(run.text.contains(try Regex("\(codec): [0-9]+ packets, 0 lost")), "\(run.text)")
        }
    }

    @Test func `the bot greets, is silent when it is spoken to, and repeats what it heard`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "voice-bot-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let speech = Example.root.appending(path: "Examples/Resources/speech.wav").path
        let run = try Example.run("voice-bot", speech, in: folder)
        #expect(run.status == 0, "\(run.text)")
        // The caller speaks after a second, and the greeting would last four.
        let cut = run.text.firstMatch(of: /greeting was cut off at ([0-9.]+) seconds/)
        let interrupted = try #require(cut, "\(run.text)")
        let after = try #require(Double(interrupted.output.1))
        #expect(after > 0.5 && after < 3, "\(run.text)")
        let repeated = run.text.matches(of: /repeats ([0-9.]+) seconds/).compactMap { Double($0.output.1) }
        #expect(repeated.contains { $0 > 0.3 }, "\(run.text)")
        let heard = try Data(contentsOf: folder.appending(path: "voice-bot.wav"))
        #expect(heard.count > 100_000)
    }

    @Test func `a call by SIP is answered by the machine, which keeps what it hears until the last key`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sip-call-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let speech = Example.root.appending(path: "Examples/Resources/speech.wav").path
        let machine = try Example.start(
            "sip-answering-machine",
            ["127.0.0.1:0", speech, folder.path],
            environment: ["CALLS": "1"]
        )
        ProgramRun.wait { machine.output.contains("\n") }
        let address = try #require(machine.output.firstMatch(of: /Listening at (.*)\./)?.output.1)
        let run = try Example.run("sip-call", "sip:\(address)", in: folder)
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("hung up."), "\(run.text)")
        #expect(machine.wait() == 0, "\(machine.errors)")
        #expect(machine.output.contains("message-1.wav: from sip:"), "\(machine.output)")
        for file in ["heard.wav", "message-1.wav"] {
            #expect(try Data(contentsOf: folder.appending(path: file)).starts(with: Data("RIFF".utf8)))
        }
    }

    @Test func `a softphone calls the door, which opens by its key for who may, and is busy for others`() throws {
        let card = ["MEDIA_ENGINE_AU": "null", "MEDIA_ENGINE_AQ": "null"]
        let door = try Example.start(
            "door-phone",
            ["127.0.0.1:0"],
            environment: card.merging(["OPEN": "exit 0"]) { $1 }
        )
        ProgramRun.wait { door.output.contains("\n") }
        let address = try #require(door.output.firstMatch(of: /The door is at (.*)\./)?.output.1)
        let said = FileManager.default.temporaryDirectory.appending(path: "softphone-\(UUID().uuidString)")
        #expect(mkfifo(said.path, 0o600) == 0)
        defer { try? FileManager.default.removeItem(at: said) }
        let phone = try ProgramRun(
            "/bin/sh",
            ["-c", "exec \"$0\" <\"$1\"", Example.path(of: "softphone"), said.path],
            environment: ProcessInfo.processInfo.environment.merging(card) { $1 }
        )
        let lines = try #require(FileHandle(forWritingAtPath: said.path))
        func say(_ line: String) throws { try lines.write(contentsOf: Data("\(line)\n".utf8)) }
        try say("c sip:\(address)")
        #expect(phone.prints("is on."), "\(phone.errors)")
        try say("k 5")
        #expect(door.prints("The door opens."), "\(door.errors)")
        // The first one is held meanwhile.
        try say("c sip:\(address)")
        #expect(phone.prints("You hold.") && phone.prints("was refused"), "\(phone.output)")
        try say("r")
        #expect(phone.prints("You talk."))
        try say("q")
        #expect(phone.wait() == 0, "\(phone.errors)")
        #expect(door.prints("hung up."))
        door.send(SIGTERM)
        door.wait()
    }

    @Test func `processes of a group talk to each other`() throws {
        let run = try Example.run("local-messages")
        #expect(run.status == 0, "\(run.text)")
        #expect(run.text.contains("server: a white wall, 1048576 bytes with the sum 1048576"), "\(run.text)")
        #expect(run.text.contains("server: its notes: taken at noon"))
        #expect(run.text.contains("server: sent by this program"))
        #expect(run.text.contains("client: 6 words"))
        #expect(run.text.contains("client: heard of time: it is 20"))
    }

    @Test func `of three pushes one starts a core, and the application takes over from the fourth`() throws {
        let run = try Example.run("shared-core")
        #expect(run.status == 0, "\(run.text)")
        for text in ["1: Lunch?", "2: At noon?", "3: Bring Berta"] { #expect(run.text.contains("push \(text), from ")) }
        #expect(run.text.contains("after 3 pushes: core starts 1\n"), "\(run.text)")
        #expect(run.text.contains("the application runs: state main\npush 4: I am there, from main\n"), "\(run.text)")
        #expect(run.text.contains("reply performed by the main: true, at the server: 1\n"), "\(run.text)")
        #expect(run.text.hasSuffix("state free, pending 0, shown 4\n"), "\(run.text)")
    }
}
