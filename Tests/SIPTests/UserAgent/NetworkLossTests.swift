import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Calls and accounts while there is no network, and when it is back.
@Suite struct NetworkLossTests {
    private var test: AgentCallTests
    private let alice: CallHandle
    private let bob: CallHandle

    init() throws {
        test = try AgentCallTests()
        (alice, bob) = try test.established()
    }

    private mutating func setNetwork(_ isThere: Bool) {
        test.world.arrives = { _ in isThere }
        test.world.with(0) { agent, now in agent.setNetworkReachable(isThere, at: now) }
    }

    private mutating func end() {
        let alice = alice
        test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        test.world.run(for: .seconds(120))
        test.expectEmpty()
    }

    @Test mutating func `a call outlives the network for a minute, and what is wanted of it waits`() throws {
        setNetwork(false)
        let count = test.world.sent.count
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(59))
        #expect(test.world.words(0).isEmpty && test.world.sent.count == count)
        setNetwork(true)
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed  held by us"])
        #expect(test.world.words(1) == ["agreed  held by them"])
        end()
    }

    @Test mutating func `after a minute it ends, and nothing is left`() {
        setNetwork(false)
        test.world.run(for: .milliseconds(59_999))
        #expect(test.world.words(0).isEmpty)
        test.world.run(for: .milliseconds(2))
        let told = test.world.words(0)
        #expect(told.count == 1 && told.first?.hasPrefix("ended network failed") == true)
        let bob = bob
        test.world.with(1) { agent, now in agent.hangUp(bob, at: now) }
        test.world.run(for: .seconds(120))
        test.expectEmpty()
        setNetwork(true)
        #expect(test.world.nodes[0].agent.networkDeadline == nil)
    }

    @Test mutating func `a change that was under way is asked for again`() throws {
        test.world.arrives = { _ in false }
        try test.world.hold(0, alice)
        test.world.run(for: .milliseconds(100))
        setNetwork(false)
        test.world.run(for: .seconds(40))
        #expect(test.world.words(0).isEmpty)
        setNetwork(true)
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed  held by us"])
        end()
    }

    @Test mutating func `a key, and a transfer, that were under way end no call`() throws {
        test.world.arrives = { _ in false }
        let (alice, target) = (alice, try SIPURI("sip:carol@192.0.2.3"))
        try test.world.with(0) { agent, now in
            try agent.send(DTMFRelay("5", duration: .milliseconds(100)), in: alice, at: now)
            try agent.transfer(alice, to: target, at: now)
        }
        test.world.run(for: .milliseconds(100))
        setNetwork(false)
        #expect(throws: SIPError.self) {
            try test.world.with(0) { agent, now in
                try agent.send(DTMFRelay("6", duration: .milliseconds(100)), in: alice, at: now)
            }
        }
        test.world.run(for: .seconds(40))
        #expect(test.world.words(0) == ["transfer failed(status: 408)"])
        setNetwork(true)
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0).isEmpty)
        end()
    }

    @Test(arguments: [false, true])
    mutating func `when it is back each call asks whether the other side is still there`(isGone: Bool) {
        setNetwork(false)
        let bob = bob
        if isGone { test.world.with(1) { agent, now in agent.hangUp(bob, at: now) } }
        test.world.run(for: .seconds(50))
        _ = test.world.words(1)
        let count = test.world.sent.count
        setNetwork(true)
        test.world.run(for: .seconds(2))
        let asked = test.world.lines.dropFirst(count).filter { $0.hasPrefix("0 UPDATE") }
        #expect(asked.count == 1)
        let told = test.world.words(0)
        #expect(told == (isGone ? ["ended network timeout"] : []))
        if isGone { test.world.run(for: .seconds(120)) } else { end() }
    }

    @Test mutating func `a session is not refreshed into the void`() throws {
        test = try AgentCallTests { $0.sessionTimer = SessionTimer.Wishes(seconds: 90) }
        self = try Self(test)
        setNetwork(false)
        let count = test.world.sent.count
        test.world.run(for: .seconds(50))
        #expect(test.world.lines.dropFirst(count).allSatisfy { !$0.hasPrefix("0 ") } && test.world.words(0).isEmpty)
        setNetwork(true)
        test.world.run(for: .seconds(300))
        #expect(test.world.words(0).isEmpty && test.world.words(1).isEmpty)
        end()
    }

    private init(_ test: AgentCallTests) throws {
        self.test = test
        (alice, bob) = try self.test.established()
    }

    @Test func `an account is not registered without a network, and is at once with it`() throws {
        var world = VirtualNetwork()
        _ = world.add(ServerConfiguration(domain: "example.test"))
        _ = try world.add("alice")
        let configuration = AccountConfiguration(identity: NameAddress(try SIPURI("sip:alice@example.test")))
        let account = world.with(0) { agent, _ in agent.addAccount(configuration) }
        try world.with(0) { agent, now in try agent.register(account, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0).last == "registration ok")
        world.with(0) { agent, now in agent.setNetworkReachable(false, at: now) }
        #expect(world.words(0) == ["registration none"])
        let count = world.sent.count
        world.with(0) { agent, now in agent.refresh(account, at: now) }
        world.run(for: .seconds(7200))
        #expect(world.sent.count == count && world.words(0).isEmpty)
        world.with(0) { agent, now in agent.setNetworkReachable(true, at: now) }
        world.run(for: .milliseconds(100))
        #expect(world.words(0) == ["registration progress", "registration ok"])
    }
}
