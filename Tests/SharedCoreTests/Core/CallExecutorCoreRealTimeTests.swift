import Foundation
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

/// Cores that take calls beside mains and executors, with calls that are on when the test says so.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct CallExecutorCoreRealTimeTests {
    private let bench: CoreBench
    private let lock: CoreLock

    init() throws {
        bench = try CoreBench()
        lock = try CoreLock(group: bench.group)
    }

    @Test func `a main that starts during a call attends it, and takes the place at its end`() async throws {
        let (core, service) = try bench.calls()
        let epoch = try await core.start()
        #expect(try lock.owner()?.role == .call)
        service.setInCall(true)
        let main = try bench.main()
        let (attending, left) = (CoreGate(), CoreGate())
        let start = Task {
            try await main.start {
                await attending.pass()
                // Until it is cancelled.
                await Notifier().wait(after: 0, until: .now + .seconds(3600))
                await left.pass()
            }
        }
        await attending.reached()
        await attending.open()
        #expect(await core.isRunning)
        #expect(await !main.isRunning)
        service.setInCall(false)
        try await core.ended()
        await left.reached()
        await left.open()
        #expect(try await start.value > epoch)
        #expect(bench.server.most == 1)
        await main.stop()
    }

    @Test func `a main is not kept waiting by a core whose call has not come`() async throws {
        let (core, _) = try bench.calls()
        try await core.start()
        let main = try bench.main(yieldLimit: .seconds(3600))
        try await main.start { Issue.record("there is no call") }
        #expect(await !core.isRunning)
        try await core.ended()
        #expect(bench.server.most == 1)
        await main.stop()
    }

    @Test func `a main that is stopped while it waits for a call leaves that alone`() async throws {
        let (core, service) = try bench.calls()
        let epoch = try await core.start()
        service.setInCall(true)
        let main = try bench.main()
        let attending = CoreGate()
        let start = Task { try await main.start { await attending.pass() } }
        await attending.reached()
        await attending.open()
        await main.stop()
        await #expect(throws: CancellationError.self) { try await start.value }
        #expect(await core.isRunning)
        #expect(try await core.store.status().epoch == epoch)
        #expect(try !lock.isHeldElsewhere(.main))
        await core.stop()
        #expect(try !lock.isHeldElsewhere(.calls) && lock.owner() == nil)
    }

    @Test func `it ends by itself when no call comes, and with the last one`() async throws {
        let (idle, _) = try bench.calls(patience: .milliseconds(1))
        try await idle.start()
        try await lock.wait(for: .calls)
        lock.unlock(.calls)
        let (core, service) = try bench.calls()
        #expect(try await core.start() == Epoch(rawValue: 2))
        service.setInCall(true)
        service.setInCall(false)
        try await lock.wait(for: .calls)
        lock.unlock(.calls)
        #expect(try await core.store.status().state == .free)
    }

    @Test func `an executor gives way to it, is served by it, and has its place back`() async throws {
        let executor = try bench.executor(budget: .seconds(3600))
        let waiting = Task { try await executor.newMessage(callID: "a") }
        #expect(await Polling.eventually { await executor.isRunning })
        let (core, service) = try bench.calls()
        try await core.start()
        service.setInCall(true)
        #expect(await !executor.isRunning)
        bench.server.put(CoreBench.message("a"))
        let outcome = try await waiting.value
        #expect(outcome.text == "text of a" && outcome.source == .store)
        let next = Task { try await executor.newMessage(callID: "b") }
        try await bench.untilWaiting(1)
        service.setInCall(false)
        #expect(await Polling.eventually { await executor.isRunning })
        bench.server.put(CoreBench.message("b"))
        #expect(try await next.value.source == .executor)
        #expect(bench.server.most == 1)
        await executor.stop()
    }

    @Test func `beside a main, and beside another of its kind, it is refused and changes nothing`() async throws {
        let (core, service) = try bench.calls()
        let main = try bench.main()
        let epoch = try await main.start()
        var error = await #expect(throws: CoreError.self) { try await core.start() }
        #expect(error?.code == .anotherMain)
        #expect(try await core.store.status().epoch == epoch)
        await main.stop()
        try await core.start()
        service.setInCall(true)
        let (second, _) = try bench.calls()
        error = await #expect(throws: CoreError.self) { try await second.start() }
        #expect(error?.code == .callsTaken)
        #expect(await core.isRunning)
        await core.stop()
    }

    @Test func `an executor that does not end keeps its place, and is not killed`() async throws {
        let executor = try bench.slowExecutor()
        bench.server.put(CoreBench.message("a"))
        #expect(try await executor.newMessage(callID: "a").text == "text of a")
        let (core, _) = try bench.calls(patience: .milliseconds(50))
        let error = await #expect(throws: CoreError.self) { try await core.start() }
        #expect(error?.code == .executorStays)
        #expect(try !lock.isHeldElsewhere(.calls))
        await bench.gate.open()
        await executor.stop()
        // It was not fenced: what it delivered at its end is there.
        #expect(try await core.store.message(callID: "last") != nil)
    }

    @Test func `one that is let go ends`() async throws {
        do {
            let (core, service) = try bench.calls()
            try await core.start()
            service.setInCall(true)
        }
        try await lock.wait(for: .calls)
        #expect(try await SharedStore(group: bench.group).status().state == .free)
    }
}
