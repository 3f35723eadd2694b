import CallBasics
import SIPTesting
import Testing

@testable import CallCore
@testable import SIP

/// The rules of a call screen, in virtual time.
@Suite struct CallDeskTests {
    private let alice = "sip:alice@example.test"
    private let carol = "sip:carol@example.test"

    /// Bob talks with Alice.
    private func talking() throws -> (world: DeskWorld, uuid: CallUUID, call: CallHandle) {
        var world = try DeskWorld(isAsleep: false)
        let call = try world.call()
        world.run(for: .seconds(1))
        let uuid = world.last
        world.act(.answer, on: uuid)
        world.run(for: .seconds(1))
        #expect(world.words() == ["incoming \(alice)", "1 fulfilled"])
        return (world, uuid, call)
    }

    @Test func `a call is reported before anything is sent, and rings when it is shown`() throws {
        var world = try DeskWorld(isAsleep: false)
        _ = try world.call()
        world.run(for: .seconds(1))
        let report = try #require(world.reports.first)
        let bobs = world.network.sent.filter { $0.place == .agent(1) && $0.time >= report.time }
        #expect(report.report.word == "incoming \(alice)")
        #expect(bobs.map(\.startLine) == ["SIP/2.0 100 Trying", "SIP/2.0 180 Ringing"])
    }

