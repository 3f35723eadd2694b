import GRDB
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

/// Executors while another process keeps the database locked, as when SIGSTOP hits it in the middle of a write.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct LockedStoreRealTimeTests {
    private let bench: CoreBench

    init() throws {
        bench = try CoreBench()
    }

    /// The database of the group, in a transaction that keeps all others from writing until it is rolled back.
    private func lockedDatabase() throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        configuration.busyMode = .timeout(30)
        let path = bench.group.path + "/database/shared.sqlite"
        let database = try DatabaseQueue(path: path, configuration: configuration)
        try database.inDatabase { try $0.beginTransaction(.immediate) }
        return database
    }

    @Test func `beside a main that keeps the database locked a push ends with its budget`() async throws {
        let main = try CoreLock(group: bench.group)
        #expect(try main.tryLock(.main) && main.tryLock(.writer))
        try await expectLate()
    }

    @Test func `where nobody runs, and the database is locked, a push ends with its budget`() async throws {
        try await expectLate()
    }

    private func expectLate() async throws {
        let executor = try bench.executor(budget: .milliseconds(200))
        let database = try lockedDatabase()
        let outcome = try await executor.newMessage(callID: "a")
        if case .late = outcome {} else { Issue.record("\(outcome)") }
        try database.inDatabase { try $0.rollback() }
        await executor.stop()
    }

    @Test func `an executor becomes the core once nobody keeps the database locked`() async throws {
        bench.server.put(CoreBench.message("a"))
        let executor = try bench.executor(budget: .seconds(3600), busyTimeout: .milliseconds(50))
        let database = try lockedDatabase()
        let waiting = Task { try await executor.newMessage(callID: "a") }
        // It has the lock while it tries, and lets go of it in between.
        let lock = try CoreLock(group: bench.group)
        for isHeld in [true, false, true] {
            #expect(try await Polling.eventually { try lock.isHeldElsewhere(.writer) == isHeld })
        }
        try database.inDatabase { try $0.rollback() }
        #expect(try await waiting.value.text == "text of a")
        #expect(bench.server.starts == 1)
        await executor.stop()
    }

    @Test func `a core that could not write in time is followed by the next of the same push`() async throws {
        let executor = try bench.executor(budget: .seconds(3600), busyTimeout: .milliseconds(50))
        let waiting = Task { try await executor.newMessage(callID: "a") }
        try await bench.server.state.wait { $0.running == 1 }
        let database = try lockedDatabase()
        bench.server.put(CoreBench.message("a"))
        // It has ended for its failure.
        try await bench.server.state.wait { $0.running == 0 }
        try database.inDatabase { try $0.rollback() }
        #expect(try await waiting.value.text == "text of a")
        #expect(bench.server.starts == 2)
        await executor.stop()
    }
}
