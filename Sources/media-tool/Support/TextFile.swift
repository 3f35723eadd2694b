internal import Glibc

/// Short text files: session descriptions, reports.
enum TextFile {
    /// The bytes of the file at `path`, at most `limit` and one block more.
    ///
    /// - Throws: `ToolFailure` when it cannot be read, or a signal comes before its end: half of it is of no use.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        let content = try InputContent(path: path, limit: limit) { Interruption.hasCome }
        guard !content.isInterrupted else {
            throw ToolFailure("Interrupted before \(InputPath.name(of: path)) came to its end. Start it again.")
        }
        return content.bytes
    }

    /// Replaces the file at `path` by `text`; a secret one is its owner's alone.
    ///
    /// - Throws: `ToolFailure` when it cannot be written, or others may read what is secret
    static func write(_ text: String, to path: String, isSecret: Bool = false) throws {
        if isSecret, SecretFile.isOpen(path) { throw SecretFile.failure(path) }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, isSecret ? 0o600 : 0o644)
        guard descriptor >= 0 else {
            throw ToolFailure("\(path) cannot be written: \(reason). Check its folder and permissions.")
        }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw ToolFailure("Writing \(path) failed: \(reason). Free space on its disk.") }
            done += count
        }
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
