import Foundation
import TestSupport
import Testing

/// Calls between the tool and SIPp on 127.0.0.1: its scenarios, in the folder SIPp, judge what the tool sends.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: SIPpRun.program != nil, "needs sipp (Debian: sip-tester)")
)
struct SIPpRealTimeTests {
    // MARK: SIPp calls

    @Test func `a question of SIPp is answered with what the tool takes`() throws {
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--json"])
        let sipp = try SIPpRun("uac-options", calling: try answering.address())
        #expect(sipp.wait() == 0, "\(sipp.errors)")
        answering.interrupt()
        #expect(answering.wait() == 0, "\(answering.errors)")
        #expect(try events(answering) == ["listening"])
    }

    @Test(arguments: ["udp", "tcp"])
    func `a call of SIPp is answered with keys, and ended by it`(transport: String) throws {
        let run = try answer("uac-call", transport: transport)
        #expect(try events(run) == ["listening", "incoming", "connected", "ended"])
        let report = try expectEnd(run, by: "them")
        #expect(try #require(report["talkSeconds"] as? Double) > 0)
        let connected = try #require(try run.jsonLines().first { $0["event"] as? String == "connected" })
        #expect(connected["codec"] as? String == "PCMU" && connected["direction"] as? String == "sendrecv")
    }

    @Test func `SIPp holds and resumes: recvonly, then sendrecv`() throws {
        let run = try answer("uac-hold")
        #expect(try events(run) == ["listening", "incoming", "connected", "held", "resumed", "ended"])
        #expect(try sides(run) == ["them", "them"])
        try expectEnd(run, by: "them")
    }

    @Test func `SIPp takes its call back: 200 to CANCEL, 487 to INVITE`() throws {
        let run = try answer("uac-cancel", ["--policy", "ring"])
        #expect(try events(run) == ["listening", "incoming", "ended"])
        #expect(try run.jsonLines().last?["status"] as? String == "cancelled")
        #expect(try run.jsonLines().last?["endedBy"] as? String == "them")
    }

