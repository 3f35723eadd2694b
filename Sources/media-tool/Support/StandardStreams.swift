internal import Glibc
import MediaEngine
import Synchronization

/// Standard output, written at once and whole.
enum StandardOutput {
    private static let code = Atomic<Int32>(0)

    /// What went wrong in writing, as errno; nil when nothing did.
    static var failure: Int32? {
        let code = code.load(ordering: .relaxed)
        return code == 0 ? nil : code
    }

    /// Writes; once that has failed (a full disk, a reader that is gone), the command ends as by Ctrl-C, and with 1.
    static func write(_ text: String) {
        guard failure == nil, let error = writeAll(text.printableLines, to: STDOUT_FILENO) else { return }
        fail(error)
    }

    /// Ends the command also when the reader of a pipe goes while there is nothing to write: for those that run for what they
    /// print.
    static func watch() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        Task.detached {
            await BlockingWork.run {
                // No event is asked for: POLLERR is told all the same.
                var state = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
                while poll(&state, 1, -1) <= 0 {}
                fail(EPIPE)
            }
        }
    }

    private static func fail(_ error: Int32) {
        code.store(error, ordering: .relaxed)
        Interruption.end()
    }
}

/// Standard error, for notices and progress.
enum StandardError {
    /// Whether a person watches.
    static let isTerminal = isatty(STDERR_FILENO) == 1

    /// Whether a line of progress stands on the terminal, which others are not to be glued to.
    private static let hasProgress = Atomic(false)
    private static let startOfLine = "\r\u{1B}[K"

    /// Writes lines; whom nobody hears has nobody to tell.
    static func write(_ text: String) {
        clearProgress()
        _ = writeAll(text.printableLines, to: STDERR_FILENO)
    }

    /// Shows a line in the place of the one that was shown last.
    static func showProgress(_ text: String) {
        hasProgress.store(true, ordering: .relaxed)
        _ = writeAll(startOfLine + text, to: STDERR_FILENO)
    }

    /// Takes the line of progress away.
    static func clearProgress() {
        guard hasProgress.exchange(false, ordering: .relaxed) else { return }
        _ = writeAll(startOfLine, to: STDERR_FILENO)
    }
}

/// Lines of several threads follow each other and do not mix.
private let writing = Mutex(())

/// Answers why not all could be written, as errno.
private func writeAll(_ text: String, to descriptor: Int32) -> Int32? {
    var text = text
    return text.withUTF8 { bytes in
        writing.withLock { _ in
            var done = 0
            while done < bytes.count, let base = bytes.baseAddress {
                let count = Glibc.write(descriptor, base + done, bytes.count - done)
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN {
                    // Another program has left it so that it does not wait.
                    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&state, 1, -1)
                    continue
                }
                guard count > 0 else { return count < 0 ? errno : EIO }
                done += count
            }
            return nil
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
