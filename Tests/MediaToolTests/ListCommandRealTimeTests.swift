import Foundation
import TestSupport
import Testing

/// The commands that list: text for people, one JSON object for scripts.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct ListCommandRealTimeTests {
    @Test(arguments: ["devices", "codecs", "plugins"]) func `every entry has a name`(command: String) throws {
        let run = try ToolRun.finished(command, "--json")
        #expect(run.status == 0)
        let entries = try #require(try run.json()[command] as? [[String: Any]])
        #expect(!entries.isEmpty)
        for entry in entries { #expect(entry["name"] is String) }
        #expect(run.output.split(separator: "\n").count == 1)
        #expect(try ToolRun.finished(command).output.contains(try #require(entries[0]["name"] as? String)))
    }

    @Test func `devices tells the roles and who bound them`() throws {
        let run = try ToolRun.finished(
            "devices",
            "--json",
            "--aq",
            "alsa:ringer",
            environment: ["MEDIA_ENGINE_AU": "desk"]
        )
        let json = try run.json()
        let roles = try #require(json["roles"] as? [[String: Any]])
        #expect(roles.map { $0["name"] as? String } == ["AU: Audio Unit Receiver", "AQ: Audio Queue Device"])
        let au = try #require(roles[0]["playback"] as? [String: String])
        #expect(au == ["device": "desk", "source": "environment MEDIA_ENGINE_AU"])
        let aq = try #require(roles[1]["playback"] as? [String: String])
        #expect(aq == ["device": "alsa:ringer", "source": "flag"])
        let devices = try #require(json["devices"] as? [[String: Any]])
        let null = try #require(devices.first { $0["id"] as? String == "builtin:null" })
        #expect(null["backend"] as? String == "built-in" && null["capabilities"] as? String == "duplex")
        #expect(null["state"] as? String == "available")
        #expect(null["playbackProblem"] is NSNull && null["captureProblem"] is NSNull)
    }

    @Test func `devices tells which cards do not open, and why`() throws {
        let run = try ToolRun.finished("devices", "--au", "alsa:hw:99", "--json")
        #expect(run.status == 0 && run.errors.isEmpty)
        let devices = try #require(try run.json()["devices"] as? [[String: Any]])
        let role = try #require(devices.first { $0["id"] as? String == "role:AU" })
        for problem in [role["playbackProblem"], role["captureProblem"]] {
            #expect((problem as? String)?.contains("hw:99") == true)
        }
        let text = try ToolRun.finished("devices", "--au", "alsa:hw:99").output
        let line = try #require(text.split(separator: "\n").first { $0.contains("role:AU") })
        #expect(line.split(separator: " ").last == "no" && text.contains("\nAU: Audio Unit Receiver: "))
    }

    @Test func `a call's graph is drawn in boxes that fit beside each other`() throws {
        let drawing = try ToolRun.finished("graph", "call", "--format", "dot").output
        let labels = drawing.split(separator: "\n").filter { $0.contains("[label=") && !$0.contains("->") }
        #expect(labels.count > 10)
        for label in labels {
            let text = try #require(label.split(separator: "\"").dropFirst().first)
            #expect(text.split(separator: "\\").allSatisfy { $0.count <= 40 }, "\(text)")
        }
    }

    @Test func `codecs tells who registered what, and what is missing and why`() throws {
        let json = try ToolRun.finished("codecs", "--json").json()
        let codecs = try #require(json["codecs"] as? [[String: Any]])
        #expect(codecs[0]["name"] as? String == "opus" && codecs[0]["registeredBy"] as? String == "built-in")
        #expect(codecs.contains { $0["name"] as? String == "PCMU" && $0["payloadType"] as? Int == 0 })
        let missing = try #require(json["missing"] as? [[String: String]])
        let silk = try #require(missing.first { $0["name"] == "SILK" })
        #expect(silk["reason"]?.isEmpty == false && silk["remedy"] == "Use opus.")
    }

    @Test(arguments: ["loopback", "dtmf", "ring", "call"]) func `every graph is drawn`(subject: String) throws {
        #expect(try ToolRun.finished("graph", subject).output.contains("filters"))
        #expect(try ToolRun.finished("graph", subject, "--format", "dot").output.hasPrefix("digraph"))
        let json = try ToolRun.finished("graph", subject, "--json").json()
        #expect((json["drawing"] as? String)?.contains("#") == true)
    }
}
