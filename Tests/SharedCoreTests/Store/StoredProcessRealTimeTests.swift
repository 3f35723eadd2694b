import TestSupport
import Testing

@testable import SharedCore

/// What the store keeps of processes that die.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct StoredProcessRealTimeTests {
    let directory: TemporaryDirectory
    let store: SharedStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SharedStore(group: directory.group)
    }

    @Test func `the message of a dead claimant comes back once, as repeated`() async throws {
        let epoch = try await store.beginEpoch()
        _ = try await store.insert(.sample("a"), as: epoch)
        let child = try Child()
        #expect(try await store.claim(callID: "a", by: child.identity)?.isRepeated == false)
        #expect(try await store.claim(callID: "a", by: .current) == nil)
        child.end()
        #expect(try await store.message(callID: "a")?.status == .pending)
        let claim = try #require(try await store.claim(callID: "a", by: .current))
        #expect(claim.isRepeated)
        #expect(try await store.claim(callID: "a", by: .parent) == nil)
        // The dead one can no longer speak for it.
        #expect(try await !store.acknowledge(callID: "a", by: child.identity))
        #expect(try await store.acknowledge(callID: "a", by: .current))
    }
}
