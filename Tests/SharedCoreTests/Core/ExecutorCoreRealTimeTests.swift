import Foundation
import GRDB
import LocalMessaging
@testable import SharedCore
import TestSupport
import Testing

/// A group in a directory that goes away with the value, its server, and cores of it.
final class CoreBench: Sendable {
    let group: GroupContainer
    let server = ScriptedService.Server()
    private let executors = Watched<[Made]>([])

    /// Keeps no core that a test lets go.
    private struct Made: Sendable {
        weak let executor: ExecutorCore?
    }

    init() throws {
        group = try GroupContainer(directory: NSTemporaryDirectory() + "core-\(UUID().uuidString)")
    }

    deinit {
        try? FileManager.default.removeItem(atPath: group.path)
    }

    /// Waits until so many pushes wait for what they announced.
    func untilWaiting(_ count: Int) async throws {
        let executors = executors
        let isWaiting = await Polling.eventually {
            var sum = 0
            for made in executors.value { sum += await made.executor?.waits.count ?? 0 }
            return sum >= count
        }
        try #require(isWaiting)
    }

    /// Says when a core ends, and lets it end no further than that until it is opened.
    let gate = CoreGate()

    /// An executor whose service ends when `gate` is open, and before delivers the message and the room called "last".
    func slowExecutor() throws -> ExecutorCore {
        let gate = gate
        let service = ScriptedService(server) { context in
            _ = try? await context.deliver(Self.message("last"))
            _ = try? await context.deliver(RoomInvitation(address: "last", invitedBy: "sip:anna@example.org"))
            await gate.pass()
        }
        return try ExecutorCore(group: group, service: service)
    }

    func main(yieldLimit: Duration = .seconds(30)) throws -> MainCore {
        var configuration = CoreConfiguration()
        configuration.yieldLimit = yieldLimit
        return try MainCore(group: group, service: ScriptedService(server), configuration: configuration)
    }

    func executor(budget: Duration = .seconds(20), busyTimeout: Duration = .seconds(5)) throws -> ExecutorCore {
        var configuration = CoreConfiguration()
        (configuration.budget, configuration.busyTimeout) = (budget, busyTimeout)
        let made = try ExecutorCore(group: group, service: ScriptedService(server), configuration: configuration)
        executors.update { $0.append(Made(executor: made)) }
        return made
    }

    /// A core for calls, and what says whether one is on.
    func calls(patience: Duration = .seconds(3600)) throws -> (core: CallExecutorCore, service: ScriptedService) {
        var configuration = CoreConfiguration()
        configuration.callPatience = patience
        let service = ScriptedService(server)
        return (try CallExecutorCore(group: group, service: service, configuration: configuration), service)
    }

    static func message(_ callID: String) -> IncomingMessage {
        IncomingMessage(callID: callID, sender: "sip:anna@example.org", text: "text of \(callID)")
    }
}

extension MessageOutcome {
    var text: String? {
        if case .message(let claim, _) = self { claim.message.text } else { nil }
    }

    var source: MessageSource? {
        if case .message(_, let source) = self { source } else { nil }
    }
}

@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine)
struct ExecutorCoreRealTimeTests {
    let bench: CoreBench

    init() throws {
        bench = try CoreBench()
    }

    @Test func `with nobody running an executor fetches its message itself`() async throws {
        bench.server.put(CoreBench.message("a"))
        let executor = try bench.executor()
        let outcome = try await executor.newMessage(callID: "a")
        #expect(outcome.text == "text of a")
        #expect(outcome.source == .executor)
        if case .message(let claim, _) = outcome { try await executor.acknowledge(claim) }
        await executor.stop()
        let status = try await executor.store.status()
        #expect(status.state == .free)
        let counts = try await executor.store.counts()
        #expect((counts.pending, counts.acknowledged) == (0, 1))
    }

    @Test func `with a main running an executor waits for the main's message`() async throws {
        let main = try bench.main()
        try await main.start()
        let executor = try bench.executor()
        async let outcome = executor.newMessage(callID: "b")
        try await bench.untilWaiting(1)
        bench.server.put(CoreBench.message("b"))
        #expect(try await outcome.text == "text of b")
        #expect(try await outcome.source == .main)
        #expect(await executor.isRunning == false)
        #expect(bench.server.starts == 1)
        await main.stop()
        #expect(try await main.store.status().state == .free)
    }

