import CallBasics
import SDP
import SIPTesting
import TestSupport
import Testing

@testable import SIP

/// What is done in calls over a network that loses 10 to 30 % of the datagrams, doubles some, and lets them overtake each other.
///
/// Whatever gets lost, who is in a call agrees on it, nobody is told anything twice, and nothing is left behind.
@Suite struct LossyCallTests {
    private static let seeds = thorough(1...300, each: 3)
    /// How many of them come to what was wanted, at least; in the others all tries of a request are lost.
    private static let successCount = seeds.count * 19 / 20

    @Test(arguments: [UserAgent.ChangeMethod.invite, .update])
    func `a call is held and resumed over a bad network, and both know it`(method: UserAgent.ChangeMethod) throws {
        let count = try Self.seeds.count { seed in
            var world = try LossyWorld(seed: seed)
            let call = try world.call("bob", from: 0)
            let isResumed = seed.isMultiple(of: 2)
            world.hold(true, 0, call, by: method)
            // The next wish comes while this one is under way, or later.
            try world.run(for: isResumed ? Double(seed % 5) / 4 : 100)
            if isResumed { world.hold(false, 0, call, by: method) }
            try world.run(for: 100)
            let isHeld = world.audio(0, call)?.isHeldLocally
            try world.finish()
            return isHeld == !isResumed
        }
        #expect(count >= Self.successCount)
    }

