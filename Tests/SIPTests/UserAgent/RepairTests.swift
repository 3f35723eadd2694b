import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Calls that have lost their way, and go on in another dialog.
@Suite struct RepairTests {
    private var test: AgentCallTests
    private let alice: CallHandle
    private let bob: CallHandle

    init() throws {
        test = try AgentCallTests()
        (alice, bob) = try test.established()
    }

    private init(_ change: (inout AgentConfiguration) -> Void) throws {
        test = try AgentCallTests(change)
        (alice, bob) = try test.established()
    }

    private init(_ test: AgentCallTests, _ parameters: String) throws {
        self.test = test
        (alice, bob) = try self.test.established(parameters)
    }

    /// An agent has another address, and tells the other side of its call.
    private mutating func move(
        _ index: Int,
        to host: String,
        _ handle: CallHandle,
        _ change: @Sendable (inout SessionConfiguration) -> Void = { _ in }
    ) throws {
        test.world.move(index, to: try #require(SocketAddress(host: host, port: 5060)))
        test.world.with(index) { agent, now in
            guard var session = agent.session(of: handle) else { return }
            session.address = host
            change(&session)
            agent.change(handle, to: session, at: now)
        }
    }

    private func dialog(_ index: Int, _ handle: CallHandle) -> DialogID? {
        test.world.nodes[index].agent.calls[handle]?.dialog?.id
    }

    private mutating func cut(_ isCut: Bool) { test.world.arrives = { _ in !isCut } }

    private mutating func end(by index: Int = 0) {
        let handle = index == 0 ? alice : bob
        test.world.with(index) { agent, now in agent.hangUp(handle, at: now) }
        test.world.run(for: .seconds(200))
        #expect(test.world.words(0) == [index == 0 ? "ended us hungUp" : "ended them hungUp"])
        #expect(test.world.words(1) == [index == 1 ? "ended us hungUp" : "ended them hungUp"])
        test.expectEmpty()
    }

    /// Both are in one dialog, another one than before.
    private func expectRepaired(from former: DialogID?) throws {
        let (hers, his) = (try #require(dialog(0, alice)), try #require(dialog(1, bob)))
        #expect(hers != former && hers.callID == his.callID)
        #expect(hers.localTag == his.remoteTag && hers.remoteTag == his.localTag)
        for node in test.world.nodes { #expect(node.agent.callOfDialog.count == 1) }
    }

    @Test mutating func `a call that may have been secured otherwise is repaired as it began`() throws {
        let former = dialog(0, alice)
        cut(true)
        try move(0, to: "192.0.2.77", alice) { session in
            (session.media[0].protocols, session.media[0].keepsKeying) = ([.dtlsSAVP, .rtpAVP], true)
        }
        test.world.run(for: .seconds(33))
        cut(false)
        test.world.run(for: .seconds(3))
        #expect(test.world.words(1) == ["agreed sendsreceives"])
        try expectRepaired(from: former)
        #expect(test.world.nodes[0].agent.calls[alice]?.session?.agreed?.audio?.transport == .rtpAVP)
    }

    @Test mutating func `a call whose change was not answered behind a move goes on in another dialog`() throws {
        let former = dialog(0, alice)
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(33))
        #expect(test.world.words(0).isEmpty)
        cut(false)
        test.world.run(for: .seconds(3))
        // The application sees one call, and hears where its sound goes.
        #expect(test.world.words(0) == ["agreed sendsreceives"])
        #expect(test.world.words(1) == ["agreed sendsreceives"])
        try expectRepaired(from: former)
        let host = test.world.nodes[1].agent.calls[bob]?.session?.agreed?.audio?.remote?.host
        #expect(host == "192.0.2.77")
        let invites = test.world.lines.filter { $0.contains("INVITE sip:bob@192.0.2.2:5060") }
        #expect(!invites.isEmpty)
        // All goes on in it: a hold, and the end.
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0) == ["agreed  held by us"])
        #expect(test.world.words(1) == ["agreed  held by them"])
        end(by: 1)
    }

