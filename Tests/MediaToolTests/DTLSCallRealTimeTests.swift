import Foundation
import TestSupport
import Testing

/// Calls with SRTP by DTLS between runs of the tool, and with baresip and linphonec: sound both ways, and no call in the clear.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct DTLSCallRealTimeTests {
    // MARK: The tool

    @Test func `a call by DTLS is told with its certificate; others are refused on either side`() throws {
        let scratch = try Scratch()
        let answering = try answer(["--echo", "--calls", "1"])
        let uri = "sip:bob@\(try answering.address())"
        for srtp in ["off", "sdes"] {
            let refused = try SecuredRuns.call(uri, scratch, ["--seconds", "1"], srtp: srtp)
            #expect(refused.wait() == 1)
            #expect(try refused.jsonLines().last?["code"] as? Int == 488, "\(refused.output)")
        }
        let keys = scratch.file("keys")
        let call = try self.call(
            uri,
            scratch,
            ["--seconds", "2", "--hold-after", "0.6", "--resume-after", "1", "--key-log", keys]
        )
        #expect(call.wait() == 0, "\(call.errors)")
        try expectSecured(call)
        #expect(try String(contentsOfFile: keys, encoding: .utf8).hasPrefix("CLIENT_RANDOM "))
        let mode = try FileManager.default.attributesOfItem(atPath: keys)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(!call.errors.contains("Warning"), "\(call.errors)")
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
        #expect(answering.wait() == 0, "\(answering.errors)")
        try expectSecured(answering)
        #expect(try answering.jsonLines().count { $0["event"] as? String == "unacceptable" } == 2)
        // Each tells the certificate of the other, of one association alone.
        let told = try [call, answering].map { run in
            try run.jsonLines().filter { $0["event"] as? String == "secured" }.map { $0["fingerprint"] as? String }
        }
        #expect(told.allSatisfy { $0.count == 1 } && told[0] != told[1], "\(told)")
    }

    @Test(arguments: [("off", 3), ("sdes", 2), ("auto", 1)])
    func `a call that prefers SRTP is in the clear only where the other side has none`(srtp: String, tries: Int) throws
    {
        let scratch = try Scratch()
        let answering = try SecuredRuns.answer(["--echo", "--calls", "1"], srtp: srtp)
        let uri = "sip:bob@\(try answering.address())"
        let call = try SecuredRuns.call(uri, scratch, ["--seconds", "1"], srtp: "auto")
        #expect(call.wait() == 0, "\(call.errors)")
        let used = srtp == "auto" ? "dtls" : srtp
        let lines = try call.jsonLines()
        #expect(lines.first { $0["event"] as? String == "connected" }?["srtp"] as? String == used, "\(lines)")
        let security = lines.last?["srtp"] as? [String: Any]
        #expect(security?["keying"] as? String == (used == "off" ? nil : used), "\(lines)")
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 3)
        #expect(answering.wait() == 0, "\(answering.errors)")
    }

    @Test func `a call by DTLS is handed on to somebody with a certificate of his own`() throws {
        let scratch = try Scratch()
        let first = try answer(["--echo", "--calls", "1", "--follow-transfers"])
        try Tone.baresip.write(to: scratch.file("target.wav"), rate: 16000)
        let sound = ["--input", scratch.file("target.wav"), "--output", scratch.file("back.wav")]
        let second = try answer(sound + ["--calls", "1"])
        let call = try self.call(
            "sip:bob@\(try first.address())",
            scratch,
            ["--transfer-to", "sip:carol@\(try second.address())", "--transfer-after", "1"]
        )
        #expect(call.wait() == 0, "\(call.errors)")
        let told = try call.jsonLines()
        #expect(told.last { $0["event"] as? String == "transfer" }?["state"] as? String == "done", "\(told)")
        FileWatch.wait(for: scratch.file("back.wav"), byteCount: 2 * 48_000)
        second.interrupt()
        #expect(first.wait() == 0 && second.wait() == 0)
        try expectSecured(second)
        #expect(try Tone.baresip.tenths(of: scratch.file("back.wav")).count { $0 } >= 3)
    }

    // MARK: baresip

    @Test(
        .enabled(if: BaresipRun.program != nil, "needs baresip (Debian: baresip-core)"),
        arguments: thorough(["opus", "PCMU"], quick: ["PCMU"])
    )
    func `baresip answers: both hear the other's tone, and baresip our keys`(codec: String) throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(codec: codec, encryption: "dtls_srtp")
        let run = try call(baresip.uri, scratch, ["--codec", codec, "--dtmf", "159#", "--seconds", "2.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        try expectSecured(run, refusing: SecuredRuns.ofBaresip)
        #expect(baresip.keys == "159#", "\(baresip.output)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        #expect(try Tone.ours.tenths(of: baresip.endedRecording()).count { $0 } >= 5)
    }

    @Test(.enabled(if: BaresipRun.program != nil, "needs baresip (Debian: baresip-core)"))
    func `baresip calls and hears itself`() throws {
        let baresip = try BaresipRun(encryption: "dtls_srtp")
        let run = try answer(["--echo", "--calls", "1"])
        try baresip.command("dial", "sip:alice@\(try run.address())")
        try #require(run.printed(#""event":"secured""#), "\(run.output)\(baresip.output)")
        #expect(baresip.records(.seconds(1), ofCall: 1), "\(baresip.output)")
        try baresip.command("hangup")
        #expect(run.wait() == 0, "\(run.errors)")
        try expectSecured(run, refusing: SecuredRuns.ofBaresip)
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording()).count { $0 } >= 3)
    }

    // MARK: linphonec

    @Test(.enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)"))
    func `linphonec answers: both hear the other's tone`() throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun(usesDTLS: true)
        let run = try call(linphone.uri, scratch, ["--seconds", "2.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        try expectSecured(run, refusing: SecuredRuns.ofLinphone)
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        #expect(try linphone.heard(Tone.ours) >= 5)
    }

    @Test(.enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)"))
    func `linphonec calls, and hears itself`() throws {
        let linphone = try LinphoneRun(usesDTLS: true)
        let run = try answer(["--echo", "--calls", "1"])
        try linphone.command("call sip:alice@\(try run.address())")
        try #require(run.printed(#""event":"secured""#), "\(run.output)\(linphone.output)")
        #expect(linphone.prints("Media streams established"), "\(linphone.output)")
        try linphone.press("15", heardBy: run)
        try linphone.command("terminate")
        #expect(run.wait() == 0, "\(run.errors)")
        try expectSecured(run, refusing: SecuredRuns.ofLinphone)
        #expect(try linphone.heard(Tone.linphone) >= 3)
    }

    // MARK: Runs

    private func call(_ uri: String, _ scratch: Scratch, _ options: [String]) throws -> ToolRun {
        try SecuredRuns.call(uri, scratch, options, srtp: "dtls")
    }

    private func answer(_ options: [String]) throws -> ToolRun { try SecuredRuns.answer(options, srtp: "dtls") }

    private func expectSecured(_ run: ToolRun, refusing allowed: [String: Int] = [:]) throws {
        try SecuredRuns.expectSecured(run, by: "dtls", refusing: allowed)
    }
}
