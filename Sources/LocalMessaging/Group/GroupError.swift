public import CallBasics
import Glibc

/// Why a group's directory, or a name in it, cannot be used.
public typealias GroupError = Failure<GroupFault>

/// The kinds of `GroupError`.
public enum GroupFault: Hashable, Sendable {
    /// A name that would leave the directory, or that a socket address has no room for.
    case badName
    /// There is no place for groups: `XDG_RUNTIME_DIR` is not set.
    case noRuntimeDirectory
    /// The directory is another user's, or others may write to it.
    case unsafe
    /// There is nothing of that name, and it was not to be made.
    case missing
    /// Not a directory.
    case notADirectory
    /// The system refused.
    case system(errno: CInt)
}

extension GroupError {
    init(_ what: String, errno code: CInt) {
        self.init(.system(errno: code), "\(what) failed: \(String(cString: strerror(code))).")
    }
}
