import Foundation
import GRDB
import Glibc
import LocalMessaging
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
        #expect(status.state == .free && status.owner == nil && status.epoch == Epoch(rawValue: 0))
        #expect(!CoreLock.exists(in: directory.group))
    }

    @Test func `each owner begins a higher epoch`() async throws {
        for number in 1...5 {
            #expect(try await store.beginEpoch() == Epoch(rawValue: Int64(number)))
            #expect(try await store.status().epoch == Epoch(rawValue: Int64(number)))
        }
    }

    private func record(_ role: CoreRole, _ epoch: Epoch) -> OwnerRecord {
        OwnerRecord(process: .current, role: role, epoch: epoch, why: "test")
    }

    @Test(arguments: [
        (CoreRole.main, CoreState.main, CoreState.main), (.executor, .executor, .executorStopping),
        (.call, .executor, .executorStopping),
    ])
    func `the state is what the owner of the lock says`(role: CoreRole, runs: CoreState, stops: CoreState)
        async throws
    {
        let lock = try CoreLock(group: directory.group)
        #expect(try lock.tryLock(.writer))
        // It has the lock, and no epoch yet.
        try lock.write(record(role, Epoch(rawValue: 0)))
        #expect(try await store.status().state == .free)
        let epoch = try await store.beginEpoch()
        #expect(try await store.status().state == .free)
        let record = record(role, epoch)
        try lock.write(record)
        var status = try await store.status()
        #expect(status.state == runs && status.owner == record && status.epoch == epoch)
        try lock.write(record.givingWay)
        status = try await store.status()
        #expect(status.state == stops && status.owner == record.givingWay)
        try await store.endEpoch(epoch)
        status = try await store.status()
        #expect(status.state == .free && status.owner == record.givingWay)
        lock.unlock(.writer)
        status = try await store.status()
        #expect(status.state == .free && status.owner == nil && status.epoch == epoch)
    }

    @Test func `what a core leaves behind that was killed is no state`() async throws {
        let lock = try CoreLock(group: directory.group)
        #expect(try lock.tryLock(.writer))
        let epoch = try await store.beginEpoch()
        try lock.write(OwnerRecord(process: .dead, role: .main, epoch: epoch, why: ""))
        let status = try await store.status()
        #expect(status.state == .free && status.owner == nil)
    }

    @Test func `an owner that was fenced is told of, and is no core`() async throws {
        let lock = try CoreLock(group: directory.group)
        #expect(try lock.tryLock(.writer))
        let epoch = try await store.beginEpoch()
        try lock.write(record(.executor, epoch))
        _ = try await store.fence()
        let status = try await store.status()
        #expect(status.state == .free && status.owner?.pid == getpid() && status.epoch > epoch)
    }

    @Test func `a lock that is no file is an error of the store`() async throws {
        #expect(mkdir(directory.group.path + "/core.lock", 0o700) == 0)
        let error = await #expect(throws: StoreError.self) { try await store.status() }
        #expect(error?.message.contains("core.lock") == true)
    }

    /// As an earlier version wrote it.
    private func goBack(to state: String) async throws {
        try await store.write(before: .beforeInsert, after: .afterInsert) { db in
            try db.execute(
                sql: """
                    DROP TABLE fence;
                    CREATE TABLE state (one INTEGER PRIMARY KEY, state TEXT NOT NULL, epoch INTEGER NOT NULL, ownerPid INTEGER,
                        ownerStart INTEGER, since REAL) STRICT;
                    INSERT INTO state VALUES (1, '\(state)', 1, 4711, 1, 1.0);
                    CREATE TABLE wish (id INTEGER PRIMARY KEY) STRICT;
                    DELETE FROM grdb_migrations WHERE identifier = '4';
                    PRAGMA user_version = 3;
                    """
            )
        }
        try store.close()
    }

    @Test(arguments: ["main", "free"])
    func `a store of the third version keeps its epoch, and whether somebody may write`(state: String) async throws {
        let epoch = try await store.beginEpoch()
        try await goBack(to: state)
        let again = try SharedStore(group: directory.group)
        if state == "main" {
            #expect(try await again.insert(.sample("a"), as: epoch))
        } else {
            let error = await #expect(throws: StoreError.self) { try await again.insert(.sample("a"), as: epoch) }
            #expect(error?.code == .fenced(epoch: epoch, current: epoch))
        }
        #expect(try await again.beginEpoch() == Epoch(rawValue: 2))
    }

    @Test func `many that open a store of the third version at once all find it whole`() async throws {
        let epoch = try await store.beginEpoch()
        try await goBack(to: "main")
        try await withThrowingTaskGroup(of: Epoch.self) { group in
            for _ in 0..<8 {
                group.addTask { [directory] in try await SharedStore(group: directory.group).status().epoch }
            }
            for try await found in group { #expect(found == epoch) }
        }
    }

    @Test func `a writer whose epoch is over is refused everything`() async throws {
        let old = try await store.beginEpoch()
        let other = try SharedStore(group: directory.group)
        let new = try await other.beginEpoch()
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
        await expectFenced { try await store.endEpoch(old) }
        #expect(try await store.pending().isEmpty)
        #expect(try await store.insert(.sample("a"), as: new))
    }

    @Test func `a fence ends the epoch without beginning one that somebody writes as`() async throws {
        let old = try await store.beginEpoch()
        let fence = try await store.fence()
        #expect(fence > old)
        for epoch in [old, fence] {
            let error = await #expect(throws: StoreError.self) { try await store.insert(.sample("a"), as: epoch) }
            #expect(error?.code == .fenced(epoch: epoch, current: fence))
        }
        #expect(try await store.beginEpoch() > fence)
    }

    @Test func `who has ended its epoch writes no more`() async throws {
        let epoch = try await store.beginEpoch()
        try await store.endEpoch(epoch)
        let error = await #expect(throws: StoreError.self) { try await store.insert(.sample("a"), as: epoch) }
        #expect(error?.code == .fenced(epoch: epoch, current: epoch))
    }

    @Test func `epochs of many that begin at once are all different`() async throws {
        let stores = try (0..<3).map { _ in try SharedStore(group: directory.group) }
        let epochs = try await withThrowingTaskGroup(of: Epoch.self) { group in
            for number in 0..<30 {
                group.addTask { try await stores[number % 3].beginEpoch() }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(epochs.count == 30)
        #expect(epochs.max() == Epoch(rawValue: 30))
    }

    @Test func `a task that is cancelled still learns what it has written`() async throws {
        let epoch = try await store.beginEpoch()
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
