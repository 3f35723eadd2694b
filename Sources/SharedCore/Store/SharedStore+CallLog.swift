internal import CallBasics
internal import Foundation
internal import GRDB

extension SharedStore {
    /// Writes a call into the log, in place of what was written for the same call.
    ///
    /// The oldest beyond the limit are forgotten.
    package func record(_ call: CallRecord, as epoch: Epoch) async throws(StoreError) {
        try await write(as: epoch, before: .beforeInsert, after: .afterInsert) { db in
            try db.execute(
                sql: """
                    INSERT INTO callLog (callID, remote, direction, startedAt, milliseconds) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (callID) DO UPDATE SET remote = excluded.remote, direction = excluded.direction,
                        startedAt = excluded.startedAt, milliseconds = excluded.milliseconds
                    """,
                arguments: [
                    call.callID.bytes, call.remote.bytes, call.direction.rawValue, call.startedAt.timeIntervalSince1970,
                    call.duration.map(Self.milliseconds),
                ]
            )
            try db.execute(
                sql: "DELETE FROM callLog WHERE id <= (SELECT id FROM callLog ORDER BY id DESC LIMIT 1 OFFSET ?)",
                arguments: [self.limits.callCount]
            )
        }
    }

    /// The calls, the latest recorded first.
    public func calls() async throws(StoreError) -> [CallRecord] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM callLog ORDER BY id DESC").map(CallRecord.init(row:))
        }
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(clamping: duration.attoseconds / 1_000_000_000_000_000)
    }
}

extension CallRecord {
    fileprivate init(row: Row) throws {
        guard let direction = Direction(rawValue: try row.string("direction")) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a call of no direction")
        }
        self.init(
            callID: try row.string("callID"),
            remote: try row.string("remote"),
            direction: direction,
            startedAt: try row.date("startedAt"),
            duration: try row.optionalInteger("milliseconds").map { .milliseconds($0) }
        )
    }
}
