public import CallBasics
internal import Glibc

/// Why the lock of a group could not be used.
public typealias LockError = Failure<LockFault>

/// The kinds of `LockError`.
public enum LockFault: Hashable, Sendable {
    /// The lock file may not be written: a read-only directory, or another user's.
    case readOnly
    /// The name is taken by something that is no lock file of this user.
    case foreign
    /// The lock file was removed or replaced after it had been opened.
    case replaced
    /// This very object already holds the byte, or waits for it.
    case inUse
    /// No descriptor, thread or memory was left, or the system refused for another reason.
    case system
}

extension LockError {
    init(_ what: String, path: String, errno code: CInt) {
        let reason = String(cString: strerror(code))
        switch code {
        case EACCES, EPERM, EROFS:
            self.init(
                .readOnly,
                "\(what) \(path) failed: \(reason). A core needs a group directory that this user may write to."
            )
        case ELOOP:
            self.init(
                .foreign,
                "\(path) is a symbolic link. Remove it: a lock is only taken on a file of the group itself."
            )
        case EMFILE, ENFILE:
            self.init(
                .system,
                "\(what) \(path) failed: \(reason). Close descriptors, or raise the limit (`ulimit -n`)."
            )
        default:
            self.init(.system, "\(what) \(path) failed: \(reason).")
        }
    }
}
