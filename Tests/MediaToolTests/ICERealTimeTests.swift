import TestSupport
import Testing

/// Calls whose way ICE finds, in networks of their own: behind NATs of the kernel, and with linphonec.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .namespaces
) struct ICERealTimeTests {
    @Test(.enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT"))
    func `two phones behind routers hear each other, each at the address that the server has seen`() async throws {
        let network = try await NATNetwork([.portRestricted, .portRestricted])
        let path = try Self.call(in: network, ["--stun", NATNetwork.stun] + NATNetwork.relay)
        #expect(path["kind"] == "srflx" && path["address"]?.hasPrefix("203.0.113.2:") == true, "\(path)")
        #expect(network.relayCounts.given == 4 && network.hasAllBack(), "\(network.relayCounts)")
    }

    @Test(.enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT"))
    func `where no way leads from one phone to the other, they hear each other by a relay`() async throws {
        let network = try await NATNetwork([.symmetric, .symmetric])
        let path = try Self.call(in: network, NATNetwork.relay)
        #expect(path["kind"] == "relay", "\(path)")
        #expect(network.relayCounts.given == 4 && network.hasAllBack(), "\(network.relayCounts)")
    }

    @Test(.enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT"))
    func `where no UDP gets out they hear each other by a relay that is reached by TCP`() async throws {
        let network = try await NATNetwork([.blocked, .symmetric])
        let path = try Self.call(in: network, NATNetwork.relay)
        #expect(path["kind"] == "relay", "\(path)")
        #expect(network.hasAllBack(), "\(network.relayCounts)")
    }

    @Test(.enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT"))
    func `where no UDP gets out on either side they hear each other by a relay that is reached by TLS`() async throws {
        let network = try await NATNetwork([.blocked, .blocked])
        let path = try Self.call(in: network, NATNetwork.securedRelay)
        #expect(path["kind"] == "relay", "\(path)")
        #expect(network.relayCounts.given == 4 && network.hasAllBack(), "\(network.relayCounts)")
    }

    /// Has Alice call Bob, who sends back what he hears.
    ///
    /// - Returns: What her report says of the way.
    private static func call(in network: NATNetwork, _ servers: [String]) throws -> [String: String] {
        let scratch = try Scratch()
        let options = ["--srtp", "dtls", "--ice"] + servers
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16_000)
        let answer = ["sip", "answer", "--echo", "--calls", "1"] + options
        let bob = try network.run(answer, as: "bob", on: network.bob)
        try #require(bob.printed(#""event":"registered""#), "\(bob.output) \(bob.errors)")
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav"), "--seconds", "2"]
        let call = ["sip", "call", "sip:bob@example.test"] + files + options
        let alice = try network.run(call, as: "alice", on: network.alice)
        #expect(alice.wait() == 0 && bob.wait() == 0, "\(alice.errors) \(bob.errors)")
        #expect(try Tone.ours.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        let security = try #require(alice.json()["srtp"] as? [String: Any])
        return try #require(security["path"] as? [String: String])
    }

    @Test(.enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT"))
    func `the doctor tells a NAT that keeps one port from one that does not, and what a relay says`() async throws {
        let network = try await NATNetwork([.portRestricted, .symmetric])
        let doctor = ["doctor", "--stun", NATNetwork.stun, "--stun", NATNetwork.otherStun] + NATNetwork.relay
        let others = ["MEDIA_TOOL_TURN_PASSWORD": "another"]
        // Beside each other: each looks at the whole machine.
        let runs = [
            (try network.run(doctor, on: network.alice), "keeps one port for all"),
            (try network.run(doctor, on: network.bob), "(symmetric)"),
            (try network.run(["doctor"] + NATNetwork.securedRelay, on: network.alice), "a connection (TLS)"),
            (
                try network.run(["doctor"] + NATNetwork.securedRelay.prefix(2), on: network.alice),
                "nobody that is trusted proves its certificate"
            ),
            (
                try network.run(["doctor"] + NATNetwork.relay, on: network.alice, password: others),
                "does not take the user or the password"
            ),
        ]
        for (run, words) in runs {
            run.wait()
            #expect(run.output.contains(words), "\(run.output) \(run.errors)")
        }
        for (run, _) in runs.prefix(2) {
            #expect(run.output.contains("(TURN) gives 198.51.100.1:"), "\(run.output) \(run.errors)")
        }
    }

    @Test(.enabled(if: LinphoneRun.program != nil, "needs linphonec (Debian: linphone-cli)"))
    func `linphonec, which has RTCP on a port of its own, finds the way with us`() async throws {
        let network = try await NetworkNamespace.make()
        try network.ip("link add a0 type veth peer name b0; link set a0 up; link set b0 up")
        try network.ip("address add 192.0.2.1/24 dev a0; route add default via 192.0.2.9 dev a0")
        let (linphone, scratch) = (
            try LinphoneRun(usesDTLS: true, withICEIn: network, host: "192.0.2.1"), try Scratch()
        )
        try Tone.ours.write(to: scratch.file("tone.wav"), rate: 16_000)
        let files = ["--input", scratch.file("tone.wav"), "--output", scratch.file("heard.wav"), "--seconds", "2"]
        let call = [ToolRun.path, "sip", "call", linphone.uri, "--local", "192.0.2.1:0", "--srtp", "dtls", "--ice"]
        let run = try ToolRun(network.command.dropFirst() + call + files + ["--json"], program: network.command[0])
        #expect(run.wait() == 0, "\(run.errors) \(linphone.output)")
        let security = try #require(run.json()["srtp"] as? [String: Any])
        #expect((security["path"] as? [String: String])?["kind"] == "host", "\(security)")
        #expect(try Tone.linphone.tenths(of: scratch.file("heard.wav")).count { $0 } >= 10)
        #expect(try linphone.heard(Tone.ours) >= 5)
    }
}
