import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Bytes that nobody should send, to agents in each state of a call.
@Suite("A user agent under hostile bytes")
struct HostileAgentTests {
    /// All datagrams of a call with hold, keys, and its end.
    private func wholeCall() throws -> [VirtualNetwork.SentMessage] {
        var test = try AgentCallTests()
        let calls = try test.established()
        try test.world.hold(0, calls.alice)
        test.world.run(for: .seconds(1))
        try test.world.with(1) { agent, now in try agent.send(DTMFRelay("5"), in: calls.bob, at: now) }
        test.world.run(for: .seconds(1))
        test.world.with(0) { agent, now in agent.hangUp(calls.alice, at: now) }
        test.world.run(for: .seconds(60))
        return test.world.sent
    }

    /// Changes a byte, cuts, doubles a part, or takes one out.
    @Test(
        "The messages of a call, each changed in many ways, in each state of another: nothing is left behind",
        arguments: 0..<4
    )
    func mutations(_ seed: Int) throws {
        let wire = try wholeCall()
        var generator = SeededGenerator(seed: UInt64(seed))
        for round in 0..<25 {
            var test = try AgentCallTests()
            let alice = try test.call()
            let strangers = try #require(SocketAddress(host: "198.51.100.9", port: 5060))
            func flood(_ world: inout VirtualNetwork) {
                for message in wire {
                    guard case .agent(let node) = message.place else { continue }
                    let changed = message.bytes.mutated(&generator)
                    let from = generator.next() % 2 == 0 ? world.nodes[node].address : strangers
                    let to = world.nodes[1 - node].address
                    world.with(1 - node) { agent, now in
                        agent.handle(.datagram(changed, local: to, remote: from), at: now)
                    }
                }
            }
            flood(&test.world)
            test.world.run(for: .milliseconds(50))
            flood(&test.world)
            for bob in test.world.nodes[1].agent.calls.names {
                _ = try? test.world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
            }
            test.world.run(for: .milliseconds(200))
            flood(&test.world)
            test.world.run(for: .seconds(1))
            test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
            for node in 0..<2 {
                for handle in test.world.nodes[node].agent.calls.names {
                    test.world.with(node) { agent, now in agent.hangUp(handle, at: now) }
                }
            }
            test.world.run(for: .seconds(300))
            test.expectEmpty()
            #expect(test.world.nodes[0].agent.calls.count == 0, "round \(round)")
        }
    }

    @Test("Random bytes are counted and make nothing")
    func randomBytes() throws {
        var world = VirtualNetwork()
        _ = try world.add("alice")
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            let count = Int.random(in: 0...300, using: &generator)
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            let address = world.nodes[0].address
            world.with(0) { agent, now in agent.handle(.datagram(bytes, local: address, remote: address), at: now) }
        }
        #expect(world.sent.isEmpty)
        #expect(world.nodes[0].agent.counts == AgentCounts())
    }
}

extension [UInt8] {
    /// The bytes with one change: another byte, some fewer, some twice, or cut.
    func mutated(_ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = self
        let place = Int.random(in: bytes.indices, using: &generator)
        let end = Swift.min(place + Int.random(in: 1...40, using: &generator), bytes.count)
        switch generator.next() % 4 {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: generator.next())
        case 1: bytes.removeSubrange(place..<end)
        case 2: bytes.insert(contentsOf: bytes[place..<end], at: place)
        default: bytes.removeSubrange(place...)
        }
        return bytes
    }
}