    @Test func `an executor stays for as long as somebody waits who is connected to it`() async throws {
        bench.server.put(CoreBench.message("a"))
        let executor = try bench.executor(budget: .seconds(3600))
        #expect(try await executor.newMessage(callID: "a").text == "text of a")
        let other = try bench.executor()
        let waiting = Task { try await other.newMessage(callID: "b") }
        #expect(await Polling.eventually { await executor.awaitedByOthers == [.message(callID: "b")] })
        let stopping = Task { await executor.stop() }
        let third = try bench.executor()
        // It is served while the first one is asked to stop.
        let next = Task { try await third.newMessage(callID: "c") }
        #expect(await Polling.eventually { await executor.awaitedByOthers.count == 2 })
        bench.server.put(CoreBench.message("c"))
        #expect(try await next.value.text == "text of c")
        #expect(await Polling.eventually { await executor.awaitedByOthers == [.message(callID: "b")] })
        #expect(await executor.isRunning)
        waiting.cancel()
        await stopping.value
        #expect(await !executor.isRunning)
        #expect(bench.server.starts == 1)
        _ = await waiting.result
    }

    @Test func `an executor stays for as long as another of its calls waits`() async throws {
        bench.server.put(CoreBench.message("a"))
        let executor = try bench.executor(budget: .seconds(3600))
        #expect(try await executor.newMessage(callID: "a").text == "text of a")
        let waiting = Task { try await executor.newMessage(callID: "b") }
        #expect(await Polling.eventually { await executor.waits.count == 1 })
        let stopping = Task { await executor.stop() }
        // It has looked by then, or looks later: both are right.
        for _ in 0..<100 { await Task.yield() }
        bench.server.put(CoreBench.message("b"))
        #expect(try await waiting.value.text == "text of b")
        await stopping.value
        #expect(bench.server.starts == 1)
    }

    @Test func `a burst of pushes starts one core`() async throws {
        let callIDs = (0..<20).map { "burst-\($0)" }
        let executors = try callIDs.map { _ in try bench.executor() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (executor, callID) in zip(executors, callIDs) {
                group.addTask {
                    let outcome = try await executor.newMessage(callID: callID)
                    #expect(outcome.text == "text of \(callID)")
                    if case .message(let claim, _) = outcome { try await executor.acknowledge(claim) }
                    await executor.stop()
                }
            }
            try await bench.untilWaiting(callIDs.count)
            // The one that became the core knows of the others.
            let isKnown = await Polling.eventually {
                for executor in executors where await executor.awaitedByOthers.count == callIDs.count - 1 {
                    return true
                }
                return false
            }
            try #require(isKnown)
            for callID in callIDs { bench.server.put(CoreBench.message(callID)) }
            try await group.waitForAll()
        }
        #expect(bench.server.starts == 1)
        #expect(bench.server.most == 1)
    }

    @Test func `a main takes the place of an executor, which then waits for it`() async throws {
        let executor = try bench.executor()
        async let outcome = executor.newMessage(callID: "c")
        try await bench.server.state.wait { $0.running == 1 }
        let isRunning = await Polling.eventually { await executor.isRunning }
        #expect(isRunning)
        let main = try bench.main()
        try await main.start()
        // In order: a fence would have taken an epoch of its own.
        #expect(try await main.store.status().epoch == Epoch(rawValue: 2))
        #expect(bench.server.most == 1)
        bench.server.put(CoreBench.message("c"))
        #expect(try await outcome.source == .main)
        await main.stop()
    }

    @Test func `a message that comes too late is there for who asks next`() async throws {
        let early = try bench.executor(budget: .milliseconds(200))
        let late = try await early.newMessage(callID: "d")
        #expect(late.text == nil)
        await early.stop()
        bench.server.put(CoreBench.message("d"))
        bench.server.put(CoreBench.message("e"))
        let other = try bench.executor()
        #expect(try await other.newMessage(callID: "e").source == .executor)
        await other.stop()
        let starts = bench.server.starts
        let next = try bench.executor()
        #expect(try await next.newMessage(callID: "d").source == .store)
        #expect(bench.server.starts == starts)
    }

