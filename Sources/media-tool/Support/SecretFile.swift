internal import Glibc

/// Files with what nobody else may read.
enum SecretFile {
    /// Whether others may read a file; not so what is no file, as a pipe.
    static func isOpen(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o077 != 0
    }

    /// The first line of a file that nobody else may read, or of standard input.
    ///
    /// - Throws: `ToolFailure` when it cannot be read, or others may read it
    static func line(of argument: String) throws -> String {
        let path = InputPath.path(of: argument)
        if argument != "-", isOpen(path) { throw failure(argument) }
        let text = String(decoding: try TextFile.read(path, limit: 4096), as: UTF8.self)
        return String(text.prefix { !$0.isNewline })
    }

    /// Opens a file to write to its end, which is made for nobody else to read.
    ///
    /// - Throws: `ToolFailure` when it cannot be, or others may read it
    static func openForAppending(_ path: String) throws -> Int32 {
        // Nothing waits for a reader of a pipe.
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else {
            throw ToolFailure("\(path) cannot be written: \(String(cString: strerror(errno))).")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            close(descriptor)
            throw ToolFailure("\(path) is no file of one's own. Name another one.")
        }
        guard status.st_mode & 0o077 == 0 else {
            close(descriptor)
            throw failure(path)
        }
        return descriptor
    }

    /// The words for that.
    static func failure(_ name: String) -> ToolFailure {
        ToolFailure("Others may read \(name). Say: chmod 600 \(name)")
    }
}
