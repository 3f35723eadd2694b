#if FaultPoints
internal import Glibc
internal import Synchronization
#endif

/// A named place in the code at which a test ends the process, to prove that nothing is lost there.
///
/// Only builds with the trait `FaultPoints` have them; in others `reached` does nothing and reads no environment.
/// `SHARED_CORE_FAULT=afterInsert:3` in the environment makes a process kill itself (SIGKILL) when it reaches that place
/// for the third time, after it has said so on standard error: `fault point afterInsert:3`.
///
/// "before" a transaction's name is inside it, with everything written and nothing committed; "after" it is right behind the
/// commit, before anybody has been told.
package enum FaultPoint: String, CaseIterable, Sendable {
    // The lock.
    case afterMainLock, afterCallsLock, afterWriterLock, beforeUnlock, afterUnlock
    // The store comes into being: complete under another name, and under its own.
    case beforeCreate, afterCreate
    // Transactions of the store.
    case beforeEpoch, afterEpoch, beforeFence, afterFence, beforeEnd, afterEnd
    case beforeInsert, afterInsert, beforeClaim, afterClaim, beforeRelease, afterRelease
    case beforeAcknowledge, afterAcknowledge, beforeAction, afterAction
    case beforeSetting, afterSetting, beforeImport, afterImport
    // Files of an import.
    case beforeImportRename, afterImportRename
    // What the core that runs tells those who wait.
    case beforeSend, afterSend
    // A main, or a core for calls, asks the core that runs to give way, that was asked, and the asker has its answer.
    case beforeRequest, beforeReply, afterReply
    // What a person sees.
    case beforePresent, afterPresent

    #if FaultPoints
    /// Whether this build has fault points and witness logs.
    package static let areBuiltIn = true

    /// Ends the process here if this is the place and the time that the environment names.
    package static func reached(_ point: FaultPoint) {
        guard let armed, armed.point == point else { return }
        if hits.add(1, ordering: .relaxed).newValue == armed.hit {
            let line = "fault point \(point.rawValue):\(armed.hit)\n"
            _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
            kill(getpid(), SIGKILL)
            while true { pause() }
        }
    }

    /// What an environment's value names: `place` or `place:hit`, the first hit being 1.
    static func parse(_ value: String) -> (point: FaultPoint, hit: Int)? {
        let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let point = FaultPoint(rawValue: String(parts[0])) else { return nil }
        guard parts.count == 2 else { return (point, 1) }
        guard let hit = Int(parts[1]), hit > 0 else { return nil }
        return (point, hit)
    }

    private static let armed = getenv("SHARED_CORE_FAULT").flatMap { parse(String(cString: $0)) }
    private static let hits = Atomic(0)
    #else
    /// Whether this build has fault points and witness logs.
    package static let areBuiltIn = false

    /// Nothing.
    @inline(__always) package static func reached(_: FaultPoint) {}
    #endif
}
