import Foundation
import Glibc
import SharedCore
import TestSupport
import Testing

/// Texts by SIP for a group whose processes are killed, wherever they are.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.realtime), .onSteadyMachine, .hasWitnesses)
struct SharedPhoneFaultRealTimeTests {
    private let folder: Scratch
    private let server: ToolRun
    private let way: String
    private var group: String { folder.file("group") }

    init() throws {
        folder = try Scratch()
        server = try ToolRun(["sip", "server", "--domain", "example.test", "--local", "127.0.0.1:0", "--json"])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let addresses = try #require(try server.jsonLines().first?["addresses"] as? [String])
        way = "sip:" + (addresses.first?.split(separator: " ").last.map(String.init) ?? "") + ";lr"
        let add = try ToolRun.finished(
            "sip",
            "account",
            "add",
            "--group",
            folder.file("group"),
            "--account",
            "sip:bob@example.test",
            "--proxy",
            way,
            "--push-team",
            "ABCD",
            "--push-bundle",
            "org.example",
            "--push-remote-token",
            "beefed"
        )
        try #require(add.status == 0, "\(add.errors)")
    }

    /// Writes to Bob, who is away, and gives the call-id that a push would name.
    private func write(_ text: String) throws -> String {
        let sent = try ToolRun.finished(
            "sip",
            "message",
            "sip:bob@example.test",
            text,
            "--account",
            "sip:alice@example.test",
            "--no-register",
            "--proxy",
            way,
            "--cpim",
            "--json"
        )
        #expect(try sent.json()["code"] as? Int == 202, "\(sent.errors)")
        return try #require(try sent.json()["callID"] as? String)
    }

    private func notify(_ callID: String, fault: FaultPoint? = nil) throws -> ToolRun {
        try ToolRun(
            ["core", "notify", "--group", group, "--local", "127.0.0.1:0", "--call-id", callID, "--json"],
            environment: fault.map { ["SHARED_CORE_FAULT": $0.rawValue] } ?? [:]
        )
    }

    private func shown(_ run: ToolRun) throws -> [[String: Any]] {
        try run.jsonLines().filter { $0["text"] is String }
    }

    private func end() {
        server.interrupt()
        #expect(server.wait() == 0, "\(server.errors)")
    }

    /// Before the commit the server still has the text, behind it the store has, and the answer says so to the next.
    private static let places: [FaultPoint] = [
        .beforeInsert, .afterInsert, .beforeSend, .beforeClaim, .afterClaim, .beforePresent, .afterPresent,
    ]

    @Test(arguments: thorough(places, quick: [.afterInsert, .beforeSend, .afterPresent]))
    func `killed at any place, a text is neither lost nor shown twice unmarked`(point: FaultPoint) throws {
        let callID = try write("Lunch?")
        let first = try notify(callID, fault: point)
        first.wait()
        #expect(first.isKilled && first.errors.contains("fault point \(point.rawValue)"), "\(first.errors)")
        let next = try notify(callID)
        #expect(next.wait() == 0, "\(next.errors)")
        let all = try [first, next].map(shown)
        #expect(all[1].map { $0["text"] as? String } == ["Lunch?"])
        let mayHaveBeenShown = [FaultPoint.afterClaim, .beforePresent, .afterPresent].contains(point)
        #expect(all[1].first?["repeated"] as? Bool == mayHaveBeenShown)
        end()
    }

    @Test func `of a storm of pushes, with processes killed at random and a main that comes and goes, none is lost`()
        throws
    {
        var generator = SystemRandomNumberGenerator()
        let texts = try (0..<thorough(8, quick: 4)).map { number in (try write("text \(number)"), "text \(number)") }
        let points: [FaultPoint?] = [nil, .beforeInsert, .afterInsert, .afterClaim, .afterPresent, nil]
        var runs = try texts.map { try notify($0.0, fault: points.randomElement(using: &generator) ?? nil) }
        let main = try ToolRun(["core", "main", "--group", group, "--local", "127.0.0.1:0", "--json"])
        #expect(main.printed(#""event":"registered""#), "\(main.errors)")
        runs.append(main)
        main.killAtOnce()
        for run in runs { run.wait() }
        // Pushes that come again find what is left.
        for (callID, _) in texts {
            let run = try notify(callID)
            run.wait()
            runs.append(run)
        }
        let lines = try runs.filter { $0 !== main }.flatMap(shown)
        for (_, text) in texts {
            let told = lines.filter { $0["text"] as? String == text }
            #expect(!told.isEmpty, "\(text) is lost")
            #expect(told.count { $0["repeated"] as? Bool == false } <= 1, "\(text): \(told)")
        }
        let status = try ToolRun.finished("core", "status", "--group", group, "--json").json()
        #expect(status["pending"] as? Int == 0 && status["acknowledged"] as? Int == texts.count, "\(status)")
        end()
    }
}
