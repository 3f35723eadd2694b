internal import CallBasics
import Glibc

/// The directory that the processes of one group share: sockets, locks, and whatever else they keep together.
///
/// It is opened once and used through its descriptor, so that nobody can put another directory in its place, and so that
/// a long path does not limit socket addresses. It belongs to this user, and nobody else may write to it; it is made
/// with mode 0700 when it is missing.
public struct GroupContainer: Sendable {
    /// The most bytes of a name: a socket address (unix(7)) holds 107 bytes, and the way through the descriptor takes the rest.
    package static let maximumNameByteCount = 64

    /// Where the directory is.
    public let path: String
    private let directory: OpenDirectory

    /// The group in the directory called `path`.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - isCreated: Whether it is made when it is missing.
    /// - Throws: `GroupError` when it is not a directory, belongs to another user, or others may write to it.
    public init(directory path: String, isCreated: Bool = true) throws(GroupError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw GroupError(.badName, "\"\(path)\" is no path of a group's directory.")
        }
        // With a slash at its end, a link would be followed.
        let end = path.lastIndex { $0 != "/" }.map { path.index(after: $0) } ?? path.endIndex
        self.path = String(path[..<end])
        directory = try OpenDirectory(self.path, isCreated: isCreated)
    }

    /// The group called `identifier`, a directory of that name in `$XDG_RUNTIME_DIR`.
    ///
    /// - Throws: `GroupError` when the name would leave that directory, or there is none.
    public init(identifier: String) throws(GroupError) {
        try Self.check(identifier, as: "Group identifier")
        guard let runtime = getenv("XDG_RUNTIME_DIR"), runtime.pointee != 0 else {
            throw GroupError(
                .noRuntimeDirectory,
                "XDG_RUNTIME_DIR is not set, so there is no place for the group \(identifier). Name a directory instead."
            )
        }
        try self.init(directory: "\(String(cString: runtime))/\(identifier)")
    }

    /// The open directory, for system calls that take one; open as long as a copy of this value lives.
    package var descriptor: CInt { directory.descriptor }

    /// The path of a directory called `name` in the group, made with mode 0700 when it is missing.
    public func subdirectory(_ name: String) throws(GroupError) -> String {
        try Self.check(name, as: "Directory name")
        _ = try OpenDirectory("\(path)/\(name)", isCreated: true)
        return "\(path)/\(name)"
    }

    /// The path of a file called `name` in the group.
    package func file(_ name: String) throws(GroupError) -> String {
        try Self.check(name, as: "File name")
        return "\(path)/\(name)"
    }

    /// Throws unless `name` stays in its directory and fits a socket address: letters, digits, `.`, `-`, `_`, with no
    /// dot at the start.
    package static func check(_ name: String, as what: String = "Server name") throws(GroupError) {
        let bytes = name.utf8
        guard bytes.count <= maximumNameByteCount else {
            throw GroupError(
                .badName,
                "\(what) \"\(name.prefix(80))\" has \(bytes.count) bytes. "
                    + "A socket address has room for \(maximumNameByteCount)."
            )
        }
        let isPlain = bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isPlain, !bytes.isEmpty, bytes.first != UInt8(ascii: ".") else {
            throw GroupError(
                .badName,
                "\(what) \"\(name)\" could leave its directory. Use letters, digits, \".\", \"-\" and \"_\", "
                    + "and no dot at the start."
            )
        }
    }

    /// The path of a socket that fits an address however long the group's own path is (proc(5), `/proc/self/fd`).
    func address(of name: String) -> String { "/proc/self/fd/\(descriptor)/\(name)" }
}

/// A directory held open.
private final class OpenDirectory: Sendable {
    let descriptor: CInt

    /// Opens the directory at `path`.
    init(_ path: String, isCreated: Bool) throws(GroupError) {
        if isCreated { try Self.make(path) }
        // A link in the last place is followed by nobody: it could point to what another user owns.
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            guard code != ENOTDIR, code != ELOOP else {
                throw GroupError(.notADirectory, "\(path) is not a directory. Remove it, or name another group.")
            }
            guard code != ENOENT else {
                throw GroupError(
                    .missing,
                    "There is no group in \(path). Start a server there, or name another directory."
                )
            }
            throw GroupError("Opening the directory \(path)", errno: code)
        }
        try checkOwner(of: path)
    }

    /// Makes the directory at `path`, and those above it, when they are missing.
    private static func make(_ path: String) throws(GroupError) {
        var above = path.dropFirst()
        var ends: [String.Index] = []
        while let slash = above.firstIndex(of: "/") {
            ends.append(slash)
            above = above[above.index(after: slash)...]
        }
        for end in ends + [path.endIndex] {
            let part = String(path[..<end])
            guard mkdir(part, 0o700) != 0, errno != EEXIST else { continue }
            let code = errno
            var status = stat()
            guard stat(part, &status) != 0 else { continue }
            throw GroupError("Making the directory \(part)", errno: code)
        }
    }

    private func checkOwner(of path: String) throws(GroupError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw GroupError("Looking at \(path)", errno: errno) }
        guard status.st_uid == geteuid() else {
            throw GroupError(.unsafe, "\(path) belongs to user \(status.st_uid). Use a directory of your own.")
        }
        guard status.st_mode & 0o022 == 0 else {
            // A place that is shared on purpose, as /tmp is, stays so.
            let isShared = status.st_mode & S_ISVTX != 0
            let remedy = isShared ? "Use a directory of your own in it." : "Take that right away: chmod 700 '\(path)'."
            throw GroupError(.unsafe, "Others may write to \(path). \(remedy)")
        }
    }

    /// Also where its making has failed.
    deinit {
        if descriptor >= 0 { close(descriptor) }
    }
}
