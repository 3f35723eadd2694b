import TestSupport
import Testing

/// Calls between hosts behind real NATs, of the kernel, in networks of their own.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .namespaces,
    .enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT")
) struct NATRealTimeTests {
    private let options = ["--srtp", "dtls", "--ice", "--stun", NATNetwork.stun]

    @Test func `two phones behind routers hear each other, each at the address that the server has seen`() async throws
    {
        let network = try await NATNetwork([.portRestricted, .portRestricted])
        let scratch = try Scratch()
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
        let path = try #require(security["path"] as? [String: String])
        #expect(path["kind"] == "srflx" && path["address"]?.hasPrefix("203.0.113.2:") == true, "\(path)")
    }
}