    @Test func `a second message of a call-id that was shown is fetched and shown`() async throws {
        for messageID in ["1", "2"] {
            let (sender, text) = ("sip:anna@example.org", "text \(messageID)")
            bench.server.put(IncomingMessage(callID: "a", messageID: messageID, sender: sender, text: text))
            let executor = try bench.executor()
            let outcome = try await executor.newMessage(callID: "a")
            #expect(outcome.text == text)
            if case .message(let claim, _) = outcome { try await executor.acknowledge(claim) }
            await executor.stop()
        }
    }

    @Test func `a push that comes again fetches, and is told that its message was shown`() async throws {
        bench.server.put(CoreBench.message("a"))
        let first = try bench.executor()
        try await first.notify(callID: "a") { @Sendable _, _ in }
        await first.stop()
        // The end of its fetch is enough, long before that of its budget.
        let second = try bench.executor(budget: .seconds(3600))
        let told = try await second.notify(callID: "a") { @Sendable _, _ in Issue.record("it is shown again") }
        if case .shownElsewhere = told {} else { Issue.record("\(told)") }
        #expect(bench.server.starts == 2)
        await second.stop()
        // Another core cannot say that there is no more: a while is enough, or the end of the budget.
        let main = try bench.main()
        try await main.start()
        for isHasty in [true, false] {
            var configuration = CoreConfiguration()
            configuration.budget = isHasty ? .seconds(3600) : .milliseconds(200)
            configuration.repeatPatience = isHasty ? .milliseconds(100) : .seconds(5)
            configuration.toldLookInterval = .milliseconds(20)
            let service = ScriptedService(bench.server)
            let third = try ExecutorCore(group: bench.group, service: service, configuration: configuration)
            let late = try await third.newMessage(callID: "a")
            if case .shownElsewhere = late {} else { Issue.record("\(late)") }
        }
        await main.stop()
    }

    @Test func `a service that takes its time to start keeps no push beyond its budget`() async throws {
        // Nothing comes: it ends by being cancelled.
        let (silence, silent) = AsyncStream<Void>.makeStream()
        var configuration = CoreConfiguration()
        configuration.budget = .milliseconds(200)
        let service = ScriptedService(bench.server, starting: { for await _ in silence {} })
        let executor = try ExecutorCore(group: bench.group, service: service, configuration: configuration)
        let outcome = try await executor.newMessage(callID: "a")
        if case .late = outcome {} else { Issue.record("\(outcome)") }
        await executor.stop()
        silent.finish()
        #expect(await !executor.isRunning)
    }

    @Test func `an action is performed by an executor when no main runs, and else by the main`() async throws {
        let executor = try bench.executor()
        let first = MessageAction(id: "1", callID: "a", kind: .reply("yes"))
        #expect(try await executor.perform(first))
        await executor.stop()
        let main = try bench.main()
        try await main.start()
        let second = MessageAction(id: "2", callID: "a", kind: .markAsSeen)
        #expect(try await bench.executor().perform(second))
        #expect(bench.server.performed == [first, second])
        #expect(bench.server.starts == 2)
        await main.stop()
    }

    @Test func `an action that is refused stays queued, and holds up neither messages nor other actions`() async throws
    {
        let first = try bench.executor(budget: .milliseconds(200))
        #expect(try await first.perform(MessageAction(id: "1", callID: "a", kind: .reply("refused"))) == false)
        await first.stop()
        bench.server.put(CoreBench.message("a"))
        let second = try bench.executor()
        #expect(try await second.newMessage(callID: "a").source == .executor)
        #expect(try await second.perform(MessageAction(id: "2", callID: "a", kind: .markAsSeen)))
        let begin = ContinuousClock.now
        await second.stop()
        #expect(ContinuousClock.now - begin < .seconds(15), "its budget is 20 s")
        #expect(try await second.store.actions().map(\.id) == ["1"])
    }