    @Test mutating func `a call by ICE is repaired by one INVITE, which restarts it`() throws {
        for (index, handle, name) in [(1, bob, "bobs"), (0, alice, "hers")] {
            test.world.with(index) { agent, now in
                guard var session = agent.session(of: handle) else { return }
                session.media[0].ice = OwnICE(
                    ICECredentials(userFragment: name, password: "a-password-of-one-side-alone"),
                    isFull: true
                )
                agent.change(handle, to: session, at: now)
            }
            test.world.run(for: .seconds(2))
        }
        func session(_ index: Int, _ handle: CallHandle) -> AgreedICE.Session? {
            test.world.nodes[index].agent.calls[handle]?.session?.agreed?.audio?.ice?.session
        }
        let (former, told) = (dialog(0, alice), try #require(session(0, alice)))
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(33))
        cut(false)
        let count = test.world.lines.count
        test.world.run(for: .seconds(10))
        try expectRepaired(from: former)
        let (hers, his) = (try #require(session(0, alice)), try #require(session(1, bob)))
        #expect(hers.local == his.remote && hers.remote == his.local)
        #expect(hers.local != told.local && hers.remote != told.remote)
        #expect(test.world.lines[count...].count { $0.contains("ACK") } == 1, "\(test.world.lines[count...])")
        #expect(test.world.nodes[0].agent.calls[alice]?.wanted == nil)
    }

    @Test(arguments: ["", ";transport=tcp"])
    mutating func `what cannot leave from a new address leaves once it can, or from the next`(way: String) throws {
        self = try RepairTests(AgentCallTests(), way)
        test.world.leaves = { $0.host != "192.0.2.77" }
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(10))
        #expect(test.world.words(0).isEmpty && test.world.words(1).isEmpty)
        test.world.leaves = { _ in true }
        test.world.run(for: .seconds(1))
        #expect(test.world.words(0) == ["agreed sendsreceives"] && test.world.words(1) == ["agreed sendsreceives"])

        test.world.leaves = { $0.host != "192.0.2.78" }
        try move(0, to: "192.0.2.78", alice)
        test.world.run(for: .milliseconds(100))
        try move(0, to: "192.0.2.79", alice)
        test.world.run(for: .milliseconds(100))
        #expect(test.world.words(0) == ["agreed sendsreceives"] && test.world.words(1) == ["agreed sendsreceives"])
        end()
    }

