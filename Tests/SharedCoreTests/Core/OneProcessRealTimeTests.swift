import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

/// Cores of one process beside each other, and cores that are let go, cancelled, or stopped twice.
///
/// Where the process must outlive what happens, that is done in a process of its own.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct OneProcessRealTimeTests {
    /// Longer than any test may take.
    private static let forEver = Duration.seconds(3600)

    @Test func `an executor gives way to a main also while it waits for nothing`() async throws {
        await #expect(processExitsWith: .success) {
            let bench = try CoreBench()
            bench.server.put(CoreBench.message("a"))
            let executor = try bench.executor()
            #expect(try await executor.newMessage(callID: "a").text == "text of a")
            #expect(await executor.isRunning)
            let main = try bench.main(yieldLimit: Self.forEver)
            try await main.start()
            #expect(await !executor.isRunning)
            #expect(bench.server.most == 1)
            await main.stop()
        }
    }

    @Test func `a main ends no executor of its own process by force`() async throws {
        await #expect(processExitsWith: .success) {
            let bench = try CoreBench()
            bench.server.put(CoreBench.message("a"))
            let executor = try bench.slowExecutor()
            #expect(try await executor.newMessage(callID: "a").text == "text of a")
            let main = try bench.main(yieldLimit: .milliseconds(50))
            let error = await #expect(throws: CoreError.self) { try await main.start() }
            #expect(error?.code == .executorStays && error?.message.contains("this very process") == true)
            // It was neither fenced: what it still delivers is kept.
            await bench.gate.open()
            await executor.stop()
            #expect(try await main.store.message(callID: "last") != nil)
            try await main.start()
            await main.stop()
        }
    }

    @Test(arguments: [false, true])
    func `a start that is cut short neither fences nor ends the executor`(isStopped: Bool) async throws {
        await #expect(processExitsWith: .success) { [isStopped = isStopped as Bool] in
            let bench = try CoreBench()
            bench.server.put(CoreBench.message("a"))
            let executor = try bench.slowExecutor()
            #expect(try await executor.newMessage(callID: "a").text == "text of a")
            let epoch = try await executor.store.status().epoch
            #expect(try await executor.store.status().state == .executor)
            let main = try bench.main(yieldLimit: Self.forEver)
            let start = Task { try await main.start() }
            await bench.gate.reached()
            #expect(try await executor.store.status().state == .executorStopping)
            if isStopped { await main.stop() } else { start.cancel() }
            await #expect(throws: CancellationError.self) { try await start.value }
            #expect(await !main.isRunning)
            #expect(try await executor.store.status().epoch == epoch)
            // The next main is not refused.
            #expect(try CoreLock(group: bench.group).tryLock(.main))
            await bench.gate.open()
            await executor.stop()
        }
    }

    @Test func `an executor has its place until it has ended, whatever its other calls do`() async throws {
        let bench = try CoreBench()
        let executor = try bench.slowExecutor()
        await withThrowingTaskGroup(of: RoomOutcome.self) { group in
            for _ in 0..<2 { group.addTask { try await executor.newChatRoom(address: "last") } }
            let isRunning = await Polling.eventually { await executor.isRunning }
            #expect(isRunning)
            let start = Task {
                let main = try bench.main(yieldLimit: Self.forEver)
                try await main.start()
                await main.stop()
            }
            await #expect(throws: Never.self) {
                // It comes while the core ends.
                _ = try await group.next()
                #expect(try CoreLock(group: bench.group).isHeldElsewhere(.writer))
            }
            await bench.gate.open()
            await #expect(throws: Never.self) {
                try await group.waitForAll()
                try await start.value
            }
        }
        #expect(bench.server.most == 1)
    }

    @Test func `who ends a core that ends already waits for its end`() async throws {
        let bench = try CoreBench()
        bench.server.put(CoreBench.message("a"))
        let executor = try bench.slowExecutor()
        #expect(try await executor.newMessage(callID: "a").text == "text of a")
        let first = Task { await executor.stop() }
        await bench.gate.reached()
        let gate = bench.gate
        let second = Task {
            await executor.stop()
            return try CoreLock(group: bench.group).tryLock(.writer)
        }
        // It waits by then, or finds the core ended: both are right.
        for _ in 0..<100 { await Task.yield() }
        await gate.open()
        #expect(try await second.value)
        await first.value
    }

    @Test func `a main that is stopped twice at once is stopped when either returns`() async throws {
        let bench = try CoreBench()
        let main = try bench.main()
        try await main.start()
        for _ in 0..<20 {
            let stops = (0..<2).map { _ in
                Task {
                    await main.stop()
                    return try CoreLock(group: bench.group).isHeldElsewhere(.main)
                }
            }
            for stop in stops { #expect(try await !stop.value) }
            try await main.start()
        }
        await main.stop()
    }

    @Test func `who waits for the failure of a main hears of its end in order`() async throws {
        let bench = try CoreBench()
        let main = try bench.main()
        try await main.start()
        let failure = Task { await main.failed() }
        await main.stop()
        #expect(await failure.value == nil)
    }

    @Test func `a core that is let go ends`() async throws {
        let bench = try CoreBench()
        let observer = try CoreLock(group: bench.group)
        bench.server.put(CoreBench.message("a"))
        do {
            let executor = try bench.executor()
            #expect(try await executor.newMessage(callID: "a").text == "text of a")
        }
        try await observer.wait(for: .writer)
        observer.unlock(.writer)
        do {
            let main = try bench.main()
            try await main.start()
        }
        try await observer.wait(for: .main)
        #expect(try await SharedStore(group: bench.group).status().state == .free)
    }

    @Test func `what kept a message from being shown is what its push fails with`() async throws {
        struct Refusal: Error {}
        let bench = try CoreBench()
        bench.server.put(CoreBench.message("a"))
        let executor = try bench.executor()
        let store = executor.store
        await #expect(throws: Refusal.self) {
            try await executor.notify(callID: "a") { @Sendable _, _ in
                // Nothing can be given back any more.
                try store.close()
                throw Refusal()
            }
        }
        await executor.stop()
    }
}
