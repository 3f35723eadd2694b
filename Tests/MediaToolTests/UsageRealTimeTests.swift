import Foundation
import TestSupport
import Testing

/// What the tool says to wrong usage and to failures, and that help and completion are there.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct UsageRealTimeTests {
    /// A file that is there, and that a command must not touch.
    private static let ownFile = #filePath

    @Test(arguments: [
        (["dtmf", "12E4"], "'E' at position 3"),
        (["dtmf", ""], "no digit"),
        (["dtmf", "1", "--duration", "5"], "--duration"),
        (["dtmf", "1", "--level", "4"], "--level"),
        (["dtmf", "1", "--rate", "7999", "--output", "x.wav"], "--rate"),
        (["dtmf", "1", "--cold", "--output", "x.wav"], "--cold"),
        (["dtmf", "1", "--device", "null", "--output", "x.wav"], "--device"),
        (["dtmf", "1", "--aq", "null", "--output", "x.wav"], "--aq"),
        (["ring", "--device", "null", "--output", "x.wav"], "--device"),
        (["receive", "--port", "5004", "--output", "x.wav", "--au", "null"], "--au"),
        (["ring", "--tone", "nosuch"], "nosuch"),
        (["ring", "--country", "XX"], "XX"),
        (["ring", "--file", "a.wav", "--tone", "busy"], "--tone"),
        (["play"], "<file>"),
        (["record", "x.wav"], "--seconds"),
        (["record", "x.wav", "--seconds", "-1"], "--seconds"),
        (["loopback", "--loss", "101"], "101"),
        (["loopback", "--fec", "perhaps"], "perhaps"),
        (["loopback", "--ptime", "15"], "15"),
        (["loopback", "--codec", "PCMU", "--bitrate", "32000"], "--bitrate"),
        (["loopback", "--codec", "G722", "--complexity", "5"], "--complexity"),
        (["loopback", "--virtual", "--relay", "5000:5002"], "--relay"),
        (["loopback", "--relay", "5000"], "5000"),
        (["loopback", "--dtmf", "1x"], "'x' at position 2"),
        (["send"], "--to"),
        (["send", "--to", "localhost"], "localhost"),
        (["send", "--to", "127.0.0.1:5004", "--payload-type", "128"], "128"),
        (["send", "--to", "127.0.0.1:5004", "--input", "a.wav", "--device", "null"], "--device"),
        (["receive"], "--port"),
        (["receive", "--port", "5004", "--sdp", "x.sdp"], "--sdp"),
        (["receive", "--port", "70000"], "70000"),
        (["receive", "--port", "5004", "--output", "x.wav", "--device", "null"], "--device"),
        (["sip", "parse"], "<file>"),
        (["sip", "parse", "x", "--sdp", "--stream"], "--sdp"),
        (["sip", "parse", "x", "--print", "nice"], "nice"),
        (["sip", "parse", "x", "--uri", "--strict"], "--strict"),
        (["sip", "parse", "x", "--cpim", "--push-params"], "--cpim"),
        (["sip", "answer", "--story", "s.json"], "--calls 1"),
        (["sip", "register", "--account", "sip:a@b", "--push-team", "T"], "bundle"),
        (["sip", "register", "--account", "sip:a@b", "--push-provider", "fcm"], "empty"),
        (["sip", "register", "--account", "sip:a@b", "--push-provider", "fcm", "--push-team", "T"], "--push-team"),
        (
            [
                "sip", "call", "sip:a@b", "--account", "sip:a@b", "--no-register", "--push-provider", "fcm",
                "--push-prid", "x",
            ], "--push"
        ),
        (["sip", "register", "--user", "a"], "--user"),
        (["phone", "--proxy", "sip:a"], "--proxy"),
        (["sip", "server", "--domain", "a.test", "--push-park", "0"], "--push-park"),
        (["phone", "--user", "a"], "--user"),
        (["phone", "--account", "sip:a@b", "--accounts", "x"], "--account"),
        (["phone", "--account", "sip:a@b", "--password-file", "-"], "--password-file"),
        (["phone", "--country", "XX"], "XX"),
        (["sip", "call", "sip:a@b", "--transfer-to", "sip:c@d", "--attended-with", "sip:c@d"], "--attended-with"),
        (["sip", "torture", "x"], "--expect"),
        (["sip", "resolve", "sip:a@b", "--dns", "somewhere"], "--dns"),
        (["sip", "resolve", "sip:a@b", "--dns", "192.0.2.1:53", "--hosts", "x"], "--hosts"),
        (["sip", "torture", "x", "--expect", "y", "--mutations", "-1"], "--mutations"),
        (["sip", "torture", "x", "--expect", "y", "--stack", "--to", "127.0.0.1:5060"], "--stack"),
        (["sip", "torture", "x", "--expect", "y", "--transport", "tcp"], "--transport"),
        (["sip", "torture", "x", "--expect", "y", "--wait", "1"], "--wait"),
        (["sip", "message", "sip:a@b", "x", "--wait", "1"], "--receipts"),
        (["sip", "message", "sip:a@b", "x", "--receipts", "failed"], "failed"),
        (["sip", "message", "--listen", "--cpim"], "--cpim"),
        (["sip", "message", "--listen", "--room"], "--room"),
        (["sip", "account", "add", "--group", "g"], "--account"),
        (["sip", "account", "set", "--group", "g", "--account", "sip:a@b", "--expires", "1"], "--expires"),
        (["core", "main", "--group", "g", "--mailbox", "127.0.0.1:1", "--calls"], "--mailbox"),
        (
            ["core", "notify", "--group", "g", "--call-id", "1", "--mailbox", "127.0.0.1:1", "--account", "x"],
            "--account"
        ),
        (["core", "main", "--group", "g", "--au", "null"], "--au"),
        (["sip", "push", "--group", "g", "--payload", "p", "--kind", "text", "--launch", "x"], "--launch"),
        (["provider", "act", "--group", "g", "dance"], "dance"),
        (["provider", "act", "--group", "g", "hold", "1"], "UUID"),
        (["provider", "serve", "--group", "g", "--accept-after", "-1"], "--accept-after"),
        (["sip", "call"], "<uri>"),
        (["sip", "call", "sip:a@b", "--tls-cert", "x"], "--tls-key"),
        (["sip", "call", "--virtual", "--transport", "tls"], "--transport tls"),
        (["sip", "options", "sip:a@b", "--tls-insecure", "--tls-ca", "x"], "--tls-insecure"),
        (["sip", "server", "--domain", "a", "--tls-key", "x"], "--tls-cert"),
        (["sip", "call", "sip:a@b", "--virtual"], "<uri>"),
        (["sip", "call", "sip:a@b", "--loss", "5"], "--virtual"),
        (["sip", "call", "--virtual", "--account", "sip:a@b"], "--account"),
        (["sip", "call", "tel:5"], "tel"),
        (["sip", "call", "sip:a@b", "--events"], "--json"),
        (["sip", "call", "sip:a@b", "--resume-after", "1"], "--hold-after"),
        (["sip", "call", "sip:a@b", "--header", "no colon"], "--header"),
        (["sip", "call", "sip:a@b", "--user", "a"], "--account"),
        (["sip", "call", "sip:a@b", "--dtmf-way", "info"], "--dtmf"),
        (["sip", "call", "sip:a@b", "--input", "x.wav", "--au", "null"], "--au"),
        (["sip", "call", "sip:a@b", "--proxy", "nowhere"], "--proxy"),
        (["sip", "call", "sip:a@b", "--transfer-after", "1"], "--transfer-to"),
        (["sip", "call", "sip:a@b", "--transfer-to", "bob"], "--transfer-to"),
        (["sip", "answer", "--code", "486"], "--policy"),
        (["sip", "answer", "--echo", "--output", "x.wav"], "--output"),
        (["sip", "answer", "--local", "nowhere:x"], "nowhere:x"),
        (["sip", "register"], "--account"),
        (["sip", "register", "--account", "sip:a@b", "--once", "--seconds", "1"], "--once"),
        (["sip", "message", "sip:a@b"], "text"),
        (["sip", "message"], "--listen"),
        (["sip", "options", "sip:a@b", "--count", "0"], "--count"),
        (["sip", "call", "sip:a@b", "--unredacted"], "--sip-trace"),
        (["sip", "call", "sip:a@b", "--realm", "r"], "--account"),
        (["sip", "call", "sip:a@b", "--account", "sip:a@b", "--instance", "7"], "--instance"),
        (["sip", "call", "sip:a@b", "--session-expires", "20"], "--session-expires"),
        (["sip", "call", "--virtual", "--100rel"], "--100rel"),
        (["sip", "torture", "x", "--expect", "y", "--to", "127.0.0.1:5060", "--transport", "tls"], "--transport"),
        (["sip", "answer", "--output", "x", "--sip-trace", "x"], "--sip-trace"),
        (["sip", "call", "--virtual", "--tls-insecure"], "--tls-insecure"),
        (["sip", "call", "--virtual", "--story", "x"], "--story"),
        (["sip", "call", "sip:a@b", "--output", "x", "--story", "x"], "--story"),
        (["sip", "load", "--virtual", "--sip-trace", "x"], "--sip-trace"),
        (["sip", "load"], "--to"),
        (["sip", "load", "--to", "sip:a@b", "--virtual"], "--virtual"),
        (["sip", "load", "--to", "sip:a@b", "--users", "5"], "--users"),
        (["sip", "load", "--to", "sip:a@b", "--seed", "5"], "--seed"),
        (["sip", "load", "--register"], "--account"),
        (["sip", "load", "--register", "--account", "sip:a@b", "--talk", "1"], "--talk"),
        (["sip", "load", "--to", "sip:a@b", "--rate", "0"], "--rate"),
        (["sip", "server"], "--domain"),
        (["sip", "server", "--domain", "a b"], "--domain"),
        (["sip", "server", "--domain", "a", "--algorithm", "SHA-1"], "SHA-1"),
        (["sip", "server", "--domain", "a", "--fork", "some"], "some"),
        (["graph", "nothing"], "nothing"),
        (["graph", "call", "--format", "svg"], "svg"),
        (["detect"], "<file>"),
        (["loopback", "--virtual", "--device", "null"], "--virtual"),
        (["loopback", "--capture-device", "null"], "--device"),
        (["loopback", "--device", "null", "--chirps", "0"], "--chirps"),
        (["loopback", "--virtual", "--chirps", "3"], "--chirps"),
        (["report", "x.json"], "--output"),
        (["report", "--output", "x.html"], "<file>"),
        (["replay"], "<file>"),
        (["replay", "x.pcap", "--ssrc", "0xZ"], "0xZ"),
        (["replay", "x.pcap", "--payload-type", "128"], "128"),
        (["replay", Self.ownFile, "--output", Self.ownFile], "overwrite"),
        (["report", Self.ownFile, "--output", Self.ownFile], "overwrite"),
        (["send", "--to", "127.0.0.1:5004", "--input", Self.ownFile, "--sdp", Self.ownFile], "overwrite"),
        (["receive", "--sdp", Self.ownFile, "--output", Self.ownFile], "overwrite"),
        (["receive", "--port", "5004", "--output", "x", "--trace", "./x"], "one file"),
        (["loopback", "--input", Self.ownFile, "--pcap", Self.ownFile], "overwrite"),
        (["loopback", "--record", "x.wav", "--output", "./x.wav"], "one file"),
        (["loopback", "--record", "x.wav", "--device", "null"], "--record"),
        (["ring", "--file", Self.ownFile, "--output", Self.ownFile], "overwrite"),
        (["group", "serve", "--group", "/tmp/g"], "--name"),
        (["group", "serve", "--group", "", "--name", "n"], "--group"),
        (["group", "serve", "--group", "/tmp/g", "--name", "../n"], "../n"),
        (["group", "listen", "--group", "/tmp/g", "--name", ".n"], ".n"),
        (["group", "listen", "--group", "/tmp/g", "--name", "n", "--topic", ""], "--topic"),
        (["group", "status", "--group", "/tmp/g", "--name", "n"], "--name"),
        (["group", "send", "--group", "/tmp/g", "--name", "n"], "--body"),
        (["group", "send", "--group", "/tmp/g", "--name", "n", "--body", "{a:1"], "{a:1"),
        (["group", "send", "--group", "/tmp/g", "--name", String(repeating: "n", count: 65), "--body", "1"], "64"),
        (["group", "send", "--group", "/tmp/g", "--name", "n", "--body", "1", "--timeout", "0"], "--timeout"),
        (["group", "send", "--group", "/tmp/g", "--name", "n", "--body", "1", "--request", "--topic", "t"], "--topic"),
        (
            ["group", "send", "--group", "/tmp/g", "--name", "n", "--body", "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"],
            "16 levels"
        ),
        (["group", "nosuch"], "nosuch"),
        (["devices", "--log-level", "loud"], "loud"),
        (["nosuch"], "nosuch"),
        (["help", "nosuch"], "nosuch"),
        (["help", "core", "nosuch"], "nosuch"),
        (["codecs", "--nosuch"], "--nosuch"),
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

    @Test(arguments: [
        "devices", "codecs", "plugins", "dtmf", "ring", "play", "record", "loopback", "send", "receive", "graph",
        "detect", "replay", "report", "doctor", "group", "group serve", "group send", "group listen", "group status",
        "sip", "sip parse", "sip torture", "sip resolve", "sip call", "sip answer", "sip register", "sip message",
        "sip options", "sip server", "sip load", "phone",
    ])
    func `help shows examples`(command: String) throws {
        let run = try ToolRun(command.split(separator: " ").map(String.init) + ["--help"])
        run.wait()
        #expect(run.status == 0)
        #expect(run.output.contains("EXAMPLES") && run.output.contains("media-tool \(command)"))
        #expect(run.output.contains("--json"))
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
