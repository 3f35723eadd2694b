import GRDB
import TestSupport
import Testing

@testable import SharedCore

/// Numbers that damage, or another program, has left in the database; in a process of its own, which they must not end.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct StoredNumberRealTimeTests {
    @Test(arguments: [
        "meta SET bootBase = 9223372036854775807", "meta SET acknowledged = 9223372036854775807",
        "meta SET acknowledged = -9223372036854775808", "action SET queuedAt = -9223372036854775808",
    ])
    func `a number beyond all bounds is damage, and never ends the process`(change: String) async {
        await #expect(processExitsWith: .success) { [change = change as String] in
            let directory = try TemporaryDirectory()
            let store = try SharedStore(group: directory.group)
            let epoch = try await store.beginEpoch()
            _ = try await store.insert(.sample("a"), as: epoch)
            let claim = try #require(try await store.claim(callID: "a", by: .current))
            try await store.enqueue(MessageAction(id: "1", callID: "a", kind: .markAsSeen))
            try await DatabaseQueue(path: store.path).write { try $0.execute(sql: "UPDATE \(change)") }
            let error = await #expect(throws: StoreError.self) {
                _ = try await store.acknowledge(claim)
                _ = try await store.nextAction(as: epoch)
            }
            #expect(error?.code == .damaged)
        }
    }
}
