import CallBasics
import SIPTesting
import Testing

@testable import CallCore
@testable import SIP

/// Calls that a push tells of, in virtual time: all that may come in another order than one hopes.
@Suite struct PushedCallTests {
    private let alice = "sip:alice@example.test"

    @Test func `a push is reported in its turn, the phone registers, the call comes, rings and is answered`() throws {
        var world = try DeskWorld()
        _ = try world.call()
        world.run(for: .seconds(1))
        #expect(world.words().isEmpty)
        let start = world.network.now
        try world.deliverPush()
        #expect(world.reports.first?.time == start)
        #expect(world.words() == ["incoming \(alice) by push"] && world.takeOrders() == [.register])
        world.run(for: .seconds(1))
        #expect(world.words() == ["updated \(alice)"])
        #expect(world.desk.entries.count == 1 && world.takeOrders().count == 1)
        let uuid = world.desk.entries[0].uuid
        world.act(.answer, on: uuid)
        world.run(for: .seconds(1))
        #expect(world.words() == ["1 fulfilled"] && world.desk[uuid]?.stage == .connected)
        world.act(.end, on: uuid)
        world.run(for: .seconds(60))
        #expect(world.words() == ["2 fulfilled"] && world.desk.entries.isEmpty && world.desk.deadline == nil)
    }

    @Test func `answered before its INVITE is here, a call is answered within 5 ms of that`() throws {
        var world = try DeskWorld()
        let call = try world.call()
        world.run(for: .seconds(1))
        try world.deliverPush()
        world.act(.answer)
        #expect(world.words() == ["incoming \(alice) by push", "1 fulfilled"])
        world.run(for: .seconds(1))
        #expect(world.words() == ["updated \(alice)"])
        let bobs = world.network.sent.filter { $0.place == .agent(1) }
        let answer = try #require(bobs.first { $0.startLine == "SIP/2.0 200 OK" && $0.isInvite })
        let invite = try #require(
            world.network.sent.last { $0.place == .server(0) && $0.startLine.hasPrefix("INVITE") }
        )
        #expect(answer.time - invite.time <= .milliseconds(15), "10 ms of them on the way")
        #expect(!bobs.contains { $0.startLine == "SIP/2.0 180 Ringing" })
        world.network.with(0) { agent, now in agent.hangUp(call, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words() == ["ended remoteEnded"])
    }

    @Test(arguments: [0.0, 0.2])
    func `declined before its INVITE is here, a call is refused when that comes`(loss: Double) throws {
        var conditions = VirtualNetwork.Conditions()
        conditions.loss = loss
        var world = try DeskWorld(seed: 5, conditions)
        _ = try world.call()
        world.run(for: .seconds(8))
        try world.deliverPush()
        world.act(.end)
        #expect(world.words().last == "1 fulfilled")
        world.run(for: .seconds(15))
        #expect(world.words().isEmpty && world.desk.entries.isEmpty)
        #expect(world.network.takeEvents(0).contains { $0.isRefusal(603) })
    }

    @Test func `without an INVITE a pushed call ends after 15 s, and one that comes later is gone`() throws {
        var world = try DeskWorld()
        world.desk.receive(PushPayload(callID: "late", from: alice), at: world.network.now)
        world.run(for: .milliseconds(14_999))
        #expect(world.words() == ["incoming \(alice) by push"])
        world.run(for: .milliseconds(2))
        #expect(world.words() == ["ended unanswered"])
        world.desk.receive(
            CallHandle(slot: 9, serial: 9),
            callID: "late",
            CallUpdate(remote: alice),
            at: world.network.now
        )
        guard case .order(.reject(_, status: 410))? = world.desk.poll() else { return _ = Issue.record("not refused") }
        #expect(world.desk.poll() == nil)
    }

    @Test func `the INVITE before the push, and a push twice, are one call`() throws {
        var world = try DeskWorld()
        _ = try world.call()
        world.run(for: .seconds(1))
        let push = try #require(world.pushes.first)
        let bob = world.accounts[1]
        world.network.with(1) { agent, now in agent.refresh(bob, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words() == ["incoming \(alice)"])
        try world.deliverPush()
        world.desk.receive(PushPayload(callID: push.callID), at: world.network.now)
        world.run(for: .seconds(1))
        #expect(world.words().isEmpty && world.desk.entries.count == 1)
        #expect(world.takeOrders().filter { $0 == .register }.count == 2)
    }

    @Test func `two calls within 100 ms are two, each with its own INVITE`() throws {
        var world = try DeskWorld()
        _ = try world.call()
        world.run(for: .milliseconds(50))
        _ = try world.call(from: 2)
        world.run(for: .milliseconds(50))
        try world.deliverPush()
        try world.deliverPush()
        world.run(for: .seconds(1))
        let told = world.words()
        #expect(
            told.filter { $0.hasSuffix("by push") }.count == 2 && told.filter { $0.hasPrefix("updated") }.count == 2
        )
        #expect(Set(world.desk.entries.map(\.update.remote)) == [alice, "sip:carol@example.test"])
        #expect(Set(world.desk.entries.map(\.uuid)).count == 2)
    }

