import Foundation
import Glibc
import TestSupport
import Testing

/// `media-tool phone`, by lines on its standard input, with `sip answer` as the others.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct PhoneCommandRealTimeTests {
    private let folder: Scratch

    init() throws { folder = try Scratch() }

    /// Somebody who answers calls, and the URI of that.
    private func answering(_ arguments: String...) throws -> (run: ToolRun, uri: String) {
        let run = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--json", "--echo"] + arguments)
        try #require(run.printed(#""event":"listening""#), "\(run.errors)")
        let line = try #require(try run.jsonLines().first)
        let local = try #require(line["local"] as? String)
        return (run, "sip:" + (local.split(separator: " ").last.map(String.init) ?? ""))
    }

    @Test func `a phone calls, keys, holds and ends, and each action has its outcome`() throws {
        let (other, uri) = try answering()
        let phone = try PhoneRun(folder)
        try phone.say(#"{"action":"start","to":"\#(uri)","id":1}"#)
        #expect(phone.prints(#""stage":"connected""#))
        try phone.say(#"{"action":"playDTMF","digits":"5","id":2}"#)
        #expect(other.printed(#""digit":"5""#))
        // It hears its own sound.
        let isHeard = try phone.run.wait {
            try phone.say("calls")
            return phone.run.output.contains(/"receivedPackets":[1-9]/)
        }
        #expect(isHeard)
        try phone.say(#"{"action":"setHeld","held":true,"id":3}"#)
        #expect(phone.prints(#""held":true"#) && other.printed(#""event":"held""#))
        #expect(phone.prints(#""event":"performed","id":3"#))
        try phone.say(#"{"action":"calls","id":9}"#)
        #expect(phone.prints(#""state":"held""#) && phone.prints(#""event":"performed","id":9"#))
        try phone.say(#"{"action":"setHeld","held":false,"id":4}"#)
        #expect(phone.prints(#""held":false"#) && phone.prints(#""event":"performed","id":4"#))
        try phone.say(#"{"action":"end","id":5}"#)
        #expect(phone.prints(#""event":"report""#))
        try phone.say(#"{"action":"end","id":6}"#)
        #expect(phone.prints(#""event":"refused","id":6"#))
        try phone.say(#"{"action":"quit","id":7}"#)
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        let lines = try phone.run.jsonLines()
        let outcomes = lines.filter { $0["event"] as? String == "performed" }
        #expect(outcomes.map { $0["id"] as? Int } == [1, 2, 3, 9, 4, 5, 7])
        #expect(outcomes.allSatisfy { $0["result"] as? String == "fulfilled" })
        let report = try #require(lines.first { $0["event"] as? String == "report" })
        #expect(report["sentPackets"] as? Int ?? 0 > 0 && report["receivedPackets"] as? Int ?? 0 > 0)
        #expect(lines.compactMap { $0["active"] as? Bool } == [true, false])
    }

    @Test func `a second call holds the first, swap changes them, and quit ends both`() throws {
        let (one, first) = try answering()
        let (two, second) = try answering()
        let phone = try PhoneRun(folder)
        try phone.say("call \(first)")
        #expect(phone.prints(#""stage":"connected""#))
        try phone.say("call \(second)")
        #expect(one.printed(#""event":"held""#) && two.printed(#""event":"connected""#))
        #expect(phone.prints(#""call":2,"uuid""#) && phone.prints(#""call":1,"held":true"#))
        #expect(phone.prints { $0.components(separatedBy: #""stage":"connected""#).count == 3 })
        try phone.say("swap")
        #expect(phone.prints(#""call":2,"held":true"#) && phone.prints(#""call":1,"held":false"#))
        #expect(one.printed(#""event":"resumed""#) && two.printed(#""event":"held""#))
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        #expect(one.printed(#""event":"ended""#) && two.printed(#""event":"ended""#))
    }

    @Test func `two calls come into the conference, which is recorded, and out of it`() throws {
        let (one, first) = try answering()
        let (two, second) = try answering()
        let phone = try PhoneRun(folder)
        try phone.say("call \(first)")
        #expect(phone.prints(#""stage":"connected""#))
        try phone.say("call \(second)")
        #expect(one.printed(#""event":"held""#) && two.printed(#""event":"connected""#))
        #expect(phone.prints { $0.components(separatedBy: #""stage":"connected""#).count == 3 })
        try phone.say(#"{"action":"setGroup","call":1,"with":2,"id":1}"#)
        #expect(phone.prints(#""event":"performed","id":1,"result":"fulfilled""#))
        #expect(one.printed(#""event":"resumed""#))
        let file = folder.file("all.wav")
        try phone.say(#"{"action":"record","file":"\#(file)","id":2}"#)
        #expect(phone.prints(#""event":"performed","id":2,"result":"fulfilled""#))
        let hasSound = Polling.wait { (try? Data(contentsOf: URL(fileURLWithPath: file)).count) ?? 0 > 44 }
        #expect(hasSound)
        try phone.say("mute")
        #expect(phone.prints { $0.components(separatedBy: #""muted":true"#).count == 3 })
        try phone.say(#"{"action":"calls","id":3}"#)
        #expect(phone.prints(#""event":"performed","id":3"#))
        try phone.say(#"{"action":"record","id":4}"#)
        #expect(phone.prints(#""event":"performed","id":4,"result":"fulfilled""#))
        try phone.say("split 2")
        #expect(phone.prints { $0.components(separatedBy: #""call":1,"held":true"#).count == 3 })
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        let listed = try #require(try phone.run.jsonLines().first { $0["event"] as? String == "calls" })
        let calls = try #require(listed["calls"] as? [[String: Any]])
        #expect(calls.map { $0["grouped"] as? Bool } == [true, true])
    }

    @Test func `the other sides of two calls are joined, and both go on without the phone`() throws {
        let phone = try PhoneRun(folder)
        let local = try #require(try phone.run.jsonLines().first?["local"] as? String)
        let (one, uri) = try answering("--follow-transfers", "--calls", "1")
        let two = try ToolRun(["sip", "call", "sip:\(local)", "--follow-transfers", "--json", "--events"])
        #expect(phone.prints(#""event":"incoming""#))
        try phone.say("answer")
        #expect(two.printed(#""event":"connected""#))
        try phone.say("call \(uri)")
        #expect(phone.prints(#""stage":"connected""#))
        try phone.say("transfer 1 2")
        for run in [one, two] { #expect(run.printed(#""state":"done""#), "\(run.output)") }
        #expect(phone.prints { $0.components(separatedBy: #""event":"report""#).count == 3 }, "\(phone.run.output)")
        two.interrupt()
        #expect(two.wait() == 0 && one.wait() == 0, "\(two.errors)\(one.errors)")
        #expect(try two.jsonLines().count { $0["event"] as? String == "connected" } == 1)
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
    }

    @Test func `a phone is asked before it follows a transfer`() throws {
        let phone = try PhoneRun(folder)
        let local = try #require(try phone.run.jsonLines().first?["local"] as? String)
        let (other, uri) = try answering("--calls", "1")
        for (number, word) in ["stay", "follow"].enumerated() {
            func isTold(_ event: String) -> Bool {
                phone.prints { $0.components(separatedBy: "\"event\":\"\(event)\"").count == number + 2 }
            }
            let asking = try ToolRun(
                ["sip", "call", "sip:\(local)", "--transfer-to", uri, "--transfer-after", "0.1", "--json", "--events"]
            )
            #expect(isTold("incoming"))
            try phone.say("answer")
            #expect(isTold("transferRequested"))
            try phone.say(word)
            #expect(asking.printed(word == "stay" ? #""state":"failed","code":603"# : #""state":"done","code":200"#))
            if word == "stay" { asking.interrupt() }
            #expect(asking.wait() == 0, "\(asking.errors)")
        }
        #expect(other.printed(#""event":"connected""#))
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        #expect(other.wait() == 0)
    }

    @Test func `a phone rings, answers, declines the next, and takes a text`() throws {
        let phone = try PhoneRun(folder)
        let local = try #require(try phone.run.jsonLines().first?["local"] as? String)
        let calling = try ToolRun(["sip", "call", "sip:\(local)", "--seconds", "2", "--json"])
        #expect(phone.prints(#""event":"incoming""#))
        try phone.say("answer")
        #expect(phone.prints(#""active":true"#))
        let other = try ToolRun(["sip", "call", "sip:\(local)", "--seconds", "2", "--json"])
        #expect(phone.prints(#""event":"incoming","call":2"#))
        try phone.say("end 2")
        #expect(other.wait() == 1)
        #expect(try other.json()["code"] as? Int == 603)
        let text = try ToolRun(["sip", "message", "sip:\(local)", "good morning", "--json"])
        #expect(text.wait() == 0 && phone.prints("good morning"))
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(phone.prints(#""reason":"remoteEnded""#))
        phone.run.interrupt()
        #expect(phone.ends() == 0, "\(phone.run.errors)")
    }

    @Test func `a push is shown at once, answered before the call is here, and the call comes`() throws {
        let log = folder.file("pushes")
        let server = try ToolRun([
            "sip", "server", "--domain", "example.test", "--local", "127.0.0.1:0", "--push-log", log, "--json",
        ])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let addresses = try #require(try server.jsonLines().first?["addresses"] as? [String])
        let place = try #require(addresses.first?.split(separator: " ").last)
        let phone = try PhoneRun(
            folder,
            "--account",
            "sip:bob@example.test",
            "--registrar",
            "sip:\(place)",
            "--transport",
            "udp",
            "--push-team",
            "ABCD",
            "--push-bundle",
            "org.example.phone",
            "--push-voip-token",
            "00fc"
        )
        #expect(phone.prints(#""event":"registered""#) && server.printed(#""services":["voip"]"#))
        let calling = try ToolRun([
            "sip", "call", "sip:bob@example.test", "--proxy", "sip:\(place);lr", "--seconds", "1", "--json",
        ])
        #expect(server.printed(#""event":"parked""#), "\(calling.errors)")
        let push = try String(contentsOfFile: log, encoding: .utf8)
        let id = try #require(push.firstMatch(of: /callid=(\S+)/)).1
        #expect(push.hasPrefix("PUSH method=INVITE user=bob ") && push.contains("pn-prid=00fc:voip"))
        try phone.say(#"{"action":"push","payload":{"call-id":"\#(id)"},"id":1}"#)
        #expect(phone.prints(#""placeholder":true"#))
        try phone.say(#"{"action":"answer","id":2}"#)
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(phone.prints(#""event":"updated","call":1"#) && server.printed(#""event":"released""#))
        try phone.say("quit")
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        for output in [server.output, phone.run.output] { #expect(!output.contains("00fc")) }
        server.interrupt()
        server.wait()
    }

    @Test func `accounts of a file are registered, and a file that others may read is refused`() throws {
        let users = folder.file("users.json")
        try #"{"alice":{"password":"wonderland"}}"#.write(toFile: users, atomically: true, encoding: .utf8)
        let server = try ToolRun([
            "sip", "server", "--domain", "example.test", "--users", users, "--local", "127.0.0.1:0", "--json",
        ])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let addresses = try #require(try server.jsonLines().first?["addresses"] as? [String])
        let place = try #require(addresses.first?.split(separator: " ").last)
        let accounts = folder.file("accounts.json")
        let text = #"[{"address":"sip:alice@example.test","password":"wonderland","registrar":"sip:\#(place)"}]"#
        try text.write(toFile: accounts, atomically: true, encoding: .utf8)
        chmod(accounts, 0o644)
        let open = try ToolRun.finished("phone", "--accounts", accounts)
        #expect(open.status == 1 && open.errors.contains("chmod 600"))
        chmod(accounts, 0o600)
        let phone = try PhoneRun(folder, "--accounts", accounts)
        #expect(phone.prints(#""event":"registered""#) && !phone.run.output.contains("wonderland"))
        phone.close()
        #expect(phone.ends() == 0, "\(phone.run.errors)")
        #expect(server.printed(#""expires":0"#))
        server.interrupt()
        server.wait()
    }
}
