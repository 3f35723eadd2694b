import Foundation
import Glibc
import TestSupport
import Testing

/// The lines that scripts read: each event of `sip` has the members that it always had, and a few more at most.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPLinesRealTimeTests {
    private let folder: Scratch
    private let password: String
    private let server: ToolRun
    private let way: String

    /// The members of each event.
    private static let members: [String: Set<String>] = [
        "registering": ["account", "target", "transport", "sinceStartMs"],
        "registered": [
            "account", "expires", "refreshAt", "contact", "publicAddress", "gruu", "serviceRoute", "pushServed",
            "pushRegistrationSeconds", "roundTripMs", "attempts",
        ],
        "registration": ["state", "code", "phrase", "reason", "retryInSeconds"],
        "network": ["change", "from", "to", "interface", "firstPacketMs"],
        "flow": ["state", "why", "target"],
        "unregistered": [],
        "calling": ["callID", "to", "targets"],
        "progress": ["code", "phrase", "tag", "sinceInviteMs"],
        "earlyMedia": [],
        "connected": ["setupMs", "codec", "payloadType", "remoteMedia", "direction", "srtp"],
        "held": ["by"], "resumed": ["by"], "digit": ["digit", "way"], "transfer": ["to", "state", "code"],
        "listening": ["local", "account"],
        "incoming": ["callID", "from", "displayName", "codecs", "direction", "video"],
        "ended": report,
        "sent": ["messageID", "callID", "code"],
        "receipt": ["messageID", "kind", "from", "afterMs"],
        "message": ["callID", "messageID", "from", "contentType", "text"],
    ]
    private static let report: Set<String> = [
        "status", "code", "phrase", "reason", "endedBy", "callID", "setupMs", "ringingMs", "talkSeconds", "legs", "sip",
        "dtmf", "story",
    ]
    private static let load: Set<String> = [
        "attempted", "connected", "rejected", "timedOut", "failed", "retransmissions", "setupMs", "ratePerSecond",
        "cpuSeconds", "peakMiB",
    ]

    init() throws {
        folder = try Scratch()
        password = folder.file("password")
        try "wonderland\n".write(toFile: password, atomically: true, encoding: .utf8)
        chmod(password, 0o600)
        try #"{"alice": {"password": "wonderland"}, "bob": {}}"#
            .write(toFile: folder.file("users.json"), atomically: true, encoding: .utf8)
        server = try ToolRun([
            "sip", "server", "--domain", "example.test", "--users", folder.file("users.json"), "--local", "127.0.0.1:0",
            "--json",
        ])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let names = try #require(try server.jsonLines().first?["addresses"] as? [String])
        way = "sip:\(try #require(names.first?.split(separator: " ").last));lr"
    }

    private var alice: [String] {
        ["--account", "sip:alice@example.test", "--proxy", way, "--password-file", password, "--json"]
    }

    /// Runs the tool; its state is that of this test.
    private func run(_ arguments: [String]) throws -> ToolRun {
        try ToolRun(["sip"] + arguments, environment: ["XDG_STATE_HOME": folder.file("state")])
    }

    /// Whether each line has the members of its event; gives the events in order.
    private func check(_ run: ToolRun) throws -> [String] {
        try run.jsonLines().compactMap { line in
            guard let event = line["event"] as? String else { return nil }
            let wanted = try #require(Self.members[event], "\(event) is not known")
            #expect(wanted.isSubset(of: line.keys), "\(event) has no \(wanted.subtracting(line.keys).sorted())")
            return event
        }
    }

    @Test func `a registration tells what it came to, obeys signals, and can be taken away by another run`() throws {
        let keeping = try run(["register", "--story", folder.file("story.json")] + alice)
        try #require(keeping.printed(#""event":"registered""#), "\(keeping.errors)")
        keeping.signal(SIGUSR1)
        #expect(try keeping.wait { try keeping.jsonLines().count { $0["event"] as? String == "registered" } == 2 })
        keeping.signal(SIGUSR2)
        #expect(keeping.printed(#""reason":"networkDown""#))
        keeping.signal(SIGUSR2)
        #expect(keeping.printed(#""change":"on""#))
        #expect(try keeping.wait { try keeping.jsonLines().count { $0["event"] as? String == "registered" } >= 3 })
        keeping.interrupt()
        #expect(keeping.wait() == 0, "\(keeping.errors)")
        let events = try check(keeping)
        #expect(events.first == "registering" && events.last == "unregistered")
        let first = try #require(try keeping.jsonLines().first { $0["event"] as? String == "registered" })
        #expect(first["attempts"] as? Int == 2)
        let story = try #require(JSONSerialization.jsonObject(with: Data(folder.bytes("story.json"))) as? [String: Any])
        #expect(story["clock"] as? String == "monotonic" && story["seed"] is NSNull)
        let changes = try #require(story["steps"] as? [[String: Any]]).filter { $0["layer"] as? String == "network" }
        #expect(changes.map { $0["what"] as? String } == ["off", "on"])

        // It is known by its instance, though its port is another.
        #expect(try run(["register", "--once"] + alice).wait() == 0)
        let leaving = try run(["register", "--unregister"] + alice)
        #expect(leaving.wait() == 0, "\(leaving.errors)")
        #expect(try check(leaving) == ["registering", "unregistered"])
        server.interrupt()
        #expect(server.wait() == 0)
        #expect(try server.jsonLines().last?["bindings"] as? Int == 0)
    }

    @Test func `a refused registration has the server's code and words, and a silent one a reason`() throws {
        let refused = try ToolRun(
            ["sip", "register", "--account", "sip:alice@example.test", "--proxy", way, "--once", "--json"],
            environment: ["MEDIA_TOOL_SIP_PASSWORD": "queen"]
        )
        #expect(refused.wait() == 1)
        #expect(try check(refused) == ["registering", "registration"])
        let told = try #require(try refused.jsonLines().first { $0["event"] as? String == "registration" })
        #expect(told["code"] as? Int == 401 && told["phrase"] as? String == "Unauthorized")
        #expect(told["reason"] as? String == "unauthorized" && told["retryInSeconds"] is NSNull)
        let port = try FreePort.pair()
        let silent = try run([
            "register", "--account", "sip:alice@example.test", "--proxy", "sip:127.0.0.1:\(port);lr", "--transport",
            "udp",
            "--timeout", "0.3", "--json",
        ])
        #expect(silent.wait() == 1)
        let last = try #require(try silent.jsonLines().last?["error"] as? [String: Any])
        #expect(["timeout", "unreachable"].contains(last["status"] as? String))
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test func `a group's account registers by its name, as the core of the group`() throws {
        let group = folder.file("group")
        let add = try run([
            "account", "add", "--group", group, "--account", "sip:alice@example.test", "--name", "Alice", "--proxy",
            way,
            "--password-file", password,
        ])
        #expect(add.wait() == 0, "\(add.errors)")
        let first = try run(["register", "--group", group, "--account", "Alice", "--json"])
        try #require(first.printed(#""event":"registered""#), "\(first.errors)")
        let second = try run(["register", "--group", group, "--once", "--json"])
        #expect(second.wait() == 1)
        #expect(try second.jsonLines().last?["error"] != nil && second.errors.contains("Another main core"))
        // A text that is to be in the group's store is not taken by a command.
        let text = try run(["message", "sip:alice@example.test", "Hello", "--proxy", way, "--json"])
        #expect(text.wait() == 1)
        #expect(text.errors.contains("480"), "\(text.errors)")
        first.interrupt()
        #expect(first.wait() == 0, "\(first.errors)")
        // One that only sends leaves the group registered.
        let sending = try run(["message", "sip:bob@example.test", "Hello", "--group", group, "--json"])
        #expect(sending.wait() == 0, "\(sending.errors)")
        let stranger = try run(["register", "--group", group, "--account", "Carol", "--once"])
        #expect(stranger.wait() == 1 && stranger.errors.contains("sip:alice@example.test"), "\(stranger.errors)")
        server.interrupt()
        #expect(server.wait() == 0)
        let last = try #require(try server.jsonLines().last)
        #expect(last["bindings"] as? Int == 1, "\(last)")
    }

    @Test func `a receipt for what another run has sent does not tell how long that took`() throws {
        let bob = ["--account", "sip:bob@example.test", "--proxy", way, "--json"]
        let listening = try run(["message", "--listen"] + bob)
        let reading = try run(["message", "--listen", "--count", "1"] + alice)
        for one in [listening, reading] { try #require(one.printed(#""event":"registered""#), "\(one.errors)") }
        // Bob's other run is not called.
        let sending = try run(
            ["message", "sip:alice@example.test", "Hello", "--receipts", "delivered", "--wait", "0.1", "--no-register"]
                + bob
        )
        #expect(sending.wait() == 1 && reading.wait() == 0, "\(reading.errors)")
        #expect(listening.printed(#""event":"receipt""#), "\(listening.output)")
        listening.interrupt()
        #expect(listening.wait() == 0)
        #expect(try check(listening).contains("receipt") && check(reading).contains("message"))
        let receipt = try #require(try listening.jsonLines().first { $0["event"] as? String == "receipt" })
        #expect(receipt["kind"] as? String == "delivered" && receipt["afterMs"] is NSNull)
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test func `a call tells its steps on both sides, with sound before the answer, a story and captures`() throws {
        let answering = try run([
            "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--early-media", "--after", "0.5", "--pcap",
            folder.file("b.pcap"), "--json",
        ])
        try #require(answering.printed(#""event":"listening""#), "\(answering.errors)")
        let place = try #require((try answering.jsonLines().first?["local"] as? String)?.split(separator: " ").last)
        let calling = try run([
            "call", "sip:\(place)", "--output", folder.file("heard.wav"), "--seconds", "1", "--timeout", "90", "--dtmf",
            "5", "--story",
            folder.file("story.json"), "--pcap", folder.file("a.pcap"), "--srtp", "off", "--json",
            "--events",
        ])
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(answering.wait() == 0, "\(answering.errors)")
        #expect(try check(calling) == ["calling", "progress", "earlyMedia", "connected", "ended"])
        #expect(try check(answering) == ["listening", "incoming", "connected", "digit", "ended"])
        let last = try #require(try calling.jsonLines().last)
        #expect(Self.report.isSubset(of: last.keys) && last["story"] as? String == folder.file("story.json"))
        let incoming = try #require(try answering.jsonLines().first { $0["event"] as? String == "incoming" })
        #expect((incoming["codecs"] as? [String])?.contains("PCMU") == true && incoming["video"] as? Bool == false)
        for name in ["a.pcap", "b.pcap"] { #expect(try folder.bytes(name).count > 10_000) }
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test func `a deferred call rings nowhere before it is answered`() throws {
        let answering = try run([
            "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "1", "--policy", "defer", "--after", "0.3",
            "--json",
        ])
        try #require(answering.printed(#""event":"listening""#), "\(answering.errors)")
        let place = try #require((try answering.jsonLines().first?["local"] as? String)?.split(separator: " ").last)
        let calling = try run([
            "call", "sip:\(place)", "--output", folder.file("heard.wav"), "--seconds", "0.3", "--json", "--events",
        ])
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(try check(calling) == ["calling", "connected", "ended"])
        #expect(answering.wait() == 0, "\(answering.errors)")
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test(arguments: [
        ["register"], ["message", "sip:bob@example.test", "Hello", "--receipts", "delivered,displayed"],
        ["load", "--register", "--users", "20"],
    ])
    func `in virtual time the same seed gives the same bytes`(words: [String]) throws {
        let runs = try [7, 7, 8].map { try run(words + ["--virtual", "--seed", "\($0)", "--json"]) }
        for one in runs { #expect(one.wait() == 0, "\(one.errors)") }
        #expect(runs[0].output == runs[1].output && !runs[0].output.isEmpty)
        // A load has its figures alone.
        if words[0] != "load" { #expect(runs[0].output != runs[2].output) }
        let events = try check(runs[0])
        switch words[0] {
        case "register": #expect(events == ["registering", "registered", "unregistered"])
        case "message": #expect(events == ["sent", "receipt", "receipt"])
        default: #expect(Self.load.isSubset(of: try runs[0].json().keys))
        }
        server.interrupt()
        #expect(server.wait() == 0)
    }

    @Test func `a load over several processors is of so many agents, and counted as one`() throws {
        let trace = folder.file("trace")
        let answering = try run([
            "answer", "--local", "127.0.0.1:0", "--echo", "--calls", "6", "--sip-trace", trace, "--json",
        ])
        try #require(answering.printed(#""event":"listening""#), "\(answering.errors)")
        let place = try #require((try answering.jsonLines().first?["local"] as? String)?.split(separator: " ").last)
        let load = try run(["load", "--to", "sip:\(place)", "--cores", "2", "--calls", "6", "--rate", "50", "--json"])
        #expect(load.wait() == 0, "\(load.errors)")
        let figures = try load.json()
        #expect(figures["attempted"] as? Int == 6 && figures["connected"] as? Int == 6)
        #expect(answering.wait() == 0, "\(answering.errors)")
        let text = try String(contentsOfFile: trace, encoding: .utf8)
        #expect(Set(text.matches(of: /Via: SIP\/2.0\/UDP 127\.0\.0\.1:(\d+)/).map(\.1)).count == 2, "\(text)")
        server.interrupt()
        #expect(server.wait() == 0)
    }
}
