import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

@testable import SharedCore

/// Imports in processes that are killed.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: FaultPoint.areBuiltIn, "needs the trait FaultPoints")
)
struct GroupImportRealTimeTests {
    private let tests: GroupImportTests

    init() throws {
        tests = try GroupImportTests()
    }

    @Test(
        arguments: [
            (.beforeImport, 1), (.beforeImport, 2), (.afterImport, 2), (.beforeImportRename, 1),
            (.beforeImportRename, 3),
            (.afterImportRename, 1), (.afterImportRename, 4), (.beforeImport, 6), (.afterImport, 6),
        ] as [(FaultPoint, Int)]
    )
    func `an import killed anywhere is finished by the next`(point: FaultPoint, hit: Int) async throws {
        try tests.fill()
        let (group, store) = (tests.group, tests.store)
        let fault = "\(point.rawValue):\(hit)"
        let old = tests.old.path
        let path = group.path
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [fault = fault as String, old = old as String, path = path as String] in
            setenv("SHARED_CORE_FAULT", fault, 1)
            let group = try GroupContainer(directory: path)
            let store = try SharedStore(group: group)
            let epoch = try await store.beginEpoch()
            let sources: [GroupImport.Part: String] = [
                .configuration: old + "/config", .data: old + "/data", .downloads: old + "/downloads",
            ]
            _ = try await GroupImport(group: group, sources: sources).run(store: store, as: epoch)
        }
        // Whatever has a name is complete.
        if let text = group.text(of: "data/friends.db") { #expect(text.count == 600_000) }
        let epoch = try await store.beginEpoch()
        _ = try await tests.work.run(store: store, as: epoch)
        #expect(group.text(of: "config/rc") == "[sip]\n")
        #expect(group.text(of: "data/friends.db")?.count == 600_000)
        #expect(group.text(of: "downloads/2024/photos/1.jpg") == "1")
        #expect(group.text(of: "downloads/empty") == "")
        #expect(try group.names(in: ".import").isEmpty)
        #expect(try await tests.work.run(store: store, as: epoch).alreadyImported.count == 3)
    }
}