    @Test func `SIPp has our ringing acknowledged: 180 with RSeq, PRACK, 200`() throws {
        let run = try answer("uac-prack", ["--100rel", "--after", "0.5"])
        #expect(try events(run) == ["listening", "incoming", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test func `UPDATE of SIPp is answered 200, without and with a description`() throws {
        let run = try answer("uac-update")
        #expect(try events(run) == ["listening", "incoming", "connected", "held", "resumed", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test(arguments: ["uac", "uas"])
    func `SIPp asks for a session timer, and says who refreshes`(refresher: String) throws {
        let run = try answer("uac-session-timer", sipp: ["-key", "refresher", refresher])
        try expectEnd(run, by: "them")
    }

    @Test func `a session timer of SIPp that is too short gets 422, and the next one the call`() throws {
        let run = try answer("uac-short-session")
        #expect(try events(run) == ["listening", "incoming", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test func `SIPp refreshes by UPDATE and re-INVITE, which change nothing; a session too short gets 422`() throws {
        let run = try answer("uac-refresh")
        #expect(try events(run) == ["listening", "incoming", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test func `our hold and a change of the calling SIPp meet: both get 491, and ours goes out again`() throws {
        let scratch = try Scratch()
        let phone = try PhoneRun(scratch)
        let local = try #require(try phone.run.jsonLines().first?["local"] as? String)
        let address = try #require(local.split(separator: " ").last.map(String.init))
        let sipp = try SIPpRun("uac-glare", calling: address)
        #expect(phone.prints(#""event":"incoming""#), "\(phone.run.errors)")
        try phone.say(#"{"action":"answer","id":1}"#)
        #expect(phone.prints(#""event":"performed","id":1,"result":"fulfilled""#), "\(phone.run.output)")
        try phone.say(#"{"action":"setHeld","held":true,"id":2}"#)
        #expect(sipp.wait() == 0, "\(sipp.errors)")
        #expect(phone.prints(#""event":"performed","id":2,"result":"fulfilled""#), "\(phone.run.output)")
        #expect(phone.prints(#""event":"report""#), "\(phone.run.output)")
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        #expect(phone.count(#""held":true"#) == 1 && phone.count(#""held":false"#) == 0, "\(phone.run.output)")
    }

    @Test func `the answer comes again until SIPp acknowledges it`() throws {
        let run = try answer("uac-lost-ack", sipp: ["-nr"])
        #expect(try events(run) == ["listening", "incoming", "connected", "ended"])
        let report = try expectEnd(run, by: "them")
        #expect(try retransmissions(report) >= 1)
    }

    @Test func `SIPp leaves the offer to us, at first and in a change`() throws {
        let run = try answer("uac-no-offer")
        #expect(try events(run) == ["listening", "incoming", "connected", "held", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test(arguments: ["uac-unknown", "uac-rfc2543"])
    func `callers that are odd or old are answered`(scenario: String) throws {
        let run = try answer(scenario)
        #expect(try events(run) == ["listening", "incoming", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    // MARK: SIPp is called

    @Test func `SIPp is asked what it takes`() throws {
        let sipp = try SIPpRun("uas-options")
        let run = try ToolRun.finished("sip", "options", sipp.uri(), "--json")
        #expect(run.status == 0, "\(run.errors)")
        #expect(sipp.wait() == 0, "\(sipp.errors)")
        let report = try run.json()
        #expect(report["code"] as? Int == 200)
        #expect(report["allow"] as? [String] == ["INVITE", "ACK", "BYE", "CANCEL", "OPTIONS"])
        #expect(report["supported"] as? [String] == ["timer"])
    }

    @Test(arguments: ["udp", "tcp"])
    func `SIPp answers a call, and we end it`(transport: String) throws {
        let run = try call("uas-call", ["--seconds", "0.4"], transport: transport)
        #expect(try events(run) == ["calling", "progress", "connected", "ended"])
        let report = try expectEnd(run, by: "us")
        #expect(try #require(report["ringingMs"] as? Double) > 100)
    }

    @Test func `SIPp answers a call, and ends it`() throws {
        let run = try call("uas-bye")
        #expect(try events(run) == ["calling", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test func `SIPp is held and resumed`() throws {
        let run = try call("uas-hold", ["--hold-after", "0.1", "--resume-after", "0.3"])
        #expect(try events(run) == ["calling", "connected", "held", "resumed", "ended"])
        #expect(try sides(run) == ["us", "us"])
        try expectEnd(run, by: "them")
    }

    @Test func `what follows the answer goes through the proxies that it names`() throws {
        let run = try call("uas-record-route", ["--hold-after", "0", "--seconds", "0.5"])
        #expect(try events(run) == ["calling", "connected", "held", "ended"])
        try expectEnd(run, by: "us")
    }

    @Test func `we leave the offer to SIPp`() throws {
        let run = try call("uas-no-offer", ["--delayed-offer", "--seconds", "0.2"])
        #expect(try events(run) == ["calling", "connected", "ended"])
        let connected = try #require(try run.jsonLines().first { $0["event"] as? String == "connected" })
        #expect(connected["codec"] as? String == "PCMU")
        try expectEnd(run, by: "us")
    }

    @Test func `a call to SIPp is taken back: CANCEL, and ACK to its 487`() throws {
        let run = try call("uas-cancel", ["--cancel-after", "0.3"])
        #expect(try events(run) == ["calling", "progress", "ended"])
        #expect(try run.jsonLines().last?["status"] as? String == "cancelled")
        #expect(try run.jsonLines().last?["code"] as? Int == 487)
    }

    @Test func `INVITE goes out again until SIPp says something`() throws {
        let run = try call("uas-late-answer", ["--seconds", "0.2"], sipp: ["-nr"])
        #expect(try events(run) == ["calling", "progress", "connected", "ended"])
        let report = try expectEnd(run, by: "us")
        #expect(try retransmissions(report) >= 1)
        #expect(try #require(report["setupMs"] as? Double) >= 850)
    }

    @Test(arguments: [("uas-unavailable", 503, ["calling"]), ("uas-unknown", 499, ["calling", "progress"])])
    func `a refusal of SIPp is told with its status`(scenario: String, code: Int, before: [String]) throws {
        let run = try call(scenario)
        #expect(run.status == 1)
        #expect(try events(run).starts(with: before))
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "rejected" && report["code"] as? Int == code)
        #expect(report["endedBy"] as? String == "them")
        #expect(run.errors.contains("\(code)"), "\(run.errors)")
    }

    @Test func `we acknowledge the ringing of SIPp by PRACK, and hear what it described`() throws {
        let run = try call("uas-prack", ["--100rel", "--seconds", "0.2"])
        #expect(try events(run) == ["calling", "progress", "earlyMedia", "connected", "ended"])
        try expectEnd(run, by: "us")
    }

    @Test func `UPDATE of the called SIPp is answered 200, without and with a description`() throws {
        let run = try call("uas-update")
        #expect(try events(run) == ["calling", "connected", "held", "resumed", "ended"])
        #expect(try sides(run) == ["them", "them"])
        try expectEnd(run, by: "them")
    }

    @Test func `SIPp wants longer sessions: after its 422 we call once more, with its Min-SE`() throws {
        let run = try call("uas-long-session", ["--session-expires", "90", "--seconds", "0.2"])
        #expect(try events(run) == ["calling", "connected", "ended"])
        try expectEnd(run, by: "us")
    }

    @Test func `the called SIPp refreshes the session that we asked for`() throws {
        let run = try call("uas-refresh", ["--session-expires", "90"])
        #expect(try events(run) == ["calling", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test func `of two answers to one INVITE the first has the call, the second gets ACK and BYE`() throws {
        let run = try call("uas-forked")
        #expect(try events(run) == ["calling", "connected", "ended"])
        try expectEnd(run, by: "them")
    }

    @Test(arguments: thorough(["uas-pending", "uas-glare"], quick: ["uas-glare"]))
    func `a hold that SIPp refuses by 491 goes out again`(scenario: String) throws {
        let run = try call(scenario, ["--hold-after", "0"])
        #expect(try events(run) == ["calling", "connected", "held", "ended"])
        #expect(try sides(run) == ["us"])
        try expectEnd(run, by: "them")
    }

    @Test(arguments: ["uas-unknown-answer", "uas-rfc2543"])
    func `answers that are odd or old are taken`(scenario: String) throws {
        let run = try call(scenario, ["--seconds", "0.2"])
        #expect(try events(run) == ["calling", "progress", "connected", "ended"])
        try expectEnd(run, by: "us")
    }

    // MARK: Runs, and what they say

    /// SIPp calls `sip answer`; gives the latter when it has ended.
    private func answer(
        _ scenario: String,
        _ options: [String] = [],
        transport: String = "udp",
        sipp arguments: [String] = []
    ) throws -> ToolRun {
        let command = ["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--json"]
        let run = try ToolRun(command + options)
        let sipp = try SIPpRun(scenario, calling: try run.address(), transport: transport, arguments)
        #expect(sipp.wait() == 0, "\(sipp.errors)")
        // Nobody calls any more.
        if sipp.hasFailed { run.interrupt() }
        #expect(run.wait() == 0, "\(run.errors)")
        return run
    }

    /// `sip call` calls SIPp; gives the former when both have ended.
    private func call(
        _ scenario: String,
        _ options: [String] = [],
        transport: String = "udp",
        sipp arguments: [String] = []
    ) throws -> ToolRun {
        let sipp = try SIPpRun(scenario, transport: transport, arguments)
        let run = try ToolRun(["sip", "call", sipp.uri(transport: transport), "--json", "--events"] + options)
        #expect(sipp.wait() == 0, "\(sipp.errors)")
        if sipp.hasFailed { run.interrupt() }
        run.wait()
        return run
    }

    private func events(_ run: ToolRun) throws -> [String] { try run.jsonLines().compactMap { $0["event"] as? String } }

    /// Who held and resumed.
    private func sides(_ run: ToolRun) throws -> [String] { try run.jsonLines().compactMap { $0["by"] as? String } }

    /// Checks that the call was well, and gives its report.
    @discardableResult
    private func expectEnd(_ run: ToolRun, by side: String) throws -> [String: Any] {
        #expect(run.status == 0, "\(run.errors)")
        let report = try #require(try run.jsonLines().last)
        #expect(report["status"] as? String == "ok" && report["code"] as? Int == 200, "\(report)")
        #expect(report["endedBy"] as? String == side)
        return report
    }

    private func retransmissions(_ report: [String: Any]) throws -> Int {
        try #require((report["sip"] as? [String: Any])?["retransmissions"] as? Int)
    }
}

/// A run of SIPp through one scenario, for one call.
private final class SIPpRun {
    static let program = Program.path("sipp")
    private static let scenarios = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "SIPp")

    private let run: ProgramRun
    private let folder: Scratch
    private let port: UInt16

    /// Starts it: to call `address`, or to be called; then it listens.
    init(_ scenario: String, calling address: String? = nil, transport: String = "udp", _ more: [String] = []) throws {
        folder = try Scratch()
        port = try FreePort.pair()
        let mediaPort = try FreePort.pair()
        run = try ProgramRun(
            try #require(Self.program),
            (address.map { [$0, "-s", "bob"] } ?? []) + [
                "-sf", Self.scenarios.appending(path: scenario + ".xml").path, "-t", transport == "tcp" ? "t1" : "u1",
                "-i", "127.0.0.1", "-p", "\(port)", "-mi", "127.0.0.1", "-mp", "\(mediaPort)", "-ci", "127.0.0.1",
                "-m", "1", "-nostdin", "-timeout", "20s", "-timeout_error",
                "-trace_err", "-error_file", folder.file("errors"),
                "-trace_msg", "-message_file", folder.file("messages"),
            ] + more,
            directory: URL(fileURLWithPath: folder.path)
        )
        // The last ports that it takes are those of media.
        if address == nil { FreePort.waitUntilTaken(mediaPort) }
    }

    /// Whom to call.
    func uri(transport: String = "udp") -> String { "sip:bob@127.0.0.1:\(port);transport=\(transport)" }

    /// Waits for its end: 0 when its call went as the scenario says.
    func wait() -> Int32 { run.wait() }

    /// Whether its call went otherwise; only after its end.
    var hasFailed: Bool { run.wasSignalled || run.status != 0 }

    /// What did not go as the scenario says, and the messages.
    var errors: String {
        let messages = try? String(contentsOfFile: folder.file("messages"), encoding: .utf8)
        return run.errors + "\n" + (messages ?? "No message was sent or received.")
    }
}
