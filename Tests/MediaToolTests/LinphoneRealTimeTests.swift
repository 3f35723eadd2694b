import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Calls between the tool and linphonec on 127.0.0.1: tones and keys both ways, hold by each, transfer, busy, decline, cancel.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)")
)
struct LinphoneRealTimeTests {
    // MARK: linphonec is called

    @Test(arguments: thorough(["opus", "PCMU"], quick: ["opus"]))
    func `linphonec answers: both hear the other's tone, and linphonec our keys`(codec: String) throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun()
        let run = try call(linphone, scratch, ["--codec", codec, "--dtmf", "159#", "--seconds", "3"])
        #expect(run.wait() == 0, "\(run.errors)")
        let connected = try #require(try run.jsonLines().first { $0["event"] as? String == "connected" })
        #expect(connected["codec"] as? String == codec)
        try expectEnd(run, by: "us")
        #expect(linphone.prints("ended (No error)"), "\(linphone.output)")
        #expect(linphone.keys == "159#", "\(linphone.output)")
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        #expect(try linphone.heard(Tone.ours) >= 5)
    }

    @Test(arguments: KamailioRun.isThere ? ["tcp", "tls"] : ["tcp"])
    func `linphonec answers by another transport: both hear the other's tone`(transport: String) throws {
        let scratch = try Scratch()
        // Where it listens by TLS it takes nobody (5.1): it is called by the connection to its server.
        let kamailio = transport == "tls" ? try KamailioRun() : nil
        let linphone = try LinphoneRun(at: kamailio?.secureAddress, by: transport)
        var whom = ["\(linphone.uri);transport=\(transport)"]
        if let kamailio {
            try #require(kamailio.prints("saved carol"), "\(linphone.output)")
            whom = ["sip:carol@example.test"] + (try kamailio.account("alice", by: transport))
        }
        let run = try call(linphone, at: whom, scratch, ["--dtmf", "15", "--seconds", "2"])
        #expect(run.wait() == 0, "\(run.errors)")
        let calling = try #require(try run.jsonLines().first { $0["event"] as? String == "calling" })
        let targets = try #require(calling["targets"] as? [String])
        #expect(targets.allSatisfy { $0.hasPrefix("\(transport) ") } && !targets.isEmpty, "\(targets)")
        try expectEnd(run, by: "us")
        #expect(linphone.prints("ended (No error)"), "\(linphone.output)")
        #expect(linphone.keys == "15", "\(linphone.output)")
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 8)
        #expect(try linphone.heard(Tone.ours) >= 5)
    }

    @Test func `linphonec takes one call: the second is told that it is busy`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun(callCount: 1)
        let first = try call(linphone, scratch)
        try #require(first.printed(#""event":"connected""#), "\(first.errors)")
        let second = try ToolRun.finished("sip", "call", linphone.uri, "--seconds", "1", "--json")
        #expect(second.status == 1)
        #expect(try second.json()["status"] as? String == "busy")
        #expect(try second.json()["code"] as? Int == 486)
        try linphone.command("terminate")
        #expect(first.wait() == 0, "\(first.errors)")
        try expectEnd(first, by: "them")
    }

    @Test func `linphonec is held and resumed, and holds and resumes`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun()
        let run = try call(linphone, scratch, ["--hold-after", "0.5", "--resume-after", "1.2"])
        try #require(run.printed(#""event":"resumed""#), "\(run.errors)")
        try linphone.command("pause")
        #expect(run.printed(#""by":"them""#), "\(run.output)")
        #expect(linphone.prints("is now paused"), "\(linphone.output)")
        try linphone.command("resume 1")
        let isResumed = try run.wait { try run.jsonLines().count { $0["event"] as? String == "resumed" } == 2 }
        #expect(isResumed, "\(run.output)")
        try linphone.command("terminate")
        #expect(run.wait() == 0, "\(run.errors)")
        let sides = try run.jsonLines().compactMap { $0["by"] as? String }
        #expect(sides == ["us", "us", "them", "them"])
        try expectEnd(run, by: "them")
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 3)
    }

    @Test func `linphonec goes where it is transferred to, and we leave`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun()
        let target = try answer()
        let uri = "sip:carol@\(try target.address())"
        let run = try call(linphone, scratch, ["--transfer-to", uri, "--transfer-after", "0.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        let transfer = try #require(try run.jsonLines().last { $0["event"] as? String == "transfer" })
        #expect(transfer["state"] as? String == "done" && transfer["code"] as? Int == 200, "\(transfer)")
        #expect(target.printed(#""event":"connected""#), "\(target.errors)")
        try linphone.command("terminate")
        #expect(target.wait() == 0, "\(target.errors)")
    }

    @Test func `linphonec takes our place with somebody who has answered us`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun()
        let target = try answer(["--echo", "--calls", "2"])
        let uri = "sip:carol@\(try target.address())"
        let run = try call(linphone, scratch, ["--attended-with", uri, "--transfer-after", "0.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        let transfer = try #require(try run.jsonLines().last { $0["event"] as? String == "transfer" })
        #expect(transfer["state"] as? String == "done" && transfer["code"] as? Int == 200, "\(transfer)")
        // Ours has ended, and the other one goes on.
        let isHandedOver = try target.wait {
            let events = try target.jsonLines().compactMap { $0["event"] as? String }
            return events.count { $0 == "connected" } == 2 && events.count { $0 == "ended" } == 1
        }
        #expect(isHandedOver, "\(target.output)")
        try linphone.command("terminate")
        #expect(target.wait() == 0, "\(target.errors)")
    }

    @Test func `linphonec sends us to somebody, and we go on with them`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun()
        let target = try answer()
        let run = try call(linphone, scratch, ["--follow-transfers", "--seconds", "30"])
        try #require(run.printed(#""event":"connected""#), "\(run.errors)")
        try linphone.command("transfer sip:carol@\(try target.address())")
        try #require(target.printed(#""event":"connected""#), "\(run.output)\(linphone.output)")
        #expect(run.printed(#""state":"done""#), "\(run.output)")
        #expect(linphone.prints("ended (No error)"), "\(linphone.output)")
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(target.wait() == 0, "\(target.errors)")
    }

    @Test func `a call that rings at linphonec is taken back, or declined there`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun(answersByItself: false)
        let cancelled = try call(linphone, scratch)
        try #require(cancelled.printed(#""code":180"#), "\(cancelled.errors)")
        cancelled.interrupt()
        #expect(cancelled.wait() == 0, "\(cancelled.errors)")
        #expect(try cancelled.jsonLines().last?["code"] as? Int == 487)
        #expect(linphone.prints("Call 1 with"), "\(linphone.output)")
        let declined = try call(linphone, scratch)
        try #require(declined.printed(#""code":180"#), "\(declined.errors)")
        try linphone.command("terminate 2")
        #expect(declined.wait() == 1)
        #expect(try declined.jsonLines().last?["code"] as? Int == 603, "\(declined.output)")
    }

    // MARK: linphonec calls

    @Test(arguments: ["udp", "tcp", "tls"])
    func `linphonec calls: it hears itself, its keys arrive, and it hangs up`(transport: String) throws {
        let linphone = try LinphoneRun()
        let identity = TestCertificates.of("loopback")
        let secured = transport == "tls" ? ["--tls-cert", identity.path, "--tls-key", identity.keyPath] : []
        let run = try answer(["--echo"] + secured)
        try linphone.command("call sip:alice@\(try run.address(by: transport));transport=\(transport)")
        try #require(run.printed(#""event":"connected""#), "\(run.errors)")
        #expect(linphone.prints("Media streams established"), "\(linphone.output)")
        let keys = transport == "udp" ? "159#" : "5"
        try linphone.press(keys, heardBy: run)
        try linphone.command("terminate")
        #expect(run.wait() == 0, "\(run.errors)")
        let report = try expectEnd(run, by: "them")
        #expect(report["dtmf"] as? String == keys)
        #expect(try linphone.heard(Tone.linphone) >= 3)
    }

    @Test(arguments: ["busy", "reject"])
    func `linphonec is told that nobody answers`(policy: String) throws {
        let linphone = try LinphoneRun()
        let run = try answer(["--policy", policy])
        try linphone.command("call sip:alice@\(try run.address())")
        #expect(run.wait() == 0, "\(run.errors)")
        // Busy is an error to it, a refusal an end.
        #expect(linphone.prints(policy == "busy" ? " error." : " ended ("), "\(linphone.output)")
    }

    @Test func `linphonec takes its call back`() throws {
        let linphone = try LinphoneRun()
        let run = try answer(["--policy", "ring"])
        try linphone.command("call sip:alice@\(try run.address())")
        try #require(run.printed(#""event":"incoming""#), "\(run.errors)")
        #expect(linphone.prints("ringing"), "\(linphone.output)")
        try linphone.command("terminate")
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try run.jsonLines().last?["status"] as? String == "cancelled")
    }

    // MARK: Runs, and what they say

    private func call(
        _ linphone: LinphoneRun,
        at whom: [String]? = nil,
        _ scratch: Scratch,
        _ options: [String] = []
    ) throws -> ToolRun {
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        return try ToolRun(["sip", "call"] + (whom ?? [linphone.uri]) + ["--json", "--events"] + files + options)
    }

    /// Takes one call.
    private func answer(_ options: [String] = ["--echo"]) throws -> ToolRun {
        try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--calls", "1", "--json"] + options)
    }

    /// Checks that the call was well, and gives its report.
    @discardableResult
    private func expectEnd(_ run: ToolRun, by side: String) throws -> [String: Any] {
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "ok" && report["code"] as? Int == 200, "\(report)")
        #expect(report["endedBy"] as? String == side)
        return report
    }
}