    @Test(arguments: [true, false])
    mutating func `when nothing leaves for a minute behind a move, the call ends`(takesReplaces: Bool) throws {
        self = try RepairTests { if !takesReplaces { $0.capabilities.extensions.removeAll { $0 == "replaces" } } }
        test.world.leaves = { $0.host != "192.0.2.77" }
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(59))
        #expect(test.world.words(0).isEmpty)
        test.world.run(for: .seconds(2))
        #expect(test.world.words(0) == ["ended network timeout"])
        let bob = bob
        test.world.with(1) { agent, now in agent.hangUp(bob, at: now) }
        test.world.run(for: .seconds(200))
        test.expectEmpty()
    }

    @Test mutating func `who has moved, and is answered, hears the other side at the new address`() throws {
        let former = dialog(0, alice)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(2))
        _ = (test.world.words(0), test.world.words(1))
        #expect(dialog(0, alice) == former)
        end(by: 1)
    }

    @Test mutating func `a held call is still held behind its repair`() throws {
        let former = dialog(0, alice)
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(1))
        _ = (test.world.words(0), test.world.words(1))
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(33))
        cut(false)
        test.world.run(for: .seconds(3))
        #expect(test.world.words(0) == ["agreed  held by us"])
        #expect(test.world.words(1) == ["agreed  held by them"])
        try expectRepaired(from: former)
        end()
    }

    @Test mutating func `a call that asks by UPDATE when the network is back is repaired, too`() throws {
        let former = dialog(0, alice)
        test.world.arrives = { !$0.hasPrefix("UPDATE") }
        test.world.with(0) { agent, now in
            agent.setNetworkReachable(false, at: now)
            agent.setNetworkReachable(true, at: now)
        }
        test.world.run(for: .seconds(40))
        try expectRepaired(from: former)
        #expect(test.world.words(0) == ["agreed sendsreceives"] && test.world.words(1) == ["agreed sendsreceives"])
        end()
    }

    @Test mutating func `who does not take Replaces is lost, as before`() throws {
        self = try RepairTests { $0.capabilities.extensions.removeAll { $0 == "replaces" } }
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(33))
        #expect(test.world.words(0) == ["ended network timeout"])
        #expect(!test.world.sent.contains { String(decoding: $0.bytes, as: UTF8.self).contains("\r\nReplaces:") })
    }

    @Test mutating func `a call that did not move is not repaired`() throws {
        cut(true)
        try test.world.hold(0, alice)
        test.world.run(for: .seconds(33))
        #expect(test.world.words(0) == ["ended network timeout"])
    }

    @Test mutating func `a repair that nobody answers ends the call as before, and leaves nothing`() throws {
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(33))
        #expect(test.world.words(0).isEmpty)
        test.world.run(for: .seconds(33))
        #expect(test.world.words(0) == ["ended network timeout"])
        cut(false)
        let bob = bob
        test.world.with(1) { agent, now in agent.hangUp(bob, at: now) }
        test.world.run(for: .seconds(200))
        test.expectEmpty()
    }

    @Test mutating func `a call that the other side has ended is not repaired, and not rung`() throws {
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        let bob = bob
        test.world.with(1) { agent, now in agent.hangUp(bob, at: now) }
        test.world.run(for: .seconds(33))
        _ = test.world.words(1)
        cut(false)
        test.world.run(for: .seconds(5))
        #expect(test.world.words(0).count == 1 && test.world.words(1).isEmpty)
        test.world.run(for: .seconds(200))
        test.expectEmpty()
    }

    @Test mutating func `who hangs up while a call is repaired ends it`() throws {
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        test.world.run(for: .seconds(33))
        let alice = alice
        test.world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        #expect(test.world.words(0) == ["ended us hungUp"])
        cut(false)
        test.world.run(for: .seconds(10))
        #expect(test.world.words(1).last?.hasPrefix("ended") == true)
        test.world.run(for: .seconds(200))
        test.expectEmpty()
    }

    @Test mutating func `a BYE of the former dialog that overtakes the answer ends nothing`() throws {
        let former = dialog(0, alice)
        // No answer comes, and the BYE does.
        test.world.arrives = { !$0.hasPrefix("UPDATE") && !$0.hasPrefix("SIP/2.0 200") }
        test.world.with(0) { agent, now in
            agent.setNetworkReachable(false, at: now)
            agent.setNetworkReachable(true, at: now)
        }
        test.world.run(for: .seconds(17))
        #expect(test.world.lines.contains { $0.hasPrefix("1 BYE") })
        #expect(test.world.nodes[0].agent.calls[alice]?.repair?.isFormerOver == true)
        cut(false)
        test.world.run(for: .seconds(5))
        #expect(test.world.words(0) == ["agreed sendsreceives"] && test.world.words(1) == ["agreed sendsreceives"])
        try expectRepaired(from: former)
        end()
    }

    @Test(arguments: 0..<6)
    mutating func `both sides move, both repair, and the caller's is taken`(step: Int) throws {
        let former = dialog(0, alice)
        cut(true)
        try move(0, to: "192.0.2.77", alice)
        // Neither hears of the other's address but by the INVITE that repairs: in one or the other order, or crossing.
        test.world.run(for: .milliseconds(step * 6))
        let bob = bob
        test.world.with(1) { agent, now in
            agent.setNetworkReachable(false, at: now)
            agent.setNetworkReachable(true, at: now)
            guard var session = agent.session(of: bob) else { return }
            session.hold = .withMusic
            agent.change(bob, to: session, at: now)
        }
        test.world.run(for: .seconds(33))
        cut(false)
        test.world.run(for: .seconds(60))
        try expectRepaired(from: former)
        let words = [test.world.words(0), test.world.words(1)]
        #expect(words.allSatisfy { $0.allSatisfy { $0.hasPrefix("agreed") } && !$0.isEmpty }, "\(words)")
        end()
    }

    @Test(arguments: [false, true])
    mutating func `two that were registered find each other by their server`(bothMove: Bool) throws {
        var world = VirtualNetwork()
        _ = world.add(ServerConfiguration(domain: "example.test"))
        var accounts: [AccountHandle] = []
        for name in ["alice", "bob"] {
            let index = try world.add(name)
            let configuration = AccountConfiguration(identity: NameAddress(try SIPURI("sip:\(name)@example.test")))
            let account = world.with(index) { agent, _ in agent.addAccount(configuration) }
            try world.with(index) { agent, now in try agent.register(account, at: now) }
            accounts.append(account)
        }
        world.run(for: .seconds(1))
        let account = accounts[0]
        let alice = try world.with(0) { agent, now in
            let wishes = UserAgent.CallWishes(session: .plain("192.0.2.1"), account: account)
            return try agent.call(SIPURI("sip:bob@example.test"), wishes, at: now)
        }
        world.run(for: .milliseconds(100))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        world.run(for: .seconds(1))
        _ = (world.words(0), world.words(1))
        let former = world.nodes[0].agent.calls[alice]?.dialog?.id
        // Both go from one network to another at the same time, and know each other's former addresses alone.
        for (index, handle) in [(0, alice), (1, bob)] where index == 1 || bothMove {
            let host = "203.0.113.\(index + 1)"
            world.move(index, to: try #require(SocketAddress(host: host, port: 5060)))
            let account = accounts[index]
            world.with(index) { agent, now in
                agent.refresh(account, at: now)
                guard var session = agent.session(of: handle) else { return }
                session.address = host
                agent.change(handle, to: session, at: now)
            }
        }
        world.run(for: .seconds(80))
        let ofAccounts = ["registration", "flow"]
        let told = [world.words(0), world.words(1)].map { words in
            words.filter { word in !ofAccounts.contains { word.hasPrefix($0) } }
        }
        #expect(told.allSatisfy { !$0.isEmpty && $0.allSatisfy { $0.hasPrefix("agreed") } }, "\(told)")
        let (hers, his) = (world.nodes[0].agent.calls[alice], world.nodes[1].agent.calls[bob])
        #expect(hers?.dialog?.id.callID == his?.dialog?.id.callID)
        #expect((hers?.dialog?.id != former) == bothMove)
        #expect(hers?.session?.agreed?.audio?.remote?.host == "203.0.113.2")
        world.with(0) { agent, now in agent.hangUp(alice, at: now) }
        world.run(for: .seconds(10))
        #expect(world.words(0).last == "ended us hungUp" && world.words(1).last == "ended them hungUp")
    }
}