    @Test func `an own call is started, connected, and ended by the other side`() throws {
        var world = try DeskWorld(isAsleep: false)
        let uuid = CallUUID()
        world.act(.start(to: alice), on: uuid)
        #expect(world.words() == ["outgoing \(alice) connecting", "1 fulfilled"])
        world.run(for: .seconds(1))
        let handle = try #require(world.network.takeEvents(0).compactMap(\.call).last)
        try world.network.with(0) { agent, now in try agent.answer(handle, DeskWorld.session(0), at: now) }
        world.run(for: .seconds(1))
        #expect(world.words() == ["outgoing \(alice) connected"])
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words() == ["ended remoteEnded"] && world.desk.entries.isEmpty)
    }

    @Test func `a call that takes the place of another one is that one to the screen, muted and held as it was`() throws
    {
        var (world, uuid, _) = try talking()
        world.act(.setMuted(true), .setHeld(true), on: uuid)
        world.run(for: .seconds(1))
        #expect(world.words() == ["2 fulfilled", "updated \(alice) held", "3 fulfilled"])
        let former = try #require(world.desk.entries.first?.handle)
        let handle = CallHandle(slot: 9, serial: 9)
        // A push was ahead of it.
        world.desk.receive(PushPayload(callID: "c", from: carol), at: world.network.now)
        world.desk.noteReplaced(former, by: handle, callID: "c", CallUpdate(remote: carol))
        _ = world.takeOrders()
        world.desk.noteConnected(handle, at: world.network.now)
        world.desk.noteEnd(former, .failed)
        world.settle()
        #expect(
            world.words() == ["incoming \(carol) by push", "ended remoteEnded", "updated \(carol) held"]
        )
        #expect(world.takeOrders() == [.register, .mute(handle, true)])
        world.desk.noteEnd(handle, .remoteEnded)
        world.settle()
        #expect(world.words() == ["ended remoteEnded"] && world.desk.entries.isEmpty)
        // The screen has ended the former one meanwhile.
        world.desk.noteReplaced(former, by: handle, callID: "d", CallUpdate(remote: carol))
        world.settle()
        #expect(world.takeOrders() == [.hangUp(handle)])
    }

    @Test func `a call that cannot be made fails the action, one that nobody takes ends by a report`() throws {
        var world = try DeskWorld(isAsleep: false)
        world.act(.start(to: "nonsense"), on: CallUUID())
        #expect(world.words() == ["1 failed refused"] && world.desk.entries.isEmpty)
        world.act(.start(to: "sip:nobody@example.test"), on: CallUUID())
        world.run(for: .seconds(1))
        let told = world.words()
        #expect(told == ["outgoing sip:nobody@example.test connecting", "2 fulfilled", "ended unanswered"])
    }

    @Test func `a call taken back before its INVITE has left leaves nothing`() throws {
        var desk = CallDesk(seed: 1)
        let uuid = CallUUID()
        desk.perform([ProviderAction(id: 1, uuid, .start(to: alice))], at: .zero)
        guard case .order(.start(_, _, _, let ticket))? = desk.poll() else { return _ = Issue.record("not started") }
        desk.perform([ProviderAction(id: 2, uuid, .end)], at: .zero)
        let handle = CallHandle(slot: 1, serial: 1)
        desk.started(uuid, handle, callID: "a", ticket, at: .zero)
        var told: [CallDesk.Output] = []
        while let output = desk.poll() { told.append(output) }
        #expect(told.contains(.order(.hangUp(handle))) && desk.entries.isEmpty)
        let words = told.compactMap { if case .report(let report) = $0 { report.word } else { nil } }
        #expect(words == ["2 fulfilled", "1 failed unknownCall"])
    }

    @Test func `a call that took too long to begin is taken back`() {
        var desk = CallDesk(seed: 1)
        let uuid = CallUUID()
        desk.perform([ProviderAction(id: 1, uuid, .start(to: alice))], at: .zero)
        guard case .order(.start(_, _, _, let ticket))? = desk.poll() else { return _ = Issue.record("not started") }
        desk.handleTimeout(at: .zero + .seconds(5))
        let handle = CallHandle(slot: 1, serial: 1)
        desk.started(uuid, handle, callID: "a", ticket, at: .zero + .seconds(6))
        var told: [CallDesk.Output] = []
        while let output = desk.poll() { told.append(output) }
        let action = ProviderAction(id: 1, uuid, .start(to: alice))
        #expect(told == [.report(.performed(action, .failed(.timedOut))), .order(.hangUp(handle))])
        #expect(desk.entries.isEmpty && desk.deadline == nil)
    }

    @Test func `hold and resume are fulfilled when the other side has agreed`() throws {
        var (world, uuid, _) = try talking()
        world.act(.setHeld(true), on: uuid)
        #expect(world.words().isEmpty)
        world.run(for: .seconds(1))
        #expect(world.words() == ["updated \(alice) held", "2 fulfilled"])
        world.act(.setHeld(true), on: uuid)
        #expect(world.words() == ["3 fulfilled"])
        world.act(.setHeld(false), on: uuid)
        world.run(for: .seconds(1))
        #expect(world.words() == ["updated \(alice)", "4 fulfilled"])
    }

    @Test func `what is wanted of a call that is being answered waits until it is`() throws {
        var world = try DeskWorld(isAsleep: false)
        _ = try world.call()
        world.run(for: .seconds(1))
        let uuid = world.last
        world.act(.answer, on: uuid)
        world.act(.setHeld(true), .playDTMF("1"), on: uuid)
        #expect(world.words() == ["incoming \(alice)", "1 fulfilled"])
        world.run(for: .seconds(1))
        #expect(world.words() == ["updated \(alice) held", "2 fulfilled", "3 fulfilled"])
    }

    @Test func `an action that takes too long has failed, once`() throws {
        var (world, uuid, _) = try talking()
        world.network.arrives = { _ in false }
        world.act(.setHeld(true), on: uuid)
        world.run(for: .milliseconds(4999))
        #expect(world.words().isEmpty)
        world.run(for: .milliseconds(2))
        #expect(world.words() == ["2 failed timedOut"])
        world.network.arrives = { _ in true }
        world.run(for: .seconds(10))
        #expect(world.words() == ["updated \(alice) held"])
    }

    @Test func `who talks is held before another call begins, or waits two seconds at most`() throws {
        var (world, first, _) = try talking()
        world.act(.start(to: carol), on: CallUUID())
        world.run(for: .seconds(1))
        #expect(world.words() == ["updated \(alice) held", "outgoing \(carol) connecting", "2 fulfilled"])
        let second = world.last
        world.act(.end, on: second)
        world.act(.setHeld(false), on: first)
        world.run(for: .seconds(1))
        world.network.arrives = { !$0.hasPrefix("INVITE sip:alice") }
        _ = world.words()
        let start = world.network.now
        world.act(.start(to: carol), on: CallUUID())
        world.run(for: .milliseconds(1999))
        #expect(world.words().isEmpty)
        world.run(for: .milliseconds(2))
        #expect(world.reports.first.map { $0.time - start } == .seconds(2))
        #expect(world.words() == ["outgoing \(carol) connecting", "5 fulfilled"])
    }

    @Test func `a second call is shown at once, and answering it holds or ends the first`() throws {
        for ends in [false, true] {
            var (world, first, _) = try talking()
            _ = try world.call(from: 2)
            world.run(for: .seconds(1))
            #expect(world.words() == ["incoming \(carol)"])
            let second = try #require(world.desk.entries.last).uuid
            var transaction = [ProviderAction(id: 10, second, .answer)]
            if ends { transaction.insert(ProviderAction(id: 9, first, .end), at: 0) }
            world.desk.perform(transaction, at: world.network.now)
            world.settle()
            world.run(for: .seconds(1))
            let expected = ends ? ["9 fulfilled", "10 fulfilled"] : ["updated \(alice) held", "10 fulfilled"]
            #expect(world.words() == expected)
            #expect(world.desk[second]?.stage == .connected && (world.desk[first] == nil) == ends)
        }
    }

    @Test(arguments: [false, true])
    func `of two calls that are answered at once the first is held, unless both are to talk`(areGrouped: Bool) throws {
        var world = try DeskWorld(isAsleep: false)
        for index in [0, 2] {
            _ = try world.call(from: index)
            world.run(for: .seconds(1))
        }
        #expect(world.words() == ["incoming \(alice)", "incoming \(carol)"])
        let calls = world.desk.entries.map(\.uuid)
        for call in calls { world.act(.answer, on: call) }
        if areGrouped { world.act(.setGroup(with: calls[1]), on: calls[0]) }
        #expect(world.words() == ["1 fulfilled", "2 fulfilled"])
        world.run(for: .seconds(1))
        let grouped = ["updated \(alice) grouped", "updated \(carol) grouped", "3 fulfilled"]
        #expect(world.words() == (areGrouped ? grouped : ["updated \(alice) held"]))
        #expect(world.desk.entries.allSatisfy { $0.stage == .connected })
    }

    @Test(arguments: [false, true])
    func `a call that is answered there while this side talks in a later one is held`(isLaterOver: Bool) throws {
        var world = try DeskWorld(isAsleep: false)
        world.act(.start(to: alice), on: CallUUID())
        world.run(for: .seconds(1))
        let handle = try #require(world.network.takeEvents(0).compactMap(\.call).last)
        _ = try world.call(from: 2)
        world.run(for: .seconds(1))
        let later = world.last
        world.act(.answer, on: later)
        world.run(for: .seconds(1))
        if isLaterOver { world.act(.end, on: later) }
        _ = world.words()
        try world.network.with(0) { agent, now in try agent.answer(handle, DeskWorld.session(0), at: now) }
        world.run(for: .seconds(1))
        let connected = ["outgoing \(alice) connected"]
        #expect(world.words() == (isLaterOver ? connected : connected + ["updated \(alice) held"]))
    }

    @Test func `who hangs up does not wait for what is under way`() throws {
        var (world, uuid, _) = try talking()
        world.network.arrives = { !$0.hasPrefix("INVITE") }
        world.act(.setHeld(true), on: uuid)
        world.act(.end, on: uuid)
        #expect(world.words() == ["3 fulfilled", "2 failed unknownCall"] && world.desk.entries.isEmpty)
        world.run(for: .seconds(60))
        #expect(world.words().isEmpty && world.network.nodes[1].agent.counts.calls == 0)
    }

    @Test func `one identifier is one call`() throws {
        var world = try DeskWorld(isAsleep: false)
        let uuid = CallUUID()
        world.act(.start(to: alice), .start(to: carol), on: uuid)
        world.run(for: .seconds(3))
        let told = world.words()
        #expect(told == ["outgoing \(alice) connecting", "1 fulfilled", "2 failed notNow"])
        #expect(world.desk.entries.count == 1)
    }

    @Test func `of a transaction all is done or nothing`() throws {
        var (world, uuid, _) = try talking()
        let other = CallUUID()
        world.desk.perform(
            [ProviderAction(id: 5, uuid, .setHeld(true)), ProviderAction(id: 6, other, .end)],
            at: world.network.now
        )
        world.run(for: .seconds(1))
        #expect(world.words() == ["5 failed transactionRefused", "6 failed unknownCall"])
        #expect(world.desk[uuid]?.update.isHeld == false)
        #expect(!world.takeOrders().contains { if case .hold = $0 { true } else { false } })
    }

    @Test func `what does not fit is refused, and after the end nothing is known`() throws {
        var (world, uuid, call) = try talking()
        world.act(.answer, on: uuid)
        world.act(.start(to: carol), on: uuid)
        #expect(world.words() == ["2 failed notNow", "3 failed notNow"])
        world.act(.setMuted(true), .playDTMF("1"), on: uuid)
        #expect(world.words() == ["4 fulfilled", "5 fulfilled"])
        let handle = try #require(world.desk[uuid]?.handle)
        guard case .keys(handle, "1", _)? = world.takeOrders().last else { return _ = Issue.record("no keys") }
        // What is under way when the call ends fails.
        world.network.arrives = { !$0.hasPrefix("INVITE") }
        world.act(.setHeld(true), on: uuid)
        world.network.with(0) { agent, now in agent.hangUp(call, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words() == ["ended remoteEnded", "6 failed unknownCall"])
        world.act(.end, on: uuid)
        #expect(world.words() == ["7 failed unknownCall"])
    }

    @Test func `a microphone that is muted before the answer is so after it`() throws {
        var world = try DeskWorld(isAsleep: false)
        _ = try world.call()
        world.run(for: .seconds(1))
        world.act(.setMuted(true), .answer)
        world.run(for: .seconds(1))
        let handle = try #require(world.desk.entries.first?.handle)
        #expect(world.takeOrders().contains(.mute(handle, true)))
    }

    @Test func `a reset ends all calls, untold`() throws {
        var (world, _, _) = try talking()
        _ = try world.call(from: 2)
        world.run(for: .seconds(1))
        world.act(.setHeld(true), on: world.desk.entries[0].uuid)
        _ = world.words()
        world.desk.reset()
        world.run(for: .seconds(60))
        #expect(world.words().isEmpty && world.desk.entries.isEmpty && world.desk.deadline == nil)
        #expect(world.network.nodes[1].agent.counts.calls == 0)
        let told = world.network.takeEvents(2).compactMap { if case .ended(_, let end) = $0 { end.cause } else { nil } }
        #expect(told == [.refused(603)])
    }

    @Test func `each action has one outcome, whatever happens`() throws {
        for seed in UInt64(1)...40 {
            var conditions = VirtualNetwork.Conditions()
            conditions.loss = 0.1
            var world = try DeskWorld(seed: seed, conditions)
            var generator = SeededGenerator(seed: seed)
            var count: UInt64 = 0
            var outcomes: [UInt64: Int] = [:]
            func note() {
                for entry in world.reports {
                    if case .performed(let action, _) = entry.report { outcomes[action.id, default: 0] += 1 }
                }
            }
            for _ in 0..<60 {
                switch generator.next() % 8 {
                case 0: _ = try world.call(from: generator.next() % 2 == 0 ? 0 : 2)
                case 1: if !world.pushes.isEmpty { try world.deliverPush() }
                default:
                    let calls = world.desk.entries.map(\.uuid) + [CallUUID(&generator)]
                    let kinds: [ProviderAction.Kind] = [
                        .answer, .end, .setHeld(true), .setHeld(false), .start(to: alice), .setMuted(true), .answer,
                    ]
                    var transaction: [ProviderAction] = []
                    for _ in 0...(generator.next() % 3) {
                        count += 1
                        let call = calls[Int(generator.next() % UInt64(calls.count))]
                        let kind = kinds[Int(generator.next() % UInt64(kinds.count))]
                        transaction.append(ProviderAction(id: count, call, kind))
                    }
                    world.desk.perform(transaction, at: world.network.now)
                    world.settle()
                }
                world.run(for: .milliseconds(Int64(generator.next() % 1500)))
                note()
                _ = world.words()
            }
            world.run(for: .seconds(20))
            note()
            #expect(outcomes == Dictionary(uniqueKeysWithValues: (1...max(count, 1)).map { ($0, 1) }), "seed \(seed)")
        }
    }

    @Test func `a call that was answered before another screen refuses it is ended`() throws {
        var (world, uuid, _) = try talking()
        world.desk.note(uuid, .busy)
        world.settle()
        world.run(for: .seconds(1))
        #expect(world.desk.entries.isEmpty && world.network.nodes[1].agent.counts.calls == 0)
    }
}
