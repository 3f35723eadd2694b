internal import CLinux
internal import Foundation
internal import GRDB
internal import Glibc

/// One run of the machine: process numbers and start times are only unique within it.
struct Boot: Sendable {
    let identifier: String

    static let current = Boot(
        identifier: (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8))?
            .trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown"
    )

    /// Settles what an earlier boot left behind, once: its processes are gone, whatever has their numbers now.
    ///
    /// A message that one of them had claimed may have been shown: its claims stay counted, so it comes back as repeated.
    func enter(_ db: Database) throws {
        guard try String.fetchOne(db, sql: "SELECT boot FROM meta") != identifier else { return }
        try db.inTransaction(.immediate) {
            guard try String.fetchOne(db, sql: "SELECT boot FROM meta") != identifier else { return .rollback }
            try db.execute(
                sql: """
                    UPDATE message SET claimedByPid = NULL, claimedByStart = NULL WHERE claimedByPid IS NOT NULL;
                    UPDATE fence SET isOpen = 0;
                    UPDATE meta SET bootBase = MAX((SELECT COALESCE(MAX(acknowledgedAt), 0) FROM message),
                        (SELECT COALESCE(MAX(queuedAt), 0) FROM action));
                    """
            )
            try db.execute(sql: "UPDATE meta SET boot = ?", arguments: [identifier])
            return .commit
        }
    }

    /// The time of the group: it runs while the machine does, asleep or not, and never jumps.
    ///
    /// Units: seconds. An earlier boot counts up to the last message acknowledged in it, or action queued.
    static func groupTime(_ db: Database) throws -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        let base = try Int64.fetchOne(db, sql: "SELECT bootBase FROM meta") ?? 0
        return try Int64.checked(base.addingReportingOverflow(Int64(time.tv_sec)))
    }
}