    @Test(arguments: [UserAgent.ChangeMethod.invite, .update])
    func `both hold at once over a bad network, and in the end both are as they wished`(
        method: UserAgent.ChangeMethod
    ) throws {
        let count = try Self.seeds.count { seed in
            var world = try LossyWorld(seed: seed)
            let call = try world.call("bob", from: 0)
            world.hold(true, 0, call, by: method)
            try world.hold(true, 1, #require(world.calls(1).first), by: method)
            try world.run(for: 100)
            let audio = world.audio(0, call)
            try world.finish()
            return audio?.isHeldLocally == true && audio?.isHeldRemotely == true
        }
        #expect(count >= Self.successCount)
    }

    @Test func `a session is refreshed over a bad network, and nobody is told`() throws {
        let count = try Self.seeds.count { seed in
            var world = try LossyWorld(seed: seed) { $0.sessionTimer = SessionTimer.Wishes(seconds: 90) }
            let call = try world.call("bob", from: 0)
            let toldCount = world.told.joined().count
            // Without a refresh it would end after a minute.
            try world.run(for: 200)
            let isOn = world.audio(0, call) != nil && world.told.joined().count == toldCount
            try world.finish()
            return isOn
        }
        #expect(count >= Self.successCount)
    }

    @Test(arguments: [false, true])
    func `a call is handed over by a bad network, and the new one stands`(isAttended: Bool) throws {
        let count = try Self.seeds.count { seed in
            var world = try LossyWorld(seed: seed)
            let call = try world.call("bob", from: 0)
            let former = world.calls(1)
            world.hold(true, 0, call)
            try world.transfer(call, over: isAttended ? world.call("carol", from: 0) : nil)
            try world.run(for: 200)
            let made = world.calls(1).filter { !former.contains($0) }
            let isDone = world.told[0].contains { $0.word == "transfer done(status: 200)" }
            // Who has heard so can rely on it.
            if isDone { #expect(made.count == 1 && world.calls(2).count == 1, "\(seed)") }
            let isAlone = world.calls(0).isEmpty && world.calls(1) == made
            let audio = made.first.flatMap { world.audio(1, $0) }
            try world.finish()
            return isDone && isAlone && audio?.isHeldLocally == false && audio?.isHeldRemotely == false
        }
        #expect(count >= Self.successCount)
    }
}

/// Alice (0), Bob (1) and Carol (2): who is called answers, who is asked to call somebody does, and who hears that a transfer is done
/// hangs up.
private struct LossyWorld {
    private let seed: Int
    private var network: VirtualNetwork
    /// What each was told.
    private(set) var told: [[AgentEvent]] = [[], [], []]

    init(seed: Int, _ change: (inout AgentConfiguration) -> Void = { _ in }) throws {
        self.seed = seed
        var conditions = VirtualNetwork.Conditions()
        (conditions.loss, conditions.doubling) = (Double(1 + seed / 3 % 3) / 10, 0.1)
        conditions.jitter = .milliseconds(300)
        network = VirtualNetwork(seed: UInt64(seed), conditions)
        for name in ["alice", "bob", "carol"] {
            _ = try network.add(name) { configuration in
                configuration.takesTransfers = true
                change(&configuration)
            }
        }
    }

    // MARK: What they want

    /// Calls somebody, who answers.
    mutating func call(_ name: String, from index: Int) throws -> CallHandle {
        let uri = try SIPURI("sip:\(name)@192.0.2.\(name == "bob" ? 2 : 3)")
        let wishes = UserAgent.CallWishes(session: Self.session(index))
        let handle = try network.with(index) { agent, now in try agent.call(uri, wishes, at: now) }
        try run(for: 60)
        return handle
    }

    mutating func hold(
        _ isHeld: Bool,
        _ index: Int,
        _ handle: CallHandle,
        by method: UserAgent.ChangeMethod = .invite
    ) {
        network.with(index) { agent, now in
            guard var session = agent.session(of: handle) else { return }
            session.hold = isHeld ? .silent : nil
            agent.change(handle, to: session, by: method, at: now)
        }
    }

    /// Alice hands her call over to Carol, whom she calls, or not.
    mutating func transfer(_ handle: CallHandle, over other: CallHandle?) throws {
        let carol = try SIPURI("sip:carol@192.0.2.3")
        try network.with(0) { agent, now in
            if let other { return try agent.transfer(handle, to: other, at: now) }
            try agent.transfer(handle, to: carol, at: now)
        }
    }

    private static func session(_ index: Int) -> SessionConfiguration { .plain("192.0.2.\(index + 1)") }

    // MARK: What comes of it

    /// The calls that somebody is in.
    func calls(_ index: Int) -> [CallHandle] { network.nodes[index].agent.calls.names }

    /// What was agreed on last; nil once the call is over.
    func audio(_ index: Int, _ handle: CallHandle) -> AgreedMedia? {
        network.nodes[index].agent.calls[handle]?.session?.agreed?.audio
    }

    mutating func run(for seconds: Double) throws {
        let end = network.now + .seconds(seconds)
        while let next = network.nextTime, next <= end {
            network.run(for: max(next - network.now, .zero))
            for index in network.nodes.indices {
                for event in network.takeEvents(index) { try take(event, index) }
            }
        }
        network.now = end
    }

    private mutating func take(_ event: AgentEvent, _ index: Int) throws {
        told[index].append(event)
        switch event {
        case .incoming(let handle, _):
            try network.with(index) { agent, now in try agent.answer(handle, Self.session(index), at: now) }
        case .transferRequested(let handle, _):
            _ = try network.with(index) { agent, now in
                try agent.acceptTransfer(handle, Self.session(index), at: now)
            }
        case .transfer(let handle, .done): network.with(index) { agent, now in agent.hangUp(handle, at: now) }
        default: break
        }
    }

    /// Ends all calls; each side has agreed with the other one until then, and nothing is left.
    mutating func finish() throws {
        expectAgreement()
        for index in network.nodes.indices {
            for handle in calls(index) { network.with(index) { agent, now in agent.hangUp(handle, at: now) } }
            try run(for: 50)
        }
        try run(for: 100)
        for (index, node) in network.nodes.enumerated() {
            var counts = node.agent.counts
            counts.flows = FlowCounts()
            #expect(counts == AgentCounts(), "\(seed): \(index)")
        }
        expectNoRepeat()
    }

    /// What one side of a call describes is what the other one has: the same version.
    private func expectAgreement() {
        var sessions: [Bytes: [AgreedSession]] = [:]
        for node in network.nodes {
            for call in node.agent.calls.names.compactMap({ node.agent.calls[$0] }) {
                sessions[call.callID, default: []] += [call.session?.agreed].compactMap(\.self)
            }
        }
        for pair in sessions.values where pair.count == 2 {
            #expect(pair[0].local == pair[1].remote && pair[0].remote == pair[1].local, "\(seed)")
        }
    }

    /// Each call is told once that it came, is answered, is transferred, and has ended, and never what was agreed already.
    private func expectNoRepeat() {
        for events in told {
            var (words, agreed): (Set<String>, [CallHandle: AgreedSession]) = ([], [:])
            for event in events {
                if case .agreed(let handle, let session) = event {
                    #expect(agreed.updateValue(session, forKey: handle) != session, "\(seed): \(events.map(\.word))")
                } else if let handle = event.call, let word = event.word {
                    #expect(words.insert("\(handle) \(word)").inserted, "\(seed): \(events.map(\.word))")
                }
            }
            let ended = words.count { $0.contains(" ended ") }
            #expect(ended == Set(events.compactMap(\.call)).count, "\(seed): \(events.map(\.word))")
        }
    }
}
