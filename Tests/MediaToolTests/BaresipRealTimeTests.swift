import Foundation
import Glibc
import MediaEngine
import TestSupport
import Testing

/// Calls between the tool and baresip on 127.0.0.1: tones and keys both ways, hold, busy, transfer.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: BaresipRun.program != nil, "needs baresip (Debian: baresip-core)")
)
struct BaresipRealTimeTests {
    // MARK: baresip is called

    @Test(arguments: thorough(["opus", "PCMU"], quick: ["opus"]))
    func `baresip answers: both hear the other's tone, and baresip our keys`(codec: String) throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(codec: codec)
        let run = try call(baresip, scratch, ["--dtmf", "159#", "--seconds", "2.5"])
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try events(run) == ["calling", "connected", "ended"])
        let connected = try #require(try run.jsonLines().first { $0["event"] as? String == "connected" })
        #expect(connected["codec"] as? String == codec)
        let report = try expectEnd(run, by: "us")
        #expect(try receivedPackets(report) > 50)
        #expect(baresip.prints("terminated (duration"), "\(baresip.errors)")
        #expect(baresip.keys == "159#", "\(baresip.output)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        // Keys by RTP take the place of the tone.
        #expect(try Tone.ours.tenths(of: baresip.endedRecording()).count { $0 } >= 5)
    }

    @Test func `baresip is held and resumed: its tone stops, and comes back`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let run = try call(baresip, scratch, ["--hold-after", "0.8", "--resume-after", "1.8", "--seconds", "3"])
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try events(run) == ["calling", "connected", "held", "resumed", "ended"])
        #expect(try run.jsonLines().compactMap { $0["by"] as? String } == ["us", "us"])
        try expectEnd(run, by: "us")
        let heard = try Tone.baresip.tenths(of: scratch.file("heard.wav"))
        // Of 0.8 s before, 1 s while it was held, and 1.2 s after.
        #expect(heard.prefix(10).count { $0 } >= 3, "\(heard)")
        #expect(heard.count { !$0 } >= 5, "\(heard)")
        #expect(heard.suffix(10).count { $0 } >= 3, "\(heard)")
    }

    @Test func `by TLS baresip answers, holds and resumes: both hear the other's tone, and baresip our keys`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let secured = ["--tls-ca", TestCertificates.authority, "--dtmf", "15"]
        let run = try call(baresip, at: baresip.secureURI, scratch, secured)
        try #require(run.printed(#""event":"connected""#), "\(run.errors)\(baresip.output)")
        #expect(baresip.records(.milliseconds(1500), ofCall: 1), "\(baresip.output)")
        try expectHoldAndEnd(of: run, by: baresip)
        #expect(try events(run) == ["calling", "connected", "held", "resumed", "ended"])
        #expect(try run.jsonLines().compactMap { $0["by"] as? String } == ["them", "them"])
        let targets = try run.jsonLines().first?["targets"] as? [String]
        #expect(targets?.map { $0.hasPrefix("tls ") } == [true], "\(run.output)")
        try expectEnd(run, by: "them")
        #expect(baresip.keys == "15", "\(baresip.output)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 8)
        #expect(try Tone.ours.tenths(of: baresip.endedRecording()).count { $0 } >= 5)
    }

    @Test func `baresip takes one call: the second is told that it is busy`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let first = try call(baresip, scratch)
        try #require(first.printed(#""event":"connected""#), "\(first.errors)")
        let second = try ToolRun.finished("sip", "call", baresip.uri, "--seconds", "1", "--json")
        #expect(second.status == 1)
        #expect(try second.json()["status"] as? String == "busy")
        #expect(try second.json()["code"] as? Int == 486)
        #expect(second.errors.contains("486"), "\(second.errors)")
        first.interrupt()
        #expect(first.wait() == 0, "\(first.errors)")
        try expectEnd(first, by: "us")
    }

    @Test func `a call that rings at baresip is taken back`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(answersByItself: false)
        let run = try call(baresip, scratch)
        try #require(run.printed(#""code":180"#), "\(run.errors)")
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "cancelled" && report["code"] as? Int == 487, "\(report)")
        #expect(baresip.prints("Incoming call from"), "\(baresip.errors)")
        #expect(baresip.prints("session closed"), "\(baresip.output)")
    }

    @Test func `a call that rings at baresip is declined there`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun(answersByItself: false)
        let run = try call(baresip, scratch)
        try #require(run.printed(#""code":180"#), "\(run.errors)")
        try baresip.command("hangup")
        #expect(run.wait() == 1)
        let report = try #require(try run.jsonLines().last)
        // It says of itself that it is busy.
        #expect(report["status"] as? String == "busy" && report["code"] as? Int == 486, "\(report)")
        #expect(report["endedBy"] as? String == "them")
    }

    @Test func `baresip goes where it is transferred to, and we leave`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let target = try answer()
        let uri = "sip:carol@\(try target.address())"
        // It names its recordings by the second.
        let run = try call(baresip, scratch, ["--transfer-to", uri, "--transfer-after", "1.1"])
        #expect(run.wait() == 0, "\(run.errors)")
        let transfers = try run.jsonLines().filter { $0["event"] as? String == "transfer" }
        #expect(transfers.last?["state"] as? String == "done", "\(transfers)")
        #expect(transfers.last?["code"] as? Int == 200, "\(transfers)")
        #expect(target.printed(#""event":"connected""#), "\(target.errors)")
        #expect(baresip.records(.seconds(1), ofCall: 2), "\(baresip.output)")
        try baresip.command("hangup")
        #expect(target.wait() == 0, "\(target.errors)")
        #expect(try receivedPackets(expectEnd(target, by: "them")) > 20)
        // What came back from there is what baresip sent.
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording(ofCall: 2)).count { $0 } >= 3)
    }

    @Test func `baresip sends us to somebody, and we go on with them`() throws {
        let scratch = try Scratch()
        let baresip = try BaresipRun()
        let target = try answer()
        let run = try call(baresip, scratch, ["--follow-transfers", "--seconds", "3"])
        try #require(run.printed(#""event":"connected""#), "\(run.errors)")
        try baresip.command("transfer", "sip:carol@\(try target.address())")
        try #require(target.printed(#""event":"connected""#), "\(run.output)\(baresip.output)")
        // It ends its call then, and says nothing of it.
        #expect(run.printed(#""state":"done""#), "\(run.output)")
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(target.wait() == 0, "\(target.errors)")
        #expect(try receivedPackets(expectEnd(target, by: "them")) > 0)
    }

    // MARK: baresip calls

    @Test(arguments: thorough(["udp", "tcp", "tls"], quick: ["tcp", "tls"]))
    func `baresip calls: it hears itself, its keys arrive, it holds, resumes, and hangs up`(transport: String) throws {
        let baresip = try BaresipRun()
        let run = try answer(by: transport)
        try baresip.command("dial", "sip:alice@\(try run.address(by: transport));transport=\(transport)")
        try #require(run.printed(#""event":"connected""#), "\(run.errors)")
        #expect(baresip.records(.seconds(1), ofCall: 1), "\(baresip.output)")
        for (index, key) in "159#".enumerated() {
            try baresip.command("sndcode", String(key))
            let keys = try run.wait { try events(run).count { $0 == "digit" } > index }
            try #require(keys, "\(run.output)")
        }
        try expectHoldAndEnd(of: run, by: baresip)
        let told = try events(run).filter { $0 != "digit" }
        #expect(told == ["listening", "incoming", "connected", "held", "resumed", "ended"])
        let report = try expectEnd(run, by: "them")
        #expect(report["dtmf"] as? String == "159#")
        #expect(try receivedPackets(report) > 20)
        #expect(try Tone.baresip.tenths(of: baresip.endedRecording()).count { $0 } >= 3)
    }

    // MARK: Runs, and what they say

    /// baresip holds, resumes, and hangs up.
    private func expectHoldAndEnd(of run: ToolRun, by baresip: BaresipRun) throws {
        try baresip.command("hold")
        #expect(run.printed(#""event":"held""#), "\(run.output)\(baresip.output)")
        try baresip.command("resume")
        #expect(run.printed(#""event":"resumed""#), "\(run.output)\(baresip.output)")
        try baresip.command("hangup")
        #expect(run.wait() == 0, "\(run.errors)")
    }

    /// Calls `baresip` with our tone, and writes down what is heard.
    private func call(
        _ baresip: BaresipRun,
        at uri: String? = nil,
        _ scratch: Scratch,
        _ options: [String] = []
    ) throws -> ToolRun {
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav")]
        return try ToolRun(["sip", "call", uri ?? baresip.uri, "--json", "--events"] + files + options)
    }

    /// Gives back what it hears, for one call.
    private func answer(by transport: String = "udp") throws -> ToolRun {
        let identity = TestCertificates.of("loopback")
        let secured = transport == "tls" ? ["--tls-cert", identity.path, "--tls-key", identity.keyPath] : []
        return try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"] + secured)
    }

    /// All but how it rang, which baresip tells or not.
    private func events(_ run: ToolRun) throws -> [String] {
        try run.jsonLines().compactMap { $0["event"] as? String }.filter { $0 != "progress" }
    }

    /// Checks that the call was well, and gives its report.
    @discardableResult
    private func expectEnd(_ run: ToolRun, by side: String) throws -> [String: Any] {
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "ok" && report["code"] as? Int == 200, "\(report)")
        #expect(report["endedBy"] as? String == side)
        return report
    }

    private func receivedPackets(_ report: [String: Any]) throws -> Int {
        let leg = try #require((report["legs"] as? [[String: Any]])?.first)
        return try #require((leg["received"] as? [String: Any])?["packets"] as? Int)
    }
}
