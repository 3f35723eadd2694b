import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import media_tool

/// What the tool makes of words, before it does anything.
@Suite struct UsageTests {
    /// A file that is there, and that a command must not touch.
    private static let ownFile = #filePath

    private static let wrong: [(arguments: [String], word: String)] = [
        (["dtmf", "12E4"], "'E' at position 3"),
        (["dtmf", ""], "no digit"),
        (["dtmf", "1", "--duration", "5"], "--duration"),
        (["dtmf", "1", "--level", "4"], "--level"),
        (["dtmf", "1", "--rate", "7999", "--output", "x.wav"], "--rate"),
        (["dtmf", "1", "--cold", "--output", "x.wav"], "--cold"),
        (["dtmf", "1", "--device", "null", "--output", "x.wav"], "--device"),
        (["dtmf", "1", "--aq", "null", "--output", "x.wav"], "--aq"),
        (["ring", "--device", "null", "--output", "x.wav"], "--device"),
        (["dtmf", "1", "--device", "null", "--aq", "null"], "--aq"),
        (["ring", "--device", "null", "--aq", "null"], "--aq"),
        (["play", "x.wav", "--device", "null", "--au", "null"], "--au"),
        (["record", "x.wav", "--seconds", "1", "--device", "null", "--au-capture", "null"], "--au-capture"),
        (["receive", "--port", "5004", "--device", "null", "--au-playback", "null"], "--au-playback"),
        (["send", "--to", "127.0.0.1:5004", "--device", "null", "--au", "null"], "--au"),
        (["send", "--to", "127.0.0.1:5004", "--au", "null"], "--device role:AU"),
        (["send", "--to", "127.0.0.1:5004", "--device", "role:AU", "--aq", "null"], "--aq"),
        (["play", "x.wav", "--device", "role:AQ", "--au", "null"], "--au"),
        (["sip", "call", "sip:a@127.0.0.1", "--device", "role:AU", "--au", "null"], "--au"),
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
        (["sip", "account", "add", "--group", "g"], "--account"),
        (["sip", "account", "set", "--group", "g", "--account", "sip:a@b", "--expires", "1"], "--expires"),
        (["core", "main", "--group", "g", "--mailbox", "127.0.0.1:1", "--calls"], "--mailbox"),
        (["core", "calls", "--group", "g", "--mailbox", "127.0.0.1:1"], "--mailbox"),
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
        (["sip", "answer", "--provider", "g", "--policy", "accept"], "--policy"),
        (["sip", "answer", "--provider", "g", "--after", "0"], "--after"),
        (["sip", "answer", "--provider", "g", "--code", "486"], "--code"),
        (["sip", "answer", "--provider", ""], "--provider"),
        (["sip", "answer", "--early-media"], "--provider"),
        (["sip", "account", "add", "--group", "g", "--account", "sip:a@b", "--secrets", "cloud"], "cloud"),
        (["sip", "answer", "--echo", "--output", "x.wav"], "--output"),
        (["sip", "answer", "--local", "nowhere:x"], "nowhere:x"),
        (["sip", "register"], "--account"),
        (["sip", "register", "--account", "sip:a@b", "--once", "--seconds", "1"], "--once"),
        (["sip", "register", "--account", "sip:a@b", "--unregister", "--background", "5"], "--background"),
        (["sip", "register", "--account", "sip:a@b", "--seed", "5"], "--virtual"),
        (["sip", "register", "--virtual", "--local", "127.0.0.1:0"], "--local"),
        (["sip", "register", "--group", "g", "--expires", "90"], "--expires"),
        (["sip", "register", "--group", "g", "--registrar", "sip:a"], "--registrar"),
        (["sip", "call", "--virtual", "--srtp", "dtls"], "--virtual"), (["phone", "--srtp", "zrtp"], "zrtp"),
        (["sip", "call", "--virtual", "--srtp", "auto"], "--virtual"),
        (["send", "--to", "h:1", "--srtp", "dtls", "--sdp", "x.sdp"], "needs an answer"),
        (["send", "--to", "h:1", "--srtp", "sdes"], "--sdp"),
        (["core", "main", "--group", "g", "--srtp", "sdes"], "--calls"),
        (["core", "calls", "--group", "g", "--srtp", "sdes", "--ice"], "--srtp dtls"),
        (["sip", "answer", "--key-log", "x"], "--srtp dtls"),
        (["sip", "call", "sip:a@b", "--device", "null", "--au", "null"], "--au"),
        (["sip", "call", "sip:a@b", "--device", "null", "--input", "x.wav"], "--device"),
        (["sip", "call", "sip:a@b", "--output", "x", "--pcap", "x"], "--pcap"),
        (["sip", "call", "sip:a@b", "--timeout", "0"], "--timeout"),
        (["sip", "register", "--group", "g", "--proxy", "sip:a"], "--proxy"),
        (["sip", "message", "--listen", "--group", "g"], "--group"),
        (["sip", "call", "sip:a@b", "--header", "A b: c"], "--header"),
        (["sip", "call", "--virtual", "--t1", "50"], "--t1"),
        (["sip", "call", "--virtual", "--no-register"], "--no-register"),
        (["sip", "load", "--virtual", "--expires", "90"], "--expires"),
        (["sip", "load", "--to", "sip:a@b", "--cores", "2", "--sip-trace", "x"], "--sip-trace"),
        (["sip", "answer", "--early-media"], "--early-media"),
        (["sip", "answer", "--early-media", "--after", "1", "--policy", "busy"], "--early-media"),
        (["sip", "answer", "--pcap", "x"], "--pcap"),
        (["sip", "answer", "--header", "A: b"], "--header"),
        (["sip", "message", "--listen", "--virtual"], "--listen"),
        (["sip", "message", "--listen", "--room"], "--room"),
        (["sip", "load", "--to", "sip:a@b", "--cores", "2", "--local", "127.0.0.1:5060"], "--local"),
        (["sip", "load", "--to", "sip:a@b", "--group", "g"], "--group"),
        (["provider", "serve", "--group", "g", "--interactive", "--json"], "--interactive"),
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
        (["sip", "call", "--virtual", "--refuse-video"], "--refuse-video"),
        (["core", "notify", "--group", "g", "--call-id", "1", "--room", "sip:a@b"], "--room"),
        (["core", "notify", "--group", "g"], "--call-id"),
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
        (["webrtc", "serve", "--echo", "--input", "a.wav"], "--input"),
        (["webrtc", "serve", "--pcap", "a.pcap"], "--calls 1"),
        (["webrtc", "serve", "--origin", "phone.example"], "phone.example"),
        (["webrtc", "serve", "--media", "127.0.0.1:5000"], "--media"),
        (["webrtc", "serve", "--media", "0.0.0.0"], "--media"),
        (["webrtc", "serve", "--turn", "a@192.0.2.1"], "--ice full"),
        (["webrtc", "serve", "--ice", "full", "--turn-password-file", "x"], "--turn"),
        (["sip", "call", "sip:a@b", "--srtp", "dtls", "--turn", "a@192.0.2.1"], "--ice"),
        (["doctor", "--turn", "a@"], "--turn"),
        (["webrtc", "answer", "--dtmf", "15x"], "'x'"),
        (["webrtc", "answer", "--offer", "a.sdp", "--answer", "a.sdp"], "a.sdp"),
        (["webrtc", "offer", "--ptime", "15"], "15"),
        (["agent", "try"], "--to"),
        (["agent", "try", "--to", "http://127.0.0.1/"], "http://127.0.0.1/"),
        (["agent", "try", "--to", "audiosocket:127.0.0.1"], "audiosocket:127.0.0.1"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--rate", "16000"], "--rate"),
        (["agent", "try", "--to", "audiosocket:127.0.0.1:9", "--agent-header", "a: b"], "WebSocket"),
        (["agent", "try", "--to", "audiosocket:127.0.0.1:9", "--parameter", "from=alice"], "--parameter"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--agent-ca", "Package.swift"], "wss://"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--agents-at", "127.0.0.1:1"], "--agents-at"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--agents-cert", "Package.swift"], "--agents-at"),
        (["agent", "try", "--agents-at", "127.0.0.1:1", "--format", "twilio"], "--format asterisk"),
        (["agent", "try", "--agents-at", "127.0.0.1:1", "--agents-cert", "Package.swift"], "--agents-key"),
        (["agent", "try", "--agents-at", "127.0.0.1:1", "--agent-header", "a: b"], "--agent-header"),
        (["agent", "try", "--agents-at", "127.0.0.1:1", "--agent-token-file", "Package.swift"], "give '--to'"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--agents-key", "Package.swift"], "--agents-key"),
        (["agent", "try", "--agents-at", "127.0.0.1:1", "--format", "asterisk-plain", "--parameter", "a=b"], "JSON"),
        (["agent", "try", "--agents-at", "127.0.0.1:1", "--rate", "44100"], "8000, 16000"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--parameter", "from"], "--parameter"),
        (["agent", "try", "--to", "ws://127.0.0.1/", "--dtmf", "1x"], "'x'"),
        (["devices", "--log-level", "loud"], "loud"),
        (["nosuch"], "nosuch"),
        (["codecs", "--nosuch"], "--nosuch"),
    ]

    /// To parse takes long where the compiler does not optimise.
    @Test(arguments: thorough(wrong, each: 3))
    func `wrong usage is refused, and the word is named`(arguments: [String], word: String) throws {
        let error = try #require(throws: (any Error).self) { try MediaTool.parseAsRoot(arguments) }
        #expect(MediaTool.exitCode(for: error) == .validationFailure)
        #expect(MediaTool.fullMessage(for: error).contains(word))
    }

    @Test(arguments: [
        ["play", "x.wav", "--device", "AQ: Audio Queue Device", "--aq", "null"],
        ["send", "--to", "127.0.0.1:5004", "--device", "role:AU", "--au", "null"],
    ])
    func `a role that is named as the card stands for what a flag says`(arguments: [String]) throws {
        _ = try MediaTool.parseAsRoot(arguments)
    }

    @Test func `numbers and texts may begin with a dash`() throws {
        let dtmf = try #require(try MediaTool.parseAsRoot(["dtmf", "1", "--level", "-20"]) as? DTMFCommand)
        #expect(dtmf.level == -20)
        let words = ["--group", "g", "--call-id", "-1@a"]
        let answer = try MediaTool.parseAsRoot(["core", "act"] + words + ["--reply", "-5 min"])
        let act = try #require(answer as? CoreActCommand)
        #expect(act.reply == "-5 min" && act.callID == "-1@a")
        let notify = try #require(try MediaTool.parseAsRoot(["core", "notify"] + words) as? CoreNotifyCommand)
        #expect(notify.callID == "-1@a")
        _ = try MediaTool.parseAsRoot(
            ["sip", "account", "add", "--group", "g", "--account", "sip:a@b", "--name", "-Bob-"]
        )
    }

    @Test(arguments: [
        "devices", "codecs", "plugins", "dtmf", "ring", "play", "record", "loopback", "send", "receive", "graph",
        "detect", "replay", "report", "doctor", "group", "group serve", "group send", "group listen", "group status",
        "sip", "sip parse", "sip torture", "sip resolve", "sip call", "sip answer", "sip register", "sip message",
        "sip options", "sip server", "sip load", "sip account", "sip account add", "sip push", "phone",
        "core main", "core notify", "core calls", "core act", "core status", "provider", "provider serve",
        "provider act", "provider status", "webrtc", "webrtc serve", "webrtc answer", "webrtc offer",
    ])
    func `help shows examples`(command: String) throws {
        let words = command.split(separator: " ").map(String.init)
        var asked = try MediaTool.parseAsRoot(words + ["--help"])
        let help = try #require(throws: (any Error).self) { try asked.run() }
        #expect(MediaTool.exitCode(for: help) == .success)
        let text = MediaTool.fullMessage(for: help)
        let examples = text.split(separator: "USAGE")[0].components(separatedBy: "EXAMPLES").dropFirst().joined()
        #expect(examples.contains("media-tool \(command)") && text.contains("--json"))
    }
}
