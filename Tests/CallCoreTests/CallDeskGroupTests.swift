import CallBasics
import SIPTesting
import Testing

@testable import CallCore
@testable import SIP

/// The rules of the conference, in virtual time: Bob has calls with Alice and Carol.
@Suite struct CallDeskGroupTests {
    private let alice = "sip:alice@example.test"
    private let carol = "sip:carol@example.test"

    private struct Calls {
        var world: DeskWorld
        let (first, second): (CallUUID, CallUUID)
        let handles: [CallHandle]
    }

    /// Bob holds Alice, and talks with Carol.
    private func talking() throws -> Calls {
        var world = try DeskWorld(isAsleep: false)
        var uuids: [CallUUID] = []
        for index in [0, 2] {
            _ = try world.call(from: index)
            world.run(for: .seconds(1))
            uuids.append(world.last)
            world.act(.answer, on: world.last)
            world.run(for: .seconds(1))
        }
        _ = (world.words(), world.takeOrders())
        let handles = uuids.compactMap { world.desk[$0]?.handle }
        #expect(handles.count == 2 && world.desk[uuids[0]]?.update.isHeld == true)
        return Calls(world: world, first: uuids[0], second: uuids[1], handles: handles)
    }

    /// Both are in the conference.
    private func grouped() throws -> Calls {
        var calls = try talking()
        calls.world.act(.setGroup(with: calls.second), on: calls.first)
        calls.world.run(for: .seconds(1))
        #expect(
            calls.world.words() == [
                "updated \(alice)", "updated \(alice) grouped", "updated \(carol) grouped", "3 fulfilled",
            ]
        )
        #expect(Set(calls.world.grouped) == Set(calls.handles))
        _ = calls.world.takeOrders()
        return calls
    }

    /// The requests that Bob has sent since `count` messages.
    private func requests(_ world: DeskWorld, after count: Int) -> [String] {
        world.network.sent.dropFirst(count).filter { $0.place == .agent(1) }
            .compactMap { $0.startLine.split(separator: " ").first.map(String.init) }.filter { $0 != "SIP/2.0" }
    }

    @Test func `who is held talks again before he comes into the conference`() throws { _ = try grouped() }

    @Test func `who takes the place of one has that one's seat in the conference`() throws {
        var calls = try grouped()
        let handle = CallHandle(slot: 9, serial: 9)
        calls.world.desk.noteReplaced(calls.handles[0], by: handle, callID: "d", CallUpdate(remote: "sip:dave@b"))
        calls.world.settle()
        #expect(calls.world.words() == ["updated sip:dave@b grouped"])
        #expect(calls.world.takeOrders().isEmpty)
    }

    @Test func `to hold one is to leave all of them, of which nobody is told`() throws {
        var calls = try grouped()
        let count = calls.world.network.sent.count
        calls.world.act(.setHeld(true), on: calls.first)
        #expect(
            calls.world.words() == ["updated \(alice) grouped held", "updated \(carol) grouped held", "4 fulfilled"]
        )
        #expect(!calls.world.isPresentInGroup)
        calls.world.act(.setHeld(false), on: calls.second)
        #expect(calls.world.words() == ["updated \(alice) grouped", "updated \(carol) grouped", "5 fulfilled"])
        #expect(calls.world.isPresentInGroup)
        calls.world.run(for: .seconds(1))
        #expect(requests(calls.world, after: count).isEmpty)
    }

    @Test(arguments: [false, true]) func `the last one talks on alone`(isEndedHere: Bool) throws {
        var calls = try grouped()
        if isEndedHere {
            calls.world.act(.end, on: calls.first)
        } else {
            let handle = try #require(calls.world.network.takeEvents(0).compactMap(\.call).last)
            calls.world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        }
        calls.world.run(for: .seconds(1))
        let told = calls.world.words()
        #expect(told.contains("updated \(carol)") && told.count == 2)
        #expect(
            calls.world.desk[calls.second]?.update.isGrouped == false && !calls.world.grouped.contains(calls.handles[1])
        )
        // It is held as any other.
        let count = calls.world.network.sent.count
        calls.world.act(.setHeld(true), on: calls.second)
        calls.world.run(for: .seconds(1))
        #expect(calls.world.words().first == "updated \(carol) held")
        #expect(requests(calls.world, after: count) == ["INVITE", "ACK"])
    }

    @Test func `the last one stays held while this side is away, and talks when it is back`() throws {
        var calls = try grouped()
        calls.world.act(.setHeld(true), on: calls.first)
        calls.world.act(.end, on: calls.first)
        _ = calls.world.words()
        #expect(calls.world.desk[calls.second]?.update.isHeld == true && !calls.world.isPresentInGroup)
        calls.world.act(.setHeld(false), on: calls.second)
        let told = calls.world.words()
        #expect(told == ["updated \(carol) grouped", "updated \(carol)", "6 fulfilled"])
        #expect(calls.world.isPresentInGroup && calls.world.grouped.isEmpty == false)
        calls.world.act(.end, on: calls.second)
        #expect(calls.world.desk.isAttending)
    }

    @Test func `another call holds the conference, and comes into it`() throws {
        var calls = try grouped()
        let third = CallUUID()
        calls.world.act(.start(to: alice), on: third)
        #expect(
            calls.world.words()
                == [
                    "updated \(alice) grouped held", "updated \(carol) grouped held",
                    "outgoing \(alice) connecting", "4 fulfilled",
                ]
        )
        calls.world.run(for: .seconds(1))
        let handle = try #require(calls.world.network.takeEvents(0).compactMap(\.call).last)
        try calls.world.network.with(0) { agent, now in try agent.answer(handle, DeskWorld.session(0), at: now) }
        calls.world.run(for: .seconds(1))
        _ = calls.world.words()
        calls.world.act(.setGroup(with: calls.second), on: third)
        #expect(calls.world.isPresentInGroup && calls.world.grouped.count == 3)
        #expect(
            calls.world.words()
                == ["updated \(alice) grouped", "updated \(carol) grouped", "updated \(alice) grouped", "5 fulfilled"]
        )
        // One is talked with alone, and the others go on without this side.
        calls.world.act(.setGroup(with: nil), on: third)
        #expect(!calls.world.isPresentInGroup && calls.world.grouped.count == 2)
        #expect(calls.world.desk[third]?.update.isHeld == false)
        #expect(
            calls.world.desk[calls.first]?.update.isHeld == true
                && calls.world.desk[calls.second]?.update.isHeld == true
        )
    }

    @Test func `who is taken out of two talks alone, and the other one is held`() throws {
        var calls = try grouped()
        calls.world.act(.setGroup(with: nil), on: calls.second)
        calls.world.run(for: .seconds(1))
        #expect(
            calls.world.words() == ["updated \(carol)", "updated \(alice)", "4 fulfilled", "updated \(alice) held"]
        )
        #expect(calls.world.grouped.isEmpty)
        calls.world.act(.setGroup(with: nil), on: calls.second)
        #expect(calls.world.words() == ["5 fulfilled"])
    }

    @Test func `what cannot be grouped fails, and all is as before`() throws {
        var calls = try talking()
        calls.world.act(.setGroup(with: calls.first), on: calls.first)
        calls.world.act(.setGroup(with: CallUUID()), on: calls.first)
        #expect(calls.world.words() == ["3 failed notNow", "4 failed unknownCall"])
        calls.world.canGroup = false
        calls.world.act(.setGroup(with: calls.first), on: calls.second)
        calls.world.run(for: .seconds(1))
        #expect(calls.world.words() == ["updated \(alice)", "5 failed refused"])
        #expect(calls.world.desk.entries.allSatisfy { !$0.update.isGrouped })
        _ = try calls.world.call(from: 2)
        calls.world.run(for: .seconds(1))
        calls.world.act(.setGroup(with: calls.first), on: calls.world.last)
        #expect(calls.world.words().last == "6 failed notNow")
    }

    @Test func `who does not come back from hold is not grouped`() throws {
        var calls = try talking()
        calls.world.network.arrives = { !$0.hasPrefix("INVITE sip:alice") }
        calls.world.act(.setGroup(with: calls.first), on: calls.second)
        calls.world.run(for: .milliseconds(2001))
        #expect(calls.world.words() == ["3 failed refused"])
        calls.world.act(.setGroup(with: calls.second), on: calls.first)
        calls.world.run(for: .milliseconds(5001))
        #expect(calls.world.words() == ["4 failed timedOut"] && calls.world.grouped.isEmpty)
    }

    @Test func `a reset ends the conference, and the next one begins with this side in it`() throws {
        var calls = try grouped()
        calls.world.act(.setHeld(true), on: calls.first)
        calls.world.desk.reset()
        calls.world.settle()
        #expect(calls.world.isPresentInGroup && calls.world.desk.entries.isEmpty && calls.world.desk.isAttending)
    }
}
