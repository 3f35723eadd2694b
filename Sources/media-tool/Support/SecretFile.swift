internal import Glibc

/// Files with what nobody else may read.
enum SecretFile {
    /// Whether others may read a file; not so what is no file, as a pipe.
    static func isOpen(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o077 != 0
    }

    /// The words for that.
    static func failure(_ name: String) -> ToolFailure {
        ToolFailure("Others may read \(name). Say: chmod 600 \(name)")
    }
}
