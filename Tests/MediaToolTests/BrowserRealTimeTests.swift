import Foundation
import TestSupport
import Testing

/// Calls with headless Chromium, which opens the page of `webrtc serve` in a network of its own: sound both ways, scored.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .namespaces,
    .enabled(if: BrowserRun.program != nil, "needs chromium-headless-shell")
) struct BrowserRealTimeTests {
    /// A network with the one address that a browser looks for a way from.
    private func network() async throws -> NetworkNamespace {
        let network = try await NetworkNamespace.make()
        try network.ip("link add a0 type veth peer name b0; link set a0 up; link set b0 up")
        try network.ip("address add 192.0.2.1/24 dev a0; route add default via 192.0.2.9 dev a0")
        return network
    }

    private func serve(_ options: [String], in network: NetworkNamespace) throws -> ToolRun {
        let command =
            network.command.dropFirst() + [ToolRun.path, "webrtc", "serve", "--local", "127.0.0.1:0", "--json"]
        let run = try ToolRun(command + ["--calls", "1"] + options, program: network.command[0])
        try #require(run.printed(#""event":"listening""#), "\(run.errors)")
        return run
    }

    /// The page of `run`, which calls at once.
    private func page(of run: ToolRun) throws -> String {
        try #require(run.jsonLines().first?["url"] as? String) + "#call"
    }

    private func ended(_ run: ToolRun) throws -> [String: Any] {
        try #require(run.jsonLines().last { $0["event"] as? String == "ended" }, "\(run.output) \(run.errors)")
    }

    @Test(arguments: thorough([("opus", 48_000), ("PCMU", 8000)], quick: [("opus", 48_000)]))
    func `a browser that opens the page hears our tone, and is heard`(codec: String, rate: Int) async throws {
        let (network, scratch) = (try await network(), try Scratch())
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16_000)
        let sound = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav"), "--codec", codec]
        let run = try serve(sound, in: network)
        let browser = try BrowserRun(page(of: run), in: network, hears: .baresip)
        #expect(run.printed(#""event":"secured""#), "\(run.output) \(run.errors) \(browser.output)")
        FileWatch.wait(for: scratch.file("heard.wav"), byteCount: 3 * 2 * rate)
        run.interrupt()
        #expect(run.wait() == 0, "\(run.errors)")
        let report = try ended(run)
        #expect(report["status"] as? String == "ok" && report["endedBy"] as? String == "us")
        let security = try #require(report["srtp"] as? [String: Any])
        #expect(security["keying"] as? String == "dtls" && security["unsent"] as? Int == 0, "\(security)")
        #expect(try Tone.baresip.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        // The peaks of the tone are at -12.2 dBFS.
        let heard = try #require(report["browser"] as? [String: Any], "\(report)")
        #expect(try #require(heard["packets"] as? Int) > 50 && heard["lost"] as? Int == 0, "\(heard)")
        #expect(try -14 ... -11 ~= #require(heard["level"] as? Double), "\(heard)")
    }

    private func changes(_ run: ToolRun) throws -> [[String: Any]] {
        try run.jsonLines().filter { $0["event"] as? String == "changed" }
    }

    /// Whether the way in use has been found by the ufrag that the browser has told last.
    private static let isOnNewWay = """
        peer.getStats().then(all => {
          const transport = [...all.values()].find(one => one.type === 'transport')
          const local = all.get(all.get(transport.selectedCandidatePairId)?.localCandidateId)
          return peer.localDescription.sdp.includes('a=ice-ufrag:' + local?.usernameFragment)
        })
        """

    @Test func `a browser holds, comes back, and looks for the way anew, and the call goes on`() async throws {
        let network = try await network()
        let run = try serve(["--echo"], in: network)
        let browser = try BrowserRun(page(of: run), in: network, hears: .baresip)
        #expect(run.printed(#""event":"secured""#), "\(run.output) \(run.errors) \(browser.output)")
        func packets() throws -> Int {
            let script = """
                peer.getStats().then(all => [...all.values()].find(one => one.type === 'inbound-rtp')?.packetsReceived ?? 0)
                """
            return try #require(Int(browser.evaluate(script)))
        }
        for (change, direction) in [("hold(true)", "inactive"), ("hold(false)", "sendrecv"), ("restart()", "sendrecv")]
        {
            let name = "peer.remoteDescription.sdp.match(/ice-ufrag:(.*)/)[1]"
            let former = try browser.evaluate(name)
            let count = try changes(run).count
            _ = try browser.evaluate(change)
            #expect(try ProgramRun.wait { try changes(run).count > count }, "\(run.errors)")
            #expect(try changes(run).last?["direction"] as? String == direction)
            #expect(try (browser.evaluate(name) != former) == (change == "restart()"))
            if change == "restart()" { #expect(try Polling.wait { try browser.evaluate(Self.isOnNewWay) == "true" }) }
            guard direction == "sendrecv" else { continue }
            let before = try packets()
            #expect(try Polling.wait { try packets() > before + 50 }, "\(change): \(run.errors)")
        }
        for (type, status) in [("sdp", "400"), ("trickle-ice-sdpfrag", "422"), ("json", "415")] {
            let headers = "{ 'Content-Type': 'application/\(type)' }"
            let script = "fetch(place, { method: 'PATCH', headers: \(headers), body: 'a' }).then(one => one.status)"
            #expect(try browser.evaluate(script) == status)
        }
        #expect(try browser.evaluate("peer.connectionState") == "connected")
        _ = try browser.evaluate("end()")
        #expect(run.wait() == 0, "\(run.errors)")
        let report = try ended(run)
        #expect(report["status"] as? String == "ok" && report["endedBy"] as? String == "them", "\(report)")
    }

    @Test func `a browser that hangs up ends the call`() async throws {
        let network = try await network()
        let run = try serve(["--echo"], in: network)
        let browser = try BrowserRun(page(of: run) + "=2", in: network, hears: .baresip)
        #expect(run.wait() == 0, "\(run.errors) \(browser.output)")
        let report = try ended(run)
        #expect(report["status"] as? String == "ok" && report["endedBy"] as? String == "them", "\(report)")
        let heard = try #require(report["browser"] as? [String: Any], "\(report)")
        #expect(try #require(heard["packets"] as? Int) > 20 && heard["lost"] as? Int == 0, "\(heard)")
    }
}
