import Foundation
import Testing

@testable import SharedCore

@Suite struct OwnershipTests {
    let directory: TemporaryDirectory
    let store: SharedStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SharedStore(group: directory.group)
    }

    @Test func `a new group is free`() async throws {
        let status = try await store.status()
        #expect(
            status.state == .free && status.owner == nil && status.epoch == Epoch(rawValue: 0) && status.since == nil
        )
    }

    @Test func `each owner begins a higher epoch`() async throws {
        for number in 1...5 {
            let role = number.isMultiple(of: 2) ? CoreRole.main : .executor
            let epoch = try await store.beginEpoch(role: role, process: .current)
            #expect(epoch == Epoch(rawValue: Int64(number)))
            let status = try await store.status()
            #expect(status.epoch == epoch && status.owner == .current && status.state.rawValue == role.rawValue)
            #expect(status.since != nil)
        }
    }

    @Test func `an owner goes through its states`() async throws {
        let epoch = try await store.beginEpoch(role: .executor, process: .current)
        try await store.setState(.askedToStop, as: epoch)
        #expect(try await store.status().state == .executorStopping)
        #expect(try await store.status().owner == .current)
        try await store.endEpoch(epoch)
        #expect(try await store.status().state == .free)
        #expect(try await store.status().owner == nil)
    }

    @Test func `an event that cannot happen is refused, and changes nothing`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let error = await #expect(throws: StoreError.self) { try await store.setState(.askedToStop, as: epoch) }
        #expect(error?.code == .illegalTransition(from: .main))
        #expect(try await store.status().state == .main)
    }

    @Test func `a writer whose epoch is over is refused everything`() async throws {
        let old = try await store.beginEpoch(role: .executor, process: .parent)
        let other = try SharedStore(group: directory.group)
        let new = try await other.beginEpoch(role: .main, process: .current)
        let call = CallRecord(callID: "a", remote: "b", direction: .incoming, startedAt: .now)
        let action = MessageAction(id: "1", callID: "a", kind: .markAsSeen)
        let invitation = RoomInvitation(address: "r", invitedBy: "b")
        let fenced = StoreFault.fenced(epoch: old, current: new)
        func expectFenced(_ write: () async throws -> Void) async {
            let error = await #expect(throws: StoreError.self) { try await write() }
            #expect(error?.code == fenced)
        }
        await expectFenced { _ = try await store.insert(.sample("a"), as: old) }
        await expectFenced { _ = try await store.insert(invitation, as: old) }
        await expectFenced { try await store.removeRoom(address: "r", as: old) }
        await expectFenced { try await store.record(call, as: old) }
        await expectFenced { try await store.set(1, for: "key", as: old) }
        await expectFenced { try await store.removeSetting("key", as: old) }
        await expectFenced { try await store.setAccount(StoredAccount(address: "a"), as: old) }
        await expectFenced { try await store.removeAccount(address: "a", as: old) }
        await expectFenced { _ = try await store.nextAction(as: old) }
        await expectFenced { try await store.finish(action, as: old) }
        await expectFenced { try await store.setState(.askedToStop, as: old) }
        await expectFenced { try await store.endEpoch(old) }
        #expect(try await store.status().state == .main)
        #expect(try await store.pending().isEmpty)
        #expect(try await store.insert(.sample("a"), as: new))
    }

    @Test func `a fence ends the epoch without beginning one that somebody writes as`() async throws {
        let old = try await store.beginEpoch(role: .executor, process: .parent)
        let fence = try await store.fence()
        #expect(fence > old)
        #expect(try await store.status().state == .free)
        for epoch in [old, fence] {
            let error = await #expect(throws: StoreError.self) { try await store.insert(.sample("a"), as: epoch) }
            #expect(error?.code == .fenced(epoch: epoch, current: fence))
        }
        #expect(try await store.beginEpoch(role: .main, process: .current) > fence)
    }

    @Test func `who has ended its epoch writes no more`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        try await store.endEpoch(epoch)
        let error = await #expect(throws: StoreError.self) { try await store.insert(.sample("a"), as: epoch) }
        #expect(error?.code == .fenced(epoch: epoch, current: epoch))
    }

    @Test func `epochs of many that begin at once are all different`() async throws {
        let stores = try (0..<3).map { _ in try SharedStore(group: directory.group) }
        let epochs = try await withThrowingTaskGroup(of: Epoch.self) { group in
            for number in 0..<30 {
                group.addTask { try await stores[number % 3].beginEpoch(role: .executor, process: .current) }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(epochs.count == 30)
        #expect(epochs.max() == Epoch(rawValue: 30))
    }

    @Test func `a task that is cancelled still learns what it has written`() async throws {
        let epoch = try await store.beginEpoch(role: .main, process: .current)
        let insert = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.insert(.sample("a"), as: epoch)
        }
        #expect(try await insert.value)
        #expect(try await store.pending().count == 1)
    }

    @Test func `a store that was closed says so`() async throws {
        try store.close()
        let error = await #expect(throws: StoreError.self) { try await store.status() }
        #expect(error?.code == .closed)
    }
}
