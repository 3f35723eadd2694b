import Foundation
import TestSupport
import Testing

/// The doctor, on machines with and without cards, and chirps over cards.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct DoctorCommandRealTimeTests {
    @Test func `without cards the doctor warns, with what to do, and ends well`() throws {
        let run = try ToolRun.finished("doctor", "--json")
        #expect(run.status == 0, "\(run.output)")
        let json = try run.json()
        let findings = try #require(json["findings"] as? [[String: Any]])
        let areas = findings.compactMap { $0["area"] as? String }
        for area in [
            "cards", "call card, playback", "card latency", "real-time scheduling", "timer", "codecs", "network",
            "addresses", "changes", "names", "ports", "authorities",
        ] {
            #expect(areas.contains(area), "\(area)")
        }
        #expect(json["failures"] as? Int == 0)
        for finding in findings where finding["status"] as? String != "ok" {
            #expect((finding["remedy"] as? String)?.isEmpty == false, "\(finding)")
        }
        let text = try ToolRun.finished("doctor")
        #expect(text.status == 0 && text.output.contains("0 failures"))
    }

    @Test func `a card that was chosen and does not open is a failure`() throws {
        let chosen = ["MEDIA_ENGINE_AU": "alsa:nosuch", "MEDIA_ENGINE_AU_CAPTURE": "alsa:nosuch"]
        let run = try ToolRun.finished("doctor", "--json", environment: chosen)
        #expect(run.status == 1)
        let findings = try #require(try run.json()["findings"] as? [[String: Any]])
        let failures = findings.filter { $0["status"] as? String == "failure" }
        #expect(failures.compactMap { $0["area"] as? String } == ["call card, playback", "call card, capture"])
        #expect(failures.allSatisfy { ($0["finding"] as? String)?.contains("nosuch") == true })
    }

    @Test func `chirps over two cards tell the delay, and over one that hears nothing what to do`() throws {
        let deaf = try ToolRun(["loopback", "--device", "null", "--chirps", "1"])
        let run = try ToolRun.finished(
            "loopback",
            "--device",
            "loopback-1",
            "--capture-device",
            "loopback-2",
            "--codec",
            "PCMU",
            "--chirps",
            "3",
            "--json"
        )
        #expect(run.status == 0, "\(run.errors)")
        let json = try run.json()
        #expect(json["sent"] as? Int == 3 && (json["heard"] as? Int ?? 0) >= 2)
        // The cable between the cards takes 10 ms, and each card holds a period or two.
        try Self.checkDelay(json, cards: 80)
        let chirps = try #require(json["chirps"] as? [[String: Any]])
        #expect(chirps.allSatisfy { ($0["confidence"] as? Double ?? 0) > 0.5 }, "\(chirps)")
        #expect(deaf.wait() == 1 && deaf.output.isEmpty)
        #expect(deaf.errors.contains("None of 1 chirps was heard") && deaf.errors.contains("--capture-device"))
    }

    @Test(
        .enabled(
            if: ProcessInfo.processInfo.environment["MEDIA_ENGINE_VIRTUAL_CARDS"] == "1",
            "run under Scripts/virtual-cards"
        )
    )
    func `chirps over real PCMs tell the delay`() throws {
        let run = try ToolRun.finished(
            "loopback",
            "--device",
            "alsa:AU",
            "--capture-device",
            "alsa:AU_heard",
            "--chirps",
            "3",
            "--json"
        )
        #expect(run.status == 0, "\(run.errors)")
        try Self.checkDelay(try run.json(), cards: 200)
    }

    /// Expects that a chirp at least took as long as the stream and what cards add to it, in milliseconds.
    ///
    /// Where the machine stalls while a chirp is on its way, it takes longer than its stream tells.
    private static func checkDelay(_ json: [String: Any], cards: Double) throws {
        let chirps = try #require(json["chirps"] as? [[String: Any]])
        let added = chirps.compactMap { chirp -> Double? in
            guard let delay = chirp["delayMs"] as? Double, let stream = chirp["streamMs"] as? Double else { return nil }
            return stream > 0 ? delay - stream : nil
        }
        #expect(added.contains { $0 > 0 && $0 < cards }, "\(json)")
        #expect(try #require(json["streamMs"] as? Double) > 0 && json["cardsMs"] as? Double != nil, "\(json)")
    }
}
