internal import CallBasics
import Glibc

/// A name in a group that is served, or was until its server was killed.
public struct ServedName: Hashable, Sendable {
    /// The server's name.
    public let name: String
    /// Whether a process serves it now; the socket of one that was killed stays until the next server replaces it.
    public let isLive: Bool
    /// The process that serves it, as it wrote beside its lock; nil when there is none.
    public let process: Int32?
}

extension GroupContainer {
    /// The names of servers in this group, in alphabetic order.
    ///
    /// Nobody is connected to: the lock of each name tells whether its server lives.
    ///
    /// - Returns: Live ones, and those whose process was killed.
    /// - Throws: `GroupError` when the directory cannot be read.
    public func servers() throws(GroupError) -> [ServedName] {
        try entries().filter(isServerSocket).sorted().map { name in
            let (isLive, process) = ServerLock.state(of: name, in: self)
            return ServedName(name: name, isLive: isLive, process: process)
        }
    }

    private func entries() throws(GroupError) -> [String] {
        // A descriptor of its own, because each open directory has one position.
        let descriptor = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0, let directory = fdopendir(descriptor) else {
            let code = errno
            close(descriptor)
            throw GroupError("Reading the directory \(path)", errno: code)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            )
        }
        return names
    }

    private func isServerSocket(_ name: String) -> Bool {
        var status = stat()
        return (try? Self.check(name)) != nil
            && fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}
