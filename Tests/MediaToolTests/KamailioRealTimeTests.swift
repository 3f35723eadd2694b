import Foundation
import Glibc
import MediaEngine
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

    @Test func `phones register, refresh, and take their bindings away`() throws {
        let ways = thorough(Self.ways, quick: [Self.ways[0], Self.ways[3], Self.ways[5]])
        // All at once, each with a registrar of its own: they mostly wait.
        let runs = try ways.map { way in
            let kamailio = try KamailioRun(algorithm: way.algorithm, longestBinding: 2)
            let options = try kamailio.account("alice", by: way.transport) + ["--seconds", "3", "--json"]
            return (way, kamailio, try ToolRun(["sip", "register"] + options))
        }
        for (way, kamailio, run) in runs {
            #expect(run.wait() == 0, "\(way): \(run.errors)")
            let events = try run.jsonLines().compactMap { $0["event"] as? String }
            #expect(events.first == "registering" && events.last == "unregistered", "\(way): \(events)")
            #expect(events.count { $0 == "registered" } >= 2, "\(way): \(events)")
            let isSaved = kamailio.prints("saved alice 3600") && kamailio.prints("saved alice 0")
            #expect(isSaved, "\(way): \(kamailio.errors)")
        }
    }

    @Test func `a wrong password is told`() throws {
        let kamailio = try KamailioRun()
        var account = try kamailio.account("alice", by: "udp")
        account += ["--user", "bob"]
        let run = try ToolRun(["sip", "register", "--once", "--json"] + account)
        #expect(run.wait() == 1)
        #expect(run.errors.contains("another password (401)"), "\(run.errors)")
    }

    @Test(arguments: thorough(["udp", "tcp", "tls"], quick: ["tls"]))
    func `a call goes through it both ways: tone and keys, and either side hangs up`(transport: String) throws {
        let scratch = try Scratch()
        let kamailio = try KamailioRun()
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16000)
        let calls = [("us", "alice", "bob"), ("them", "carol", "dave")]
        // Both at once.
        let answering = try calls.map { side, _, called in
            let seconds = side == "them" ? ["--seconds", "3"] : []
            let account = try kamailio.account(called, by: transport)
            return try ToolRun(["sip", "answer", "--echo", "--calls", "1", "--json"] + account + seconds)
        }
        for run in answering { try #require(run.printed(#""event":"registered""#), "\(run.errors) \(kamailio.output)") }
        let calling = try calls.map { side, caller, called in
            let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("\(caller).wav")]
            let talk = side == "us" ? ["--seconds", "2"] : []
            let account = try kamailio.account(caller, by: transport)
            let command = ["sip", "call", "sip:\(called)@example.test", "--dtmf", "159#", "--json"]
            return try ToolRun(command + account + files + talk)
        }
        for (index, (side, caller, _)) in calls.enumerated() {
            #expect(calling[index].wait() == 0, "\(calling[index].errors)")
            #expect(answering[index].wait() == 0, "\(answering[index].errors)")
            #expect(try calling[index].json()["endedBy"] as? String == side)
            let report = try #require(try answering[index].jsonLines().last)
            #expect(report["status"] as? String == "ok" && report["dtmf"] as? String == "159#", "\(report)")
            // What comes back was heard there.
            #expect(try Tone.ours.tenths(of: scratch.file("\(caller).wav")).count { $0 } >= 5)
        }
        for method in ["ACK", "BYE"] {
            #expect(kamailio.output.matches(of: /in a call: (\w+)/).count { $0.output.1 == method } >= 2)
        }
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

    @Test func `a call goes to the second server of the domain where the first is silent, or has no room`() throws {
        let kamailio = try KamailioRun()
        let silent = try UDPSocket(bind: .loopback(port: 0))
        let ways = [
            (caller: "alice", called: "bob", first: silent.localAddress.port),
            (caller: "carol", called: "dave", first: kamailio.fullPort),
        ]
        // Both at once.
        let answering = try ways.map { way in
            let account = try kamailio.account(way.called, by: "udp")
            return try ToolRun(["sip", "answer", "--echo", "--calls", "1", "--json"] + account)
        }
        for run in answering { try #require(run.printed(#""event":"registered""#), "\(run.errors) \(kamailio.output)") }
        let calling = try ways.map { way in
            let account = try kamailio.account(way.caller, by: "udp", behind: way.first)
            // Who says nothing for 64 times the base of the timers is given up (RFC 3261, section 17.1.1.2).
            let options = ["--no-register", "--t1", "20", "--seconds", "0.5", "--json", "--events"]
            return try ToolRun(["sip", "call", "sip:\(way.called)@example.test"] + account + options)
        }
        for (index, run) in calling.enumerated() {
            #expect(run.wait() == 0, "\(run.errors)")
            #expect(answering[index].wait() == 0, "\(answering[index].errors)")
            let lines = try run.jsonLines()
            #expect(lines.last?["status"] as? String == "ok" && lines.last?["code"] as? Int == 200, "\(lines)")
            let targets = try #require(lines.first?["targets"] as? [String])
            #expect(targets.map { $0.hasSuffix(":\(ways[index].first)") } == [true, false], "\(targets)")
        }
        var buffer = [UInt8](repeating: 0, count: 2000)
        var span = buffer.mutableSpan
        #expect(silent.receive(into: &span, at: .zero) != nil)
        // One that was not answered within 20 ms comes again; another one, with credentials, does not.
        let refused = Set(kamailio.output.matches(of: /no room: INVITE [0-9]+/).map { String($0.output) })
        #expect(refused.count == 1, "\(kamailio.output)")
    }
}
