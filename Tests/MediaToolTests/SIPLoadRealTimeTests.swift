import Foundation
import TestSupport
import Testing

/// Loads, and files of what was sent and received, on 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPLoadRealTimeTests {
    private func setups(_ report: [String: Any]) throws -> [Double] {
        let times = try #require(report["setupMs"] as? [String: Double])
        return try ["p50", "p95", "p99", "max"].map { try #require(times[$0]) }
    }

    @Test func `a load in virtual time is the same for the same seed`() throws {
        let arguments = [
            "sip", "load", "--virtual", "--calls", "40", "--rate", "200", "--talk", "0.5", "--json", "--seed",
        ]
        let runs = try [ToolRun(arguments + ["7"]), ToolRun(arguments + ["7"])]
        for run in runs { #expect(run.wait() == 0, "\(run.errors)") }
        #expect(runs[0].output == runs[1].output)
        let report = try runs[0].json()
        #expect(report["attempted"] as? Int == 40 && report["connected"] as? Int == 40)
        // A message is under way for 10 ms: the INVITE, and the 200; the agents are looked at each millisecond.
        let times = try setups(report)
        #expect(times.allSatisfy { (20...22).contains($0) }, "\(times)")
    }

    @Test func `calls are made at a rate, and each is ended`() throws {
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "20", "--json"])
        let load = try ToolRun.finished(
            "sip",
            "load",
            "--to",
            "sip:\(try answering.address())",
            "--calls",
            "20",
            "--rate",
            "50",
            "--json"
        )
        #expect(load.status == 0, "\(load.errors)")
        let report = try load.json()
        #expect(report["connected"] as? Int == 20)
        let times = try setups(report)
        #expect(times == times.sorted() && times[0] > 0)
        #expect(try #require(report["cpuSeconds"] as? Double) > 0)
        #expect(answering.wait() == 0, "\(answering.errors)")
    }

    @Test func `whoever ends a load ends its calls`() throws {
        let answering = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "3", "--json"])
        let load = try ToolRun(
            [
                "sip", "load", "--to", "sip:\(try answering.address())", "--calls", "3", "--rate", "100", "--talk",
                "600", "--json",
            ]
        )
        ProgramRun.wait { answering.output.matches(of: /"event":"connected"/).count == 3 }
        load.interrupt()
        // Whether the last answer had come is not told here.
        _ = load.wait()
        #expect(answering.wait() == 0, "\(answering.errors)")
    }

    @Test func `what is refused is counted, and the load has failed`() throws {
        let answering = try ToolRun(
            ["sip", "answer", "--local", "127.0.0.1:0", "--policy", "busy", "--calls", "3", "--json"]
        )
        let load = try ToolRun.finished(
            "sip",
            "load",
            "--to",
            "sip:\(try answering.address())",
            "--calls",
            "3",
            "--rate",
            "50",
            "--json"
        )
        #expect(load.status == 1)
        let report = try load.json()
        #expect(report["rejected"] as? Int == 3 && report["connected"] as? Int == 0)
        #expect(load.errors.contains("3 of 3 attempts failed"))
    }

    @Test func `accounts are registered, and leave no bindings`() throws {
        let server = try ToolRun(["sip", "server", "--domain", "example.test", "--local", "127.0.0.1:0", "--json"])
        let proxy = "sip:\(try server.address());lr"
        let load = try ToolRun.finished(
            "sip",
            "load",
            "--register",
            "--account",
            "sip:alice@example.test",
            "--proxy",
            proxy,
            "--users",
            "20",
            "--rate",
            "100",
            "--json"
        )
        #expect(load.status == 0, "\(load.errors)")
        #expect(try load.json()["connected"] as? Int == 20)
        server.interrupt()
        #expect(server.wait() == 0)
        let last = try #require(try server.jsonLines().last)
        #expect(last["bindings"] as? Int == 0 && last["requests"] as? Int == 40)
    }

    @Test func `a trace has every message, and no proof of a password`() throws {
        let scratch = try Scratch()
        let users = scratch.file("users.json")
        try Data(#"{"alice": {"password": "wonderland"}}"#.utf8).write(to: URL(fileURLWithPath: users))
        let server = try ToolRun(
            ["sip", "server", "--domain", "example.test", "--users", users, "--local", "127.0.0.1:0", "--json"]
        )
        let proxy = "sip:\(try server.address());lr;transport=tcp"
        let secret = scratch.file("secret")
        try Data("wonderland\n".utf8).write(to: URL(fileURLWithPath: secret))
        chmod(secret, 0o600)
        func register(_ file: String, _ more: [String] = []) throws -> ToolRun {
            let run = try ToolRun(
                [
                    "sip", "register", "--account", "sip:alice@example.test", "--proxy", proxy, "--once",
                    "--password-file", secret, "--sip-trace", file,
                ] + more
            )
            run.wait()
            return run
        }
        let plain = scratch.file("trace.txt")
        #expect(try register(plain).status == 0)
        let text = try String(contentsOfFile: plain, encoding: .utf8)
        #expect(text.components(separatedBy: "REGISTER sip:").count == 3)
        #expect(text.contains("sent tcp 127.0.0.1:") && text.contains("received tcp 127.0.0.1:"))
        #expect(text.contains("SIP/2.0 401 ") && text.contains("SIP/2.0 200 "))
        #expect(text.contains(/Authorization: Digest .*response="x+"/))
        let capture = scratch.file("trace.pcap")
        #expect(try register(capture).status == 0)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: capture))
        #expect(bytes.prefix(4) == Data([0xD4, 0xC3, 0xB2, 0xA1]))
        #expect(bytes.range(of: Data(#"response="xxxx"#.utf8)) != nil)
        let open = scratch.file("open.txt")
        try Data().write(to: URL(fileURLWithPath: open))
        chmod(open, 0o644)
        let refused = try register(open, ["--unredacted"])
        #expect(refused.status == 1 && refused.errors.contains("chmod 600"), "\(refused.errors)")
        let whole = scratch.file("whole.txt")
        #expect(try register(whole, ["--unredacted"]).status == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: whole)
        #expect((attributes[.posixPermissions] as? Int) == 0o600)
        let proof = try String(contentsOfFile: whole, encoding: .utf8)
        #expect(!proof.contains(#"response="xxxx"#) && proof.contains("response="))
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test func `with JSON a failure is an object, too`() throws {
        let options = try ToolRun.finished("sip", "options", "sip:127.0.0.1:1;transport=tcp", "--json")
        #expect(options.status == 1)
        let error = try #require(try options.json()["error"] as? [String: Any])
        #expect(error["status"] as? String == "unreachable")
        #expect((error["message"] as? String)?.hasSuffix("cannot be reached.") == true)
        #expect(error["remedy"] as? String == "Is somebody listening there?")
        #expect(error["code"] is NSNull)
        let call = try ToolRun.finished("sip", "call", "sip:127.0.0.1:1;transport=tcp", "--json")
        #expect(call.status == 1)
        #expect(try call.json()["status"] as? String == "unreachable")
    }
}
