import Foundation
import TestSupport
import Testing

/// What the tool says to wrong usage and to failures, and that help and completion are there.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct UsageRealTimeTests {
    @Test(arguments: [
        (["play"], "<file>"),
        (["loopback", "--codec", "PCMU", "--bitrate", "32000"], "--bitrate"),
        (["loopback", "--codec", "G722", "--complexity", "5"], "--complexity"),
        (["help", "nosuch"], "nosuch"),
        (["help", "core", "nosuch"], "nosuch"),
    ])
    func `wrong usage ends with 64 and names the word`(arguments: [String], word: String) throws {
        let run = try ToolRun(arguments)
        #expect(run.wait() == 64)
        #expect(run.errors.contains(word), "\(run.errors)")
        #expect(run.output.isEmpty)
    }

    @Test(arguments: [
        (["dtmf", "1", "--device", "alsa:nosuch"], "nosuch"),
        (["dtmf", "1", "--device", "nosuch"], "There is no card nosuch"),
        (["dtmf", "1", "--output", "/nosuch/x.wav"], "/nosuch/x.wav"),
        (["ring", "--file", "/nosuch.wav", "--output", "/tmp/x.wav"], "/nosuch.wav"),
        (["play", "/nosuch.wav", "--device", "null"], "/nosuch.wav"),
        (["record", "/nosuch/x.wav", "--seconds", "1", "--device", "null"], "/nosuch/x.wav"),
        (["loopback", "--codec", "nosuch"], "There is no codec nosuch"),
        (["loopback", "--codec", "SILK"], "Use opus"),
        (["loopback", "--virtual", "--input", "/nosuch.wav"], "/nosuch.wav"),
        (["loopback", "--virtual", "--output", "/nosuch/x.wav"], "/nosuch/x.wav"),
        (["loopback", "--virtual", "--pcap", "/nosuch/x.pcap"], "/nosuch/x.pcap"),
        (["send", "--to", "nosuch.invalid:5004"], "nosuch.invalid"),
        (["send", "--to", "127.0.0.1:5004", "--sdp", "/nosuch/x.sdp"], "/nosuch/x.sdp"),
        (["receive", "--sdp", "/nosuch.sdp"], "/nosuch.sdp"),
        (["detect", "/nosuch.wav"], "/nosuch.wav"),
        (["devices", "--au", "role:AQ"], "role:AQ"),
        (["doctor", "--au", "role:AQ"], "role:AQ"),
        (["replay", "/nosuch.pcap"], "/nosuch.pcap"),
        (["report", "/nosuch.json", "--output", "/tmp/x.html"], "/nosuch.json"),
        (["loopback", "--virtual", "--trace", "/nosuch/x.json"], "/nosuch/x.json"),
        (["loopback", "--device", "nosuch"], "There is no card nosuch"),
        (["phone", "--codec", "nosuch"], "There is no codec nosuch"),
        (["sip", "answer", "--local", "127.0.0.1:0", "--input", "/nosuch.wav"], "/nosuch.wav"),
        (["webrtc", "serve", "--local", "127.0.0.1:0", "--echo", "--codec", "nosuch"], "There is no codec nosuch"),
        (["webrtc", "serve", "--local", "127.0.0.1:0", "--input", "/nosuch.wav"], "/nosuch.wav"),
        (["webrtc", "serve", "--local", "127.0.0.1:0", "--output", "/nosuch/x.wav"], "/nosuch/x.wav"),
        (
            ["webrtc", "serve", "--local", "127.0.0.1:0", "--echo", "--ice", "full", "--turn", "alice@127.0.0.1"],
            "--turn-password-file"
        ),
        (["group", "status", "--group", "/tmp/nosuch-group"], "/tmp/nosuch-group"),
        (["group", "send", "--group", "/tmp/nosuch-group", "--name", "n", "--body", "1"], "/tmp/nosuch-group"),
        (["group", "send", "--group", "GROUP", "--name", "n", "--body", "1", "--file", "/nosuch.wav"], "/nosuch.wav"),
        (["group", "send", "--group", "GROUP", "--name", "n", "--body", "1"], "Start its server"),
        (["group", "serve", "--group", "/dev/null", "--name", "n"], "not a directory"),
        (["group", "listen", "--group", "/dev/null/g", "--name", "n"], "/dev/null"),
    ])
    func `a failure ends with 1 and one line with its remedy`(arguments: [String], word: String) throws {
        let group = try Scratch()
        let run = try ToolRun(arguments.map { $0 == "GROUP" ? group.path : $0 })
        #expect(run.wait() == 1)
        #expect(run.errors.contains(word), "\(run.errors)")
        #expect(run.errors.split(separator: "\n").count == 1)
        #expect(run.output.isEmpty)
    }

    @Test(arguments: [["devices"], ["codecs", "--json"], ["loopback", "--virtual", "--seconds", "1"]])
    func `what cannot be printed is a failure`(arguments: [String]) throws {
        let command = ["-c", #"exec "$0" "$@" > /dev/full"#, ToolRun.path] + arguments
        let run = try ToolRun(command, program: "/bin/sh")
        #expect(run.wait() == 1)
        #expect(run.errors.contains("Standard output could not be written"), "\(run.errors)")
    }

    @Test(arguments: ["serve", "listen"]) func `who prints for a reader ends with it`(verb: String) throws {
        let group = try Scratch()
        let command = [
            "-c", #"{ "$0" "$@"; echo "status $?" >&2; } | true"#, ToolRun.path, "group", verb, "--group", group.path,
            "--name", "n",
        ]
        let run = try ToolRun(command, program: "/bin/sh")
        run.wait()
        #expect(run.errors.contains("status 1") && !run.errors.contains("Error"), "\(run.errors)")
    }

    @Test func `the version tells the commit that was built, and its traits`() throws {
        let scratch = try Scratch()
        let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardized.path
        try ToolRun([root, scratch.file("Commit.swift")], program: root + "/Scripts/write-commit").wait()
        let written = try String(contentsOfFile: scratch.file("Commit.swift"), encoding: .utf8)
        let commit = try #require(written.split(separator: "\"").dropFirst().first)
        let run = try ToolRun.finished("--version")
        #expect(run.status == 0 && run.output.contains("commit \(commit), traits: "), "\(run.output)")
    }

    @Test(arguments: [["help", "help"], ["help", "core"], ["help", "core", "status"]])
    func `help is also a command`(words: [String]) throws {
        let run = try ToolRun(words)
        run.wait()
        #expect(run.status == 0 && run.output.contains("USAGE"), "\(run.errors)")
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func `completion scripts are made`(shell: String) throws {
        let run = try ToolRun.finished("--generate-completion-script", shell)
        #expect(run.status == 0)
        #expect(run.output.contains("loopback"))
    }

    @Test func `asking for a codec that is missing leaves the two lines in the log`() throws {
        let run = try ToolRun.finished("loopback", "--codec", "SILK", "--log-level", "notice")
        #expect(run.status == 1)
        #expect(run.errors.contains("Could not find encoder for SILK"))
        #expect(run.errors.contains("Could not find decoder for SILK"))
        let quiet = try ToolRun.finished("codecs")
        #expect(quiet.errors.isEmpty)
        let told = try ToolRun.finished("codecs", "--log-level", "notice")
        #expect(told.errors.contains("Could not find encoder for SILK"))
    }
}
