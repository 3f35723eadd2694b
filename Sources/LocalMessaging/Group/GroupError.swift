import Glibc

/// Why a group's directory, or a name in it, cannot be used.
public struct GroupError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: Hashable, Sendable {
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

    /// The kind of failure.
    public let code: Code
    /// What failed and the remedy.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    init(_ what: String, errno code: CInt) {
        self.init(.system(errno: code), "\(what) failed: \(String(cString: strerror(code))).")
    }

    /// The message.
    public var description: String { message }
}
