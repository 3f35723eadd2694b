import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Calls with SRTP by SDES between runs of the tool, and with baresip and linphonec: sound both ways, and no call in the clear.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SecuredCallRealTimeTests {
    // MARK: The tool

    @Test func `a secured call is told with its suite; one in the clear is refused on either side`() throws {
        let scratch = try Scratch()
        let secured = try SecuredRuns.answer(["--echo", "--calls", "1"])
        let uri = "sip:bob@\(try secured.address())"
        let plain = try ToolRun.finished("sip", "call", uri, "--seconds", "1", "--json")
        #expect(plain.status == 1)
        #expect(try plain.json()["code"] as? Int == 488, "\(plain.output)")
        let call = try SecuredRuns.call(uri, scratch, ["--seconds", "1.5", "--dtmf", "15"])
        #expect(call.wait() == 0, "\(call.errors)")
        try SecuredRuns.expectSecured(call)
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
        #expect(secured.wait() == 0, "\(secured.errors)")
        let report = try #require(secured.jsonLines().last)
        #expect(report["dtmf"] as? String == "15")
        #expect((report["srtp"] as? [String: Any])?["suite"] as? String == "AEAD_AES_128_GCM", "\(report)")

        let open = try SecuredRuns.answer(["--echo", "--calls", "1"], srtp: "off")
        let refused = try SecuredRuns.call("sip:bob@\(try open.address())", scratch, ["--seconds", "1"])
        #expect(refused.wait() == 1)
        #expect(try refused.jsonLines().last?["code"] as? Int == 488, "\(refused.output)")
        open.interrupt()
        open.wait()
    }

    @Test func `a secured call is held and resumed with its keys, and handed on with others`() throws {
        let scratch = try Scratch()
        let trace = ["--sip-trace", scratch.file("trace"), "--unredacted"]
        let first = try SecuredRuns.answer(["--echo", "--calls", "1", "--follow-transfers"] + trace)
        try Tone.baresip.write(to: scratch.file("target.wav"), rate: 16000)
        let sound = ["--input", scratch.file("target.wav"), "--output", scratch.file("back.wav")]
        let second = try SecuredRuns.answer(sound + ["--calls", "1"])
        let call = try SecuredRuns.call(
            "sip:bob@\(try first.address())",
            scratch,
            ["--hold-after", "0.4", "--resume-after", "0.8", "--transfer-to", "sip:carol@\(try second.address())"]
                + ["--transfer-after", "1.4"]
        )
        #expect(call.wait() == 0, "\(call.errors)")
        let told = try call.jsonLines()
        #expect(told.contains { $0["event"] as? String == "resumed" }, "\(told)")
        #expect(told.last { $0["event"] as? String == "transfer" }?["state"] as? String == "done", "\(told)")
        try SecuredRuns.expectSecured(call)
        // A second of what the target says comes back from who was called first.
        FileWatch.wait(for: scratch.file("back.wav"), byteCount: 2 * 48_000)
        second.interrupt()
        #expect(first.wait() == 0 && second.wait() == 0)
        try SecuredRuns.expectSecured(second)
        // What the caller sent until it had left is of another key by then.
        try SecuredRuns.expectSecured(first, refusing: ["unauthentic": 100])
        #expect(try Tone.baresip.tenths(of: scratch.file("back.wav")).count { $0 } >= 3)
        // The caller's, that of who was called for each of both calls, and the target's.
        let lines = try String(contentsOfFile: scratch.file("trace"), encoding: .utf8).split(
            whereSeparator: \.isNewline
        )
        #expect(Set(lines.filter { $0.contains("AEAD_AES_128_GCM inline:") }.map { $0.suffix(40) }).count == 4)
    }

    // MARK: baresip

    @Test(
        .enabled(if: BaresipRun.program != nil, "needs baresip (Debian: baresip-core)"),
        arguments: thorough(["opus", "PCMU"], quick: ["opus"])
    )
    func `baresip answers: both hear the other's tone, and baresip our keys`(codec: String) throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(codec: codec, encryption: "srtp-mand")
        let run = try SecuredRuns.call(baresip.uri, scratch, ["--codec", codec, "--dtmf", "159#", "--seconds", "2.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        try SecuredRuns.expectSecured(run, refusing: SecuredRuns.ofBaresip)
        #expect(baresip.keys == "159#", "\(baresip.output)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        #expect(try Tone.ours.tenths(of: baresip.endedRecording()).count { $0 } >= 5)
    }

    @Test(
        .enabled(if: BaresipRun.program != nil, "needs baresip (Debian: baresip-core)"),
        arguments: thorough(["srtp-mand", "srtp-mandf"], quick: ["srtp-mandf"])
    )
    func `baresip calls and hears itself`(profile: String) throws {
        let baresip = try BaresipRun(encryption: profile)
        let run = try SecuredRuns.answer(["--echo", "--calls", "1"])
        try baresip.command("dial", "sip:alice@\(try run.address())")
        try #require(run.printed(#""event":"connected""#), "\(run.output)\(baresip.output)")
        #expect(baresip.records(.seconds(1), ofCall: 1), "\(baresip.output)")
        try baresip.command("hangup")
        #expect(run.wait() == 0, "\(run.errors)")
        try SecuredRuns.expectSecured(run, refusing: SecuredRuns.ofBaresip)
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording()).count { $0 } >= 3)
    }

    // MARK: linphonec

    @Test(
        .enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)"),
        arguments: thorough(["AES_256_CM_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_80"], quick: ["AES_256_CM_HMAC_SHA1_80"])
    )
    func `linphonec answers: both hear the other's tone`(suite: String) throws {
        let scratch = try Scratch()
        let linphone = try LinphoneRun(suite: suite)
        let run = try SecuredRuns.call(linphone.uri, scratch, ["--seconds", "2.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        try SecuredRuns.expectSecured(run, suite, refusing: SecuredRuns.ofLinphone)
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        #expect(try linphone.heard(Tone.ours) >= 5)
    }

    @Test(
        .enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)"),
        arguments: thorough(
            ["AES_CM_128_HMAC_SHA1_32", "AES_256_CM_HMAC_SHA1_32"],
            quick: ["AES_CM_128_HMAC_SHA1_32"]
        )
    )
    func `linphonec calls, and hears itself`(suite: String) throws {
        let linphone = try LinphoneRun(suite: suite)
        let run = try SecuredRuns.answer(["--echo", "--calls", "1"])
        try linphone.command("call sip:alice@\(try run.address())")
        try #require(run.printed(#""event":"connected""#), "\(run.output)\(linphone.output)")
        #expect(linphone.prints("Media streams established"), "\(linphone.output)")
        try linphone.press("159#", heardBy: run)
        try linphone.command("terminate")
        #expect(run.wait() == 0, "\(run.errors)")
        try SecuredRuns.expectSecured(run, suite, refusing: SecuredRuns.ofLinphone)
        #expect(try linphone.heard(Tone.linphone) >= 3)
    }

    // MARK: Kamailio between

    @Test(
        .enabled(
            if: KamailioRun.isThere && BaresipRun.program != nil && LinphoneRun.program != nil,
            "needs Kamailio, baresip and linphonec (Debian: kamailio, kamailio-tls-modules, baresip-core, linphone-cli)"
        )
    )
    func `through Kamailio, our messages by TLS, baresip and linphonec are called, and call`() throws {
        let scratch = try Scratch()
        let kamailio = try KamailioRun()
        let account = try kamailio.account("alice", by: "tls")
        let baresip = try BaresipRun(at: kamailio.address, encryption: "srtp-mand")
        let first = try SecuredRuns.call("sip:bob@example.test", scratch, account + ["--seconds", "2"])
        #expect(first.wait() == 0, "\(first.errors)")
        try SecuredRuns.expectSecured(first, refusing: SecuredRuns.ofBaresip)
        #expect(!first.errors.contains("Warning"), "\(first.errors)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
        let linphone = try LinphoneRun(at: kamailio.address, suite: "AES_CM_128_HMAC_SHA1_80")
        let second = try SecuredRuns.call("sip:carol@example.test", scratch, account + ["--seconds", "2"])
        #expect(second.wait() == 0, "\(second.errors)")
        try SecuredRuns.expectSecured(second, "AES_CM_128_HMAC_SHA1_80", refusing: SecuredRuns.ofLinphone)
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)

        let answering = try ToolRun(
            ["sip", "answer", "--echo", "--calls", "1", "--srtp", "sdes", "--json"] + account
        )
        try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
        try baresip.command("dial", "sip:alice@example.test")
        try #require(answering.printed(#""event":"connected""#), "\(answering.output)\(baresip.output)")
        #expect(baresip.records(.seconds(1), ofCall: 2), "\(baresip.output)")
        try baresip.command("hangup")
        #expect(answering.wait() == 0, "\(answering.errors)")
        try SecuredRuns.expectSecured(answering, refusing: SecuredRuns.ofBaresip)
        #expect(try linphone.heard(Tone.ours) >= 3)
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording(ofCall: 2)).count { $0 } >= 3)
    }

    // MARK: Streams that are described

    @Test func `a described stream is received by its key, and nothing else is`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let sender = try ToolRun([
            "send", "--to", "127.0.0.1:\(port)", "--seconds", "60", "--srtp", "sdes", "--sdp", scratch.file("x.sdp"),
            "--json",
        ])
        FileWatch.wait(for: scratch.file("x.sdp"))
        let receiver = try ToolRun(["receive", "--sdp", scratch.file("x.sdp"), "--device", "null", "--json"])
        FreePort.waitUntilTaken(port)
        let stranger = try ToolRun.finished("send", "--to", "127.0.0.1:\(port)", "--seconds", "0.2")
        sender.interrupt()
        #expect(stranger.status == 0 && sender.wait() == 0 && receiver.wait() == 0, "\(receiver.errors)")
        let attributes = try FileManager.default.attributesOfItem(atPath: scratch.file("x.sdp"))
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        let security = try #require(try receiver.json()["srtp"] as? [String: Any])
        #expect(security["suite"] as? String == "AES_CM_128_HMAC_SHA1_80", "\(security)")
        #expect(try #require((security["refused"] as? [String: Int])?["unauthentic"]) > 5, "\(security)")
        let leg = try #require((try receiver.json()["legs"] as? [[String: Any]])?.first)
        let packets = try #require((leg["received"] as? [String: Any])?["packets"] as? Int)
        let sent = try #require((try sender.json()["legs"] as? [[String: Any]])?.first?["sent"] as? [String: Any])
        // What was sent before it listened did not come.
        #expect(packets > 5 && packets <= (sent["packets"] as? Int ?? 0))
    }

    @Test func `a description without a key, or with one of an unknown suite, is told`() throws {
        let scratch = try Scratch()
        let lines =
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5004 RTP/SAVP 0\r\n"
        for (line, words) in [
            ("", "has no key"), ("a=crypto:1 F8_128_HMAC_SHA1_80 inline:abcd\r\n", "F8_128_HMAC_SHA1_80"),
        ] {
            try (lines + line).write(toFile: scratch.file("x.sdp"), atomically: true, encoding: .utf8)
            let run = try ToolRun.finished("receive", "--sdp", scratch.file("x.sdp"), "--device", "null")
            #expect(run.status == 1 && run.errors.contains(words), "\(run.errors)")
        }
    }

    @Test(.enabled(if: Program.path("ffmpeg") != nil, "needs ffmpeg"))
    func `FFmpeg plays what is sent by the key of the description`() throws {
        let scratch = try Scratch()
        let errors = try FFmpegRun.plays(["--codec", "PCMU", "--srtp", "sdes"], into: scratch.file("heard.wav"))
        #expect(try loudTenths(scratch.file("heard.wav")) >= 4, "\(errors)")
    }

    @Test(.enabled(if: Program.path("ffmpeg") != nil, "needs ffmpeg"))
    func `what FFmpeg sends is received by the key of the description`() throws {
        let scratch = try Scratch()
        let port = try FreePort.pair()
        let key = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"
        let description =
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio \(port) RTP/SAVP 0\r\n"
            + "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\(key)\r\n"
        try description.write(toFile: scratch.file("x.sdp"), atomically: true, encoding: .utf8)
        try Tone.ours.write(to: scratch.file("in.wav"), rate: 8000)
        let receiver = try ToolRun([
            "receive", "--sdp", scratch.file("x.sdp"), "--output", scratch.file("heard.wav"), "--json",
        ])
        FreePort.waitUntilTaken(port)
        let sender = try ToolRun(
            [
                "-loglevel", "error", "-re", "-i", scratch.file("in.wav"), "-t", "1.5", "-c:a", "pcm_mulaw", "-f",
                "rtp",
                "-srtp_out_suite", "AES_CM_128_HMAC_SHA1_80", "-srtp_out_params", key, "srtp://127.0.0.1:\(port)",
            ],
            program: try #require(Program.path("ffmpeg"))
        )
        sender.wait()
        #expect(receiver.wait() == 0, "\(receiver.errors)")
        let refused = try #require((try receiver.json()["srtp"] as? [String: Any])?["refused"] as? [String: Int])
        #expect(refused.values.allSatisfy { $0 == 0 }, "\(refused)")
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 8, "\(sender.errors)")
    }

    // MARK: What they say

    /// For how many tenths of a second a file is loud.
    private func loudTenths(_ path: String) throws -> Int {
        let (format, samples) = try WAVFile.read(path)
        let block = format.sampleRate / 10 * format.channelCount
        return stride(from: 0, to: samples.count - block, by: block).count { start in
            samples[start..<start + block].contains { abs(Int($0)) > 1000 }
        }
    }
}
