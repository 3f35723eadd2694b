import Foundation
import TestSupport
import Testing

@testable import media_tool

/// Calls that come in other ways than usual, by SIP between runs of the tool on 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPReceptionRealTimeTests {
    @Test func `listening everywhere, sound is where the call came to, whatever it asks for`() throws {
        let answering = try ToolRun([
            "sip", "answer", "--local", "0.0.0.0:0", "--echo", "--calls", "2", "--json",
        ])
        let port = try #require(try answering.address().split(separator: ":").last)
        for uri in ["sip:x@203.0.113.5", "sip:x@127.0.0.1:\(port)"] {
            let call = try ToolRun.finished(
                "sip",
                "call",
                uri,
                "--proxy",
                "sip:127.0.0.1:\(port);lr",
                "--local",
                "0.0.0.0:0",
                "--seconds",
                "0.5",
                "--json",
                "--events"
            )
            #expect(call.status == 0, "\(call.errors)")
            let connected = try #require(try call.jsonLines().first { $0["event"] as? String == "connected" })
            let host = (connected["remoteMedia"] as? String)?.split(separator: ":").first
            #expect(host == "127.0.0.1")
        }
        #expect(answering.wait() == 0, "\(answering.errors)")
        let heard = try answering.jsonLines().filter { $0["event"] as? String == "ended" }
        #expect(heard.count == 2 && heard.allSatisfy { $0["status"] as? String == "ok" })
    }

    @Test func `a call that nobody answers is a timeout, and one that finds nobody free has a story`() throws {
        let scratch = try Scratch()
        let ringing = try ToolRun(["sip", "answer", "--local", "127.0.0.1:0", "--policy", "ring", "--json"])
        let peer = try ringing.address()
        let call = try ToolRun.finished("sip", "call", "sip:\(peer)", "--ring-timeout", "1", "--json")
        #expect(call.status == 1)
        #expect(try call.json()["status"] as? String == "timeout")
        ringing.interrupt()
        #expect(ringing.wait() == 0)
        let story = scratch.file("story.json")
        let busy = try ToolRun([
            "sip", "answer", "--local", "127.0.0.1:0", "--policy", "busy", "--calls", "1", "--story", story, "--json",
        ])
        let other = try ToolRun.finished("sip", "call", "sip:\(try busy.address())", "--json")
        #expect(other.status == 1)
        #expect(busy.wait() == 0, "\(busy.errors)")
        #expect(try Story(parsing: try scratch.bytes("story.json")).outcome?.code == 486)
    }

    @Test func `calls are taken while the registrar thinks, and texts that nobody would read are refused`() throws {
        let scratch = try Scratch()
        try #"{"alice": {}, "bob": {}}"#
            .write(toFile: scratch.file("users.json"), atomically: true, encoding: .utf8)
        try #"{"method": "REGISTER", "to": "bob", "do": "delay", "ms": 3000, "times": 3}"#
            .write(toFile: scratch.file("script.jsonl"), atomically: true, encoding: .utf8)
        let server = try ToolRun([
            "sip", "server", "--domain", "example.test", "--users", scratch.file("users.json"), "--script",
            scratch.file("script.jsonl"), "--local", "127.0.0.1:0", "--json",
        ])
        let way = "sip:\(try server.address());lr"
        let answering = try ToolRun([
            "sip", "answer", "--account", "sip:bob@example.test", "--proxy", way, "--local", "127.0.0.1:0", "--echo",
            "--calls", "2", "--json",
        ])
        let peer = try answering.address()
        let call = try ToolRun.finished("sip", "call", "sip:\(peer)", "--seconds", "0.2", "--json")
        #expect(call.status == 0, "\(call.errors)")
        #expect(answering.printed(#""event":"registered""#), "\(answering.errors)")
        let events = try answering.jsonLines().compactMap { $0["event"] as? String }
        let (incoming, registered) = (events.firstIndex(of: "incoming"), events.firstIndex(of: "registered"))
        #expect(try #require(incoming) < #require(registered), "\(events)")
        let text = try ToolRun.finished(
            "sip",
            "message",
            "sip:bob@example.test",
            "hello",
            "--account",
            "sip:alice@example.test",
            "--proxy",
            way,
            "--json"
        )
        #expect(text.status == 1 && text.errors.contains("480"), "\(text.output) \(text.errors)")
        answering.interrupt()
        #expect(answering.wait() == 0, "\(answering.errors)")
        server.interrupt()
        #expect(server.wait() == 0)
    }
}