    @Test func `an action that is refused holds up none that was queued behind it`() async throws {
        let main = try bench.main()
        let second = MessageAction(id: "2", callID: "a", kind: .markAsSeen)
        for action in [MessageAction(id: "1", callID: "a", kind: .reply("refused")), second] {
            try await main.store.enqueue(action)
        }
        try await main.start()
        try await bench.server.state.wait { !$0.performed.isEmpty }
        #expect(bench.server.performed == [second])
        await main.stop()
        #expect(try await main.store.actions().map(\.id) == ["1"])
    }

    @Test func `an action that is refused for good is over, and whoever asked for it is told`() async throws {
        let executor = try bench.executor()
        let refusal = await #expect(throws: ActionRefusal.self) {
            try await executor.perform(MessageAction(id: "1", callID: "a", kind: .reply("never")))
        }
        #expect(refusal?.message == "404 Not Found")
        #expect(try await executor.perform(MessageAction(id: "2", callID: "a", kind: .markAsSeen)))
        await executor.stop()
        #expect(try await executor.store.actions().isEmpty)
        let arrivals = Watched<[CoreArrival]>([])
        let main = try MainCore(group: bench.group, service: ScriptedService(bench.server)) { arrival in
            arrivals.update { $0.append(arrival) }
        }
        try await main.start()
        try await main.perform(MessageAction(id: "3", callID: "a", kind: .reply("never")))
        try await arrivals.wait { !$0.isEmpty }
        #expect(arrivals.value == [.refused(RefusedAction(id: "3", callID: "a", reason: "404 Not Found"))])
        #expect(try await main.store.actions().isEmpty)
        #expect(try await main.store.refusedActions().map(\.id) == ["1", "3"])
        await main.stop()
    }

    @Test func `an action whose end cannot be written is not performed again by the same core`() async throws {
        let main = try bench.main()
        try await DatabaseQueue(path: main.store.path).write { db in
            try db.execute(sql: "CREATE TRIGGER no BEFORE DELETE ON action BEGIN SELECT RAISE(ABORT, 'no'); END")
        }
        try await main.start()
        try await main.perform(MessageAction(id: "1", callID: "a", kind: .markAsSeen))
        let failure = await main.failed()
        #expect((failure as? StoreError)?.code == .damaged)
        // It would be at once.
        let isRepeated = await Polling.eventually(.milliseconds(300)) { bench.server.performed.count > 1 }
        #expect(!isRepeated)
        await main.stop()
        #expect(bench.server.performed.count == 1)
        #expect(try await main.store.actions().map(\.id) == ["1"])
    }

    @Test func `a room is waited for as a message is`() async throws {
        bench.server.invite(
            RoomInvitation(address: "sip:room@example.org", subject: "Lunch", invitedBy: "sip:anna@example.org")
        )
        let executor = try bench.executor()
        guard case .room(let room, let source) = try await executor.newChatRoom(address: "sip:room@example.org") else {
            Issue.record("the room did not come")
            return
        }
        #expect(room.invitation.subject == "Lunch")
        #expect(source == .executor)
        await executor.stop()
    }

    @Test func `a second main is refused, and may start after the first`() async throws {
        let first = try bench.main()
        let second = try bench.main()
        try await first.start()
        await #expect(throws: CoreError.self) { try await second.start() }
        await first.stop()
        try await second.start()
        await second.stop()
    }

    @Test func `a setting is what the last owner committed, for every process`() async throws {
        let main = try bench.main()
        let first = try await main.start()
        try await main.store.set("de", for: "language", as: first)
        let executor = try bench.executor()
        #expect(try await executor.store.setting("language", as: String.self) == "de")
        await main.stop()
        let second = try await main.start()
        await #expect(throws: StoreError.self) { try await main.store.set("en", for: "language", as: first) }
        #expect(try await executor.store.setting("language", as: String.self) == "de")
        try await main.store.set("fr", for: "language", as: second)
        #expect(try await executor.store.setting("language", as: String.self) == "fr")
        await main.stop()
    }
}
