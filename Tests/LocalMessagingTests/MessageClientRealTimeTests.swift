import Dispatch
import LocalMessaging
import LocalMessagingTesting
import TestSupport
import Testing

/// Changes of a client that its program hears on two threads at once.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct MessageClientRealTimeTests {
    private let tests = MessageClientTests()

    @Test func `the end is told last, also while another thread tells of an interruption`() async throws {
        let (group, changes) = (tests.group, tests.changes)
        let server = try await group.startServer(name: "core", handlers: .sums)
        let (isTelling, mayGoOn) = (Gate(), DispatchSemaphore(value: 0))
        let client = try await group.connect(to: "core", reconnection: .backingOff) { change in
            if case .interrupted = change {
                isTelling.open()
                mayGoOn.wait()
            }
            tests.note(change)
        }
        let killing = Task { await group.kill(server) }
        await isTelling.passed()
        let closing = Task { await client.close() }
        // Time to tell of the end too early.
        for _ in 0..<100 { await Task.yield() }
        mayGoOn.signal()
        await closing.value
        await killing.value
        #expect(
            changes.values == ["interrupted: \(Invalidation.peerDied)", "invalidated: \(Invalidation.closed)"]
        )
    }
}
