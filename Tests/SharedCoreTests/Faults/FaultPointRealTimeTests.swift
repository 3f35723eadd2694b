import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

/// Cores in processes that are killed at each place of the code that has a name.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: FaultPoint.areBuiltIn, "needs the trait FaultPoints")
)
struct FaultPointRealTimeTests {
    #if FaultPoints
    @Test(
        arguments: [
            ("afterInsert", FaultPoint.afterInsert, 1), ("beforeClaim:3", .beforeClaim, 3), ("", nil, 0),
            ("nowhere:1", nil, 0),
            ("afterInsert:0", nil, 0), ("afterInsert:-1", nil, 0), ("afterInsert:", nil, 0),
            ("afterInsert:1:2", nil, 0),
        ] as [(String, FaultPoint?, Int)]
    )
    func `a place and a number are named by the environment`(value: String, point: FaultPoint?, hit: Int) {
        #expect(FaultPoint.parse(value)?.point == point)
        #expect((FaultPoint.parse(value)?.hit ?? 0) == hit)
    }
    #endif

    /// What becomes of the message when its owner is killed somewhere.
    enum Fate: Codable, Sendable { case absent, new, repeated, acknowledged }

    @Test(
        arguments: [
            (.afterWriterLock, .absent), (.beforeEpoch, .absent), (.afterEpoch, .absent), (.beforeInsert, .absent),
            (.afterInsert, .new), (.beforeClaim, .new), (.afterClaim, .repeated), (.beforeRelease, .repeated),
            (.afterRelease, .new), (.beforeAcknowledge, .repeated), (.afterAcknowledge, .acknowledged),
            (.beforeAction, .acknowledged),
            (.afterAction, .acknowledged), (.beforeSetting, .acknowledged), (.afterSetting, .acknowledged),
            (.beforeEnd, .acknowledged), (.afterEnd, .acknowledged), (.beforeUnlock, .acknowledged),
            (.afterUnlock, .acknowledged), (.beforeFence, .acknowledged), (.afterFence, .acknowledged),
        ] as [(FaultPoint, Fate)]
    )
    func `a core killed anywhere leaves the lock free and the message where it was`(
        point: FaultPoint,
        fate: Fate
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path
        let place = point.rawValue
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, place = place as String] in
            setenv("SHARED_CORE_FAULT", place, 1)
            try await FaultPointRealTimeTests.life(in: path)
        }
        let lock = try CoreLock(group: GroupContainer(directory: path))
        #expect(try lock.tryLock(.writer))
        let store = try SharedStore(group: GroupContainer(directory: path))
        let before = try await store.status().epoch
        let epoch = try await store.beginEpoch()
        #expect(epoch > before)
        #expect(try await store.insert(.sample("a"), as: epoch) == (fate == .absent))
        let claim = try await store.claim(callID: "a", by: .current)
        switch fate {
        case .absent, .new: #expect(claim?.isRepeated == false)
        case .repeated: #expect(claim?.isRepeated == true)
        case .acknowledged: #expect(claim == nil)
        }
        #expect(try await store.acknowledge(callID: "a", by: .current) == (fate != .acknowledged))
        #expect(try await store.counts() == MessageCounts(pending: 0, acknowledged: 1))
    }

    /// Everything that a core does with its lock and its store.
    static func life(in path: String) async throws {
        let lock = try CoreLock(group: GroupContainer(directory: path))
        let store = try SharedStore(group: GroupContainer(directory: path))
        guard try lock.tryLock(.writer) else { return }
        let epoch = try await store.beginEpoch()
        _ = try await store.insert(.sample("a"), as: epoch)
        if let claim = try await store.claim(callID: "a", by: .current) { try await store.release(claim) }
        _ = try await store.claim(callID: "a", by: .current)
        _ = try await store.acknowledge(callID: "a", by: .current)
        try await store.enqueue(MessageAction(id: "1", callID: "a", kind: .markAsSeen))
        try await store.set(1, for: "key", as: epoch)
        try await store.endEpoch(epoch)
        lock.unlock(.writer)
        _ = try await store.fence()
    }
}
