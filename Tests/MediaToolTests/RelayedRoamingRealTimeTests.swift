import TestSupport
import Testing

/// Calls of phones that hear each other by a relay alone, when the way to it, or the relay, is lost.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .namespaces,
    .enabled(if: NATNetwork.isPossible, "needs nftables, coturn and the right to make a network with a NAT")
) struct RelayedRoamingRealTimeTests {
    private let network: NATNetwork
    private let folder: Scratch
    private let phones: [PhoneRun]

    init() async throws {
        (network, folder) = (try await NATNetwork([.symmetric, .symmetric]), try Scratch())
        let options = ["--srtp", "dtls", "--ice"] + NATNetwork.relay + ["--proxy", "sip:\(NATNetwork.stun);lr"]
        phones = try [("alice", network.alice), ("bob", network.bob)].map { [folder] name, host in
            try PhoneRun(
                folder,
                at: nil,
                in: host,
                options + ["--account", "sip:\(name)@example.test"],
                environment: NATNetwork.password
            )
        }
        for phone in phones { try #require(phone.prints(#""event":"registered""#), "\(phone.run.errors)") }
        try phones[0].say("call sip:bob@example.test")
        try #require(phones[1].prints(#""event":"incoming""#), "\(phones[0].story)")
        try phones[1].say("answer")
        try expectSoundBothWays()
    }

    private func expectSoundBothWays(sourceLocation: SourceLocation = #_sourceLocation) throws {
        for phone in phones {
            let former = try #require(try phone.received(moreThan: 0), "\(phone.story)", sourceLocation: sourceLocation)
            let received = try phone.received(moreThan: former + 20)
            try #require(received != nil, "\(phone.story)", sourceLocation: sourceLocation)
        }
    }

    private func close() throws {
        for phone in phones {
            try phone.say("quit")
            #expect(phone.ends() == 0, "\(phone.run.errors)")
        }
    }

    @Test func `at another address the phone asks the relay anew`() throws {
        let given = network.relayCounts.given
        let begin = ContinuousClock.now
        try network.moveAlice()
        #expect(phones[0].prints(#""event":"moved","local":"192.168.1.3:"#), "\(phones[0].story)")
        try expectSoundBothWays()
        // Before it would be looked for, since nobody answers.
        #expect(ContinuousClock.now - begin < .seconds(10) && network.relayCounts.given > given)
        try close()
    }

    @Test func `when the relay has forgotten the call, both ask it anew, and hear each other again`() throws {
        try network.replaceRelay()
        try expectSoundBothWays()
        #expect(network.relayCounts.given > 0)
        try close()
    }
}
