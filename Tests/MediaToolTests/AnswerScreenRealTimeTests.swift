import Foundation
import TestSupport
import Testing

/// `sip answer --provider`: a call screen in a process of its own decides about calls, each a process, too.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AnswerScreenRealTimeTests {
    private let folder: Scratch
    private let answering: ToolRun
    private let uri: String
    private var group: String { folder.file("group") }

    init() throws {
        folder = try Scratch()
        answering = try ToolRun([
            "sip", "answer", "--local", "127.0.0.1:0", "--echo", "--provider", folder.file("group"), "--json",
        ])
        try #require(answering.printed(#""event":"listening""#), "\(answering.errors)")
        let local = try #require(try answering.jsonLines().first?["local"] as? String)
        uri = "sip:bob@\(try #require(local.split(separator: " ").last))"
    }

    private func screen() throws -> ToolRun {
        let screen = try ToolRun(["provider", "serve", "--group", group, "--json"])
        try #require(screen.printed(#""event":"snapshot""#), "\(screen.errors)")
        return screen
    }

    private func call(_ more: String...) throws -> ToolRun {
        try ToolRun(["sip", "call", uri, "--seconds", "60", "--json", "--events"] + more)
    }

    /// Has the screen do something, and gives what became of it.
    private func act(_ words: String...) throws -> String? {
        let act = try ToolRun(["provider", "act", "--group", group] + words + ["--json"])
        act.wait()
        let outcome = try act.jsonLines().first
        return outcome?["fault"] as? String ?? outcome?["result"] as? String
    }

    /// The screen and what answers end in order.
    private func end(_ runs: ToolRun...) {
        for run in runs + [answering] {
            run.interrupt()
            #expect(run.wait() == 0, "\(run.errors)")
        }
    }

    @Test func `a screen answers, holds, resumes, mutes, sends keys and ends`() throws {
        let screen = try screen()
        let calling = try call()
        #expect(screen.printed(#""event":"incoming""#) && calling.printed(#""code":180"#))
        #expect(try act("answer") == "fulfilled")
        #expect(calling.printed(#""event":"connected""#) && screen.printed(#""event":"audio","active":true"#))
        #expect(try act("hold") == "fulfilled" && calling.printed(#""event":"held","by":"them""#))
        #expect(try act("resume") == "fulfilled" && calling.printed(#""event":"resumed","by":"them""#))
        #expect(try act("mute") == "fulfilled")
        #expect(try act("keys", "42") == "fulfilled")
        #expect(calling.printed(#""digit":"4""#) && calling.printed(#""digit":"2""#))
        let status = try ToolRun.finished("provider", "status", "--group", group, "--json").json()
        let shown = try #require((status["calls"] as? [[String: Any]])?.first)
        #expect(shown["connected"] as? Bool == true && shown["muted"] as? Bool == true)
        #expect(try act("end") == "fulfilled")
        #expect(calling.wait() == 0, "\(calling.errors)")
        let report = try #require(try calling.jsonLines().last)
        #expect(report["status"] as? String == "ok" && report["endedBy"] as? String == "them")
        #expect(answering.printed(#""event":"ended""#) && screen.printed(#""action":"end","result":"fulfilled""#))
        end(screen)
    }

    @Test func `a screen declines, and is told when a caller gives up`() throws {
        let screen = try screen()
        let declined = try call()
        #expect(screen.printed(#""event":"incoming""#))
        #expect(try act("end") == "fulfilled")
        #expect(declined.wait() == 1)
        #expect(try declined.jsonLines().last?["code"] as? Int == 603)
        let caller = try call("--cancel-after", "0.3")
        caller.wait()
        #expect(screen.printed(#""event":"ended""#) && screen.output.contains(#""reason":"remoteEnded""#))
        #expect(try act("answer") == nil)
        end(screen)
    }

    @Test func `a call rings until there is a screen, and a second one is answered while the first is held`() throws {
        let first = try call()
        #expect(first.printed(#""code":180"#))
        let screen = try screen()
        #expect(screen.printed(#""connected":false"#), "\(screen.output)")
        #expect(try act("answer") == "fulfilled" && first.printed(#""event":"connected""#))
        let second = try call()
        #expect(screen.printed(#""event":"incoming""#))
        #expect(try act("answer") == "fulfilled" && second.printed(#""event":"connected""#))
        #expect(first.printed(#""event":"held","by":"them""#))
        // It answers, and does nothing else.
        #expect(try act("call", "sip:carol@127.0.0.1") == "notNow")
        let calls = try ToolRun.finished("provider", "status", "--group", group, "--json").json()["calls"]
        let identifiers = try #require(calls as? [[String: Any]]).compactMap { $0["uuid"] as? String }
        #expect(try identifiers.count == 2 && act("join", identifiers[0], identifiers[1]) == "notNow")
        #expect(try act("reset") == "fulfilled")
        #expect(first.wait() == 0 && second.wait() == 0, "\(first.errors)\(second.errors)")
        end(screen)
    }

    @Test func `two that answer cannot have one group of screens`() throws {
        let second = try ToolRun.finished("sip", "answer", "--local", "127.0.0.1:0", "--provider", group, "--json")
        #expect(second.status == 1 && !second.errors.isEmpty)
        end()
    }
}
