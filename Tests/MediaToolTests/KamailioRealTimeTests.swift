import Foundation
import Glibc
import TestSupport
import Testing

/// Phones of the tool behind Kamailio on 127.0.0.1: registrations, and calls through it with Record-Route.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: KamailioRun.isThere, "needs Kamailio with TLS (Debian: kamailio, kamailio-tls-modules)")
)
struct KamailioRealTimeTests {
    private static let ways = ["udp", "tcp", "tls"].flatMap { transport in
        ["MD5", "SHA-256"].map { (algorithm: $0, transport: transport) }
    }

    @Test(arguments: thorough(ways, quick: [ways[0], ways[3], ways[5]]))
    func `a phone registers, refreshes, and takes its binding away`(algorithm: String, transport: String) throws {
        let kamailio = try KamailioRun(algorithm: algorithm, longestBinding: 2)
        let options = ["--seconds", "3", "--json"]
        let run = try ToolRun(["sip", "register"] + kamailio.account("alice", by: transport) + options)
        #expect(run.wait() == 0, "\(run.errors)")
        let events = try run.jsonLines().compactMap { $0["event"] as? String }
        #expect(events.first == "registering" && events.last == "unregistered", "\(events)")
        #expect(events.count { $0 == "registered" } >= 2, "\(events)")
        #expect(kamailio.prints("saved alice 3600") && kamailio.prints("saved alice 0"), "\(kamailio.errors)")
    }

    @Test func `a wrong password is told`() throws {
        let kamailio = try KamailioRun()
        var account = try kamailio.account("alice", by: "udp")
        account += ["--user", "bob"]
        let run = try ToolRun(["sip", "register", "--once", "--json"] + account)
        #expect(run.wait() == 1)
        #expect(run.errors.contains("another password (401)"), "\(run.errors)")
    }

    @Test(arguments: thorough(["udp", "tcp", "tls"], quick: ["udp", "tls"]))
    func `a call goes through it both ways: tone and keys, and either side hangs up`(transport: String) throws {
        let scratch = try Scratch()
        let kamailio = try KamailioRun()
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        for side in ["us", "them"] {
            var called = ["--echo", "--calls", "1", "--json"]
            if side == "them" { called += ["--seconds", "3"] }
            let answering = try ToolRun(["sip", "answer"] + kamailio.account("bob", by: transport) + called)
            try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
            let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav"), "--dtmf", "159#"]
            let talk = side == "us" ? ["--seconds", "2"] : []
            let account = try kamailio.account("alice", by: transport)
            let call = try ToolRun(["sip", "call", "sip:bob@example.test", "--json"] + account + files + talk)
            #expect(call.wait() == 0, "\(call.errors)")
            #expect(answering.wait() == 0, "\(answering.errors)")
            #expect(try call.json()["endedBy"] as? String == side)
            let report = try #require(try answering.jsonLines().last)
            #expect(report["status"] as? String == "ok" && report["dtmf"] as? String == "159#", "\(report)")
            // What comes back was heard there.
            #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 5)
        }
        #expect(kamailio.output.contains("in a call: ACK") && kamailio.output.contains("in a call: BYE"))
    }

    @Test func `a call that rings there is taken back, and one to nobody is told`() throws {
        let kamailio = try KamailioRun()
        let ringing = ["--policy", "ring", "--calls", "1", "--json"]
        let answering = try ToolRun(["sip", "answer"] + kamailio.account("bob", by: "udp") + ringing)
        try #require(answering.printed(#""event":"registered""#), "\(answering.errors)")
        let account = try kamailio.account("alice", by: "udp")
        let call = try ToolRun(["sip", "call", "sip:bob@example.test", "--json", "--events"] + account)
        try #require(call.printed(#""code":180"#), "\(call.errors)")
        call.interrupt()
        #expect(call.wait() == 0, "\(call.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        #expect(try answering.jsonLines().last?["status"] as? String == "cancelled")
        let nobody = try ToolRun(["sip", "call", "sip:carol@example.test", "--json"] + account)
        #expect(nobody.wait() == 1)
        #expect(try nobody.json()["code"] as? Int == 404)
    }

    @Test func `where the first server of the domain is dead, the second one is asked`() throws {
        let kamailio = try KamailioRun()
        let dead = try FreePort.pair()
        let account = try kamailio.account("alice", by: "tcp", behind: dead)
        let run = try ToolRun(["sip", "register", "--once", "--json"] + account)
        #expect(run.wait() == 0, "\(run.errors)")
        #expect(try run.jsonLines().last?["event"] as? String == "registered")
    }
}
