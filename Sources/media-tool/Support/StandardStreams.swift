internal import Glibc
import Synchronization

/// Standard output, written at once and whole.
enum StandardOutput {
    static func write(_ text: String) { writeAll(text, to: STDOUT_FILENO) }
}

/// Standard error, for notices and progress.
enum StandardError {
    /// Whether a person watches.
    static let isTerminal = isatty(STDERR_FILENO) == 1

    static func write(_ text: String) { writeAll(text, to: STDERR_FILENO) }
}

/// Lines of several threads follow each other and do not mix.
private let writing = Mutex(())

private func writeAll(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { bytes in
        writing.withLock { _ in
            var done = 0
            while done < bytes.count, let base = bytes.baseAddress {
                let count = Glibc.write(descriptor, base + done, bytes.count - done)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                done += count
            }
        }
    }
}

/// The variables of the process.
enum ProcessEnvironment {
    static var variables: [String: String] {
        var result: [String: String] = [:]
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if let equals = text.firstIndex(of: "=") {
                result[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            next += 1
        }
        return result
    }
}