    @Test(arguments: [false, true])
    func `a call whose Call-ID a server has changed is found by its caller, or as the oldest`(saysCaller: Bool) throws {
        var world = try DeskWorld()
        _ = try world.call()
        world.run(for: .seconds(1))
        try world.deliverPush { push in
            push = saysCaller ? PushPayload(callID: "another", from: alice + ";x=y") : PushPayload()
        }
        world.run(for: .seconds(1))
        #expect(world.words().last == "updated \(alice)" && world.desk.entries.count == 1)
    }

    @Test func `a caller who gave up before the phone woke leaves a call that ends by itself`() throws {
        var world = try DeskWorld()
        let call = try world.call()
        world.run(for: .seconds(1))
        world.network.with(0) { agent, now in agent.hangUp(call, at: now) }
        world.run(for: .seconds(1))
        try world.deliverPush()
        world.act(.answer)
        world.run(for: .seconds(16))
        #expect(world.words() == ["incoming \(alice) by push", "1 fulfilled", "ended unanswered"])
        #expect(world.desk.entries.isEmpty)
    }

    @Test func `a push of a call that has ended here is shown, and ended at once`() throws {
        var world = try DeskWorld()
        let call = try world.call()
        world.run(for: .seconds(1))
        let push = try #require(world.pushes.first)
        try world.deliverPush()
        world.run(for: .seconds(1))
        world.network.with(0) { agent, now in agent.hangUp(call, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words().last == "ended remoteEnded")
        world.desk.receive(PushPayload(callID: push.callID, from: push.from), at: world.network.now)
        world.run(for: .seconds(1))
        #expect(world.words() == ["incoming \(alice) by push", "ended remoteEnded"])
    }

    @Test(arguments: [
        ("SIP;cause=200;text=\"Call completed elsewhere\"", "answeredElsewhere"),
        ("SIP;cause=603", "declinedElsewhere"),
        ("SIP ;cause=600", "declinedElsewhere"), ("Q.850;cause=16", "remoteEnded"), ("", "remoteEnded"),
    ])
    func `a call that another phone has taken says so`(reason: String, told: String) {
        let end = CallEnd(.them, .cancelled, reason: reason.isEmpty ? nil : reason)
        #expect(ReportedEnd(end).rawValue == told)
    }

    @Test func `a call that rings for too long, or cannot be answered, is told so`() {
        let told = [486, 480].map { ReportedEnd(CallEnd(.us, .refused($0))) }
        #expect(told == [.unanswered, .failed])
        let others = [486, 408, 404].map { ReportedEnd(CallEnd(.them, .refused($0))) }
        #expect(others == [.remoteEnded, .unanswered, .failed])
    }

    @Test func `a pushed call that the screen does not show is refused as it says, also when it comes too late`() throws
    {
        var world = try DeskWorld()
        world.refusal = .busy
        _ = try world.call()
        world.run(for: .seconds(1))
        let push = try #require(world.pushes.first)
        try world.deliverPush()
        world.run(for: .seconds(2))
        #expect(world.network.takeEvents(0).contains { $0.isRefusal(486) })
        #expect(world.words() == ["incoming \(alice) by push"] && world.desk.entries.isEmpty)
        // Nothing is said of it a second time but what a push has to lead to.
        world.refusal = nil
        world.desk.receive(PushPayload(callID: push.callID, from: push.from), at: world.network.now)
        world.run(for: .seconds(1))
        #expect(world.words() == ["incoming \(alice) by push", "ended declinedElsewhere"])
        world.desk.receive(PushPayload(callID: "declined"), at: world.network.now)
        world.settle()
        world.act(.end)
        world.run(for: .seconds(21))
        let handle = CallHandle(slot: 9, serial: 9)
        world.desk.receive(handle, callID: "declined", CallUpdate(remote: alice), at: world.network.now)
        #expect(world.desk.poll() == .order(.reject(handle, status: 410)))
    }

    @Test(arguments: [CallRefusal.busy, .blocked])
    func `what the screen does not show is refused, and never rings`(refusal: CallRefusal) throws {
        var world = try DeskWorld(isAsleep: false)
        world.refusal = refusal
        _ = try world.call()
        world.run(for: .seconds(1))
        #expect(world.words() == ["incoming \(alice)"] && world.desk.entries.isEmpty)
        #expect(world.network.takeEvents(0).contains { $0.isRefusal(refusal == .busy ? 486 : 603) })
        #expect(!world.network.sent.contains { $0.startLine == "SIP/2.0 180 Ringing" })
    }

    @Test func `no more pushed calls wait than there may, and the same seed gives the same bytes`() throws {
        func story() throws -> [String] {
            var world = try DeskWorld(seed: 9)
            for number in 0..<100 {
                world.desk.receive(PushPayload(callID: "\(number)"), at: world.network.now)
                world.run(for: .milliseconds(10))
            }
            #expect(world.desk.entries.count == CallDesk.pushedCount)
            _ = try world.call()
            world.run(for: .seconds(20))
            #expect(world.desk.entries.allSatisfy { $0.stage != .pushed })
            return world.network.sent.map { String(decoding: $0.bytes, as: UTF8.self) } + world.words()
        }
        #expect(try story() == story())
    }
}

extension AgentEvent {
    fileprivate func isRefusal(_ status: Int) -> Bool {
        if case .ended(_, let end) = self { end.cause == .refused(status) } else { false }
    }
}

extension VirtualNetwork.SentMessage {
    fileprivate var isInvite: Bool { String(decoding: bytes, as: UTF8.self).contains(" INVITE\r\n") }
}
