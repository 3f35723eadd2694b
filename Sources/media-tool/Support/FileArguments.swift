import ArgumentParser
internal import Glibc

/// The files that a command line names, compared before any of them is opened: creating one empties it.
struct FileArguments {
    /// A file by what it really is: its place on its disk, or, before it is there, its folder's and its name.
    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
        let name: String

        /// The identity of the file at `path`; nil for what is no file (a pipe, a terminal, /dev/null), and what cannot be.
        init?(_ path: String) {
            if let status = Self.status(path) {
                guard status.st_mode & S_IFMT == S_IFREG else { return nil }
                (device, inode, name) = (UInt64(status.st_dev), UInt64(status.st_ino), "")
                return
            }
            let parts = path.split(separator: "/", omittingEmptySubsequences: false)
            guard let last = parts.last, !last.isEmpty else { return nil }
            let folder = parts.count == 1 ? "." : parts.dropLast().joined(separator: "/") + "/"
            guard let status = Self.status(folder) else { return nil }
            (device, inode, name) = (UInt64(status.st_dev), UInt64(status.st_ino), String(last))
        }

        private static func status(_ path: String) -> stat? {
            var result = stat()
            return stat(path, &result) == 0 ? result : nil
        }
    }

    private var inputs: [Identity: String] = [:]
    private var outputs: [Identity: String] = [:]

    init() {}

    /// Notes a file that is read.
    mutating func read(_ option: String, _ path: String?) {
        guard let path, let identity = Identity(path) else { return }
        inputs[identity] = "\(option) \(path)"
    }

    /// Notes a file that is written.
    ///
    /// - Throws: `ValidationError` when it is one of those that are read, or written already.
    mutating func write(_ option: String, _ path: String?) throws {
        guard let path, let identity = Identity(path) else { return }
        if let input = inputs[identity] {
            throw ValidationError("'\(option) \(path)' would overwrite what '\(input)' reads. Name another file.")
        }
        if let output = outputs[identity] {
            throw ValidationError("'\(option) \(path)' and '\(output)' are one file. Name another one.")
        }
        outputs[identity] = "\(option) \(path)"
    }
}
