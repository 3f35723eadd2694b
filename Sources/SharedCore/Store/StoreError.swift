public import CallBasics
internal import GRDB
internal import Glibc

/// Why the store of a group could not be opened, read or written.
public typealias StoreError = Failure<StoreFault>

/// The kinds of `StoreError`.
public enum StoreFault: Hashable, Sendable {
    /// The database was cut, overwritten or is no database; it is left as it is.
    case damaged
    /// The disk, or the user's share of it, is full.
    case full
    /// The database or its directory may not be written.
    case readOnly
    /// Another process held the database for longer than the busy timeout.
    case busy
    /// The database was written by a later version, whose schema has this number, or by another program (0).
    case foreign(version: Int)
    /// A later owner began, or a main fenced the group: the writer's epoch is over.
    case fenced(epoch: Epoch, current: Epoch)
    /// The directory is on a network file system, where locks and shared memory cannot be trusted.
    case networkFileSystem
    /// A value cannot be encoded as JSON, or one in the store is of another type than was asked for.
    case badValue
    /// The store was closed.
    case closed
    /// No memory or descriptor was left, or the system refused for another reason.
    case system
}

extension StoreError {
    /// What an error of SQLite on this database means, and what to do about it.
    init(_ error: any Error, path: String) {
        if let error = error as? StoreError {
            self = error
            return
        }
        guard let error = error as? DatabaseError else {
            self.init(.system, "The database \(path) failed: \(error).")
            return
        }
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        let reason = error.message ?? "SQLite error \(error.extendedResultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH:
            self = .damaged(path, reason)
        case .SQLITE_FULL:
            self = .full(path, reason)
        case .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            if Self.isFull(directory) {
                self = .full(path, reason)
            } else if Self.isReadOnly(directory) || error.resultCode != .SQLITE_IOERR && Self.isReadOnly(path) {
                self = .readOnly(path, reason)
            } else if Self.isWithoutDescriptor {
                self.init(
                    .system,
                    "No descriptor is left to open \(path) (\(reason)). Close some, or raise the limit (`ulimit -n`)."
                )
            } else {
                self.init(
                    .system,
                    "The database \(path) could not be read or written: \(reason). See the kernel's log."
                )
            }
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL:
            self.init(
                .busy,
                "The database \(path) stayed locked by another process (\(reason)). `fuser \(path)` names it; try again."
            )
        case .SQLITE_MISUSE:
            self.init(.closed, "The store \(path) was closed. Open it again.")
        default:
            self.init(.system, "The database \(path) failed: \(reason).")
        }
    }

    static func damaged(_ path: String, _ reason: String) -> StoreError {
        StoreError(
            .damaged,
            "The database \(path) is damaged (\(reason)). It was left as it is: restore it from a copy, or move it and the "
                + "files beside it away to begin with an empty one."
        )
    }

    static func full(_ path: String, _ reason: String) -> StoreError {
        StoreError(.full, "No room to write \(path) (\(reason)). Free space on its disk; nothing was changed.")
    }

    static func readOnly(_ path: String, _ reason: String) -> StoreError {
        StoreError(
            .readOnly,
            "The database \(path) may not be written (\(reason)). A core needs a group directory that this user may write to."
        )
    }

    static func fenced(epoch: Epoch, current: Epoch, path: String) -> StoreError {
        StoreError(
            .fenced(epoch: epoch, current: current),
            "Epoch \(epoch) is over in \(path), epoch \(current) has begun. Stop this core: another has taken its place."
        )
    }

    private static func isFull(_ directory: String) -> Bool {
        var status = statvfs()
        return statvfs(directory, &status) == 0 && (status.f_bavail == 0 || status.f_files > 0 && status.f_favail == 0)
    }

    private static var isWithoutDescriptor: Bool {
        let descriptor = dup(STDIN_FILENO)
        guard descriptor < 0 else {
            close(descriptor)
            return false
        }
        return errno == EMFILE || errno == ENFILE
    }

    private static func isReadOnly(_ path: String) -> Bool {
        access(path, W_OK) != 0 && (errno == EACCES || errno == EROFS || errno == EPERM)
    }
}
