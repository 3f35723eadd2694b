import Glibc
import Synchronization

/// The reading end of what others write into: a pipe, a socket, a terminal.
///
/// Its writer is waited for as long as it takes, unless the program is about to end.
/// Thread: `isGivenUp` any, also a signal's handler; the rest whoever reads, never the media thread.
package enum ReadingEnd {
    private static let givenUp = Atomic(false)

    /// How often who waits looks whether that is given up, in milliseconds.
    private static var interval: Int32 { 100 }

    /// Whether no writer is waited for any more, in the whole process: what has come is then all that comes.
    package static var isGivenUp: Bool {
        get { givenUp.load(ordering: .relaxed) }
        set { givenUp.store(newValue, ordering: .relaxed) }
    }

    /// Opens what is at `path` to read it, and waits for nobody who is to write into it.
    ///
    /// Standard input that is no file is taken as it is: a socket, or the pipe of another user, opens by no path.
    ///
    /// - Returns: The descriptor, or -1, and `errno` says why.
    package static func open(_ path: String) -> Int32 {
        var status = stat()
        if path == "/dev/stdin", fstat(STDIN_FILENO, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
        }
        let isPipe = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
        return Glibc.open(path, O_RDONLY | O_CLOEXEC | (isPipe ? O_NONBLOCK : 0))
    }

    /// Waits until `descriptor` has bytes, or its end; answers false once that is given up.
    static func wait(for descriptor: Int32) -> Bool {
        while !isGivenUp {
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let readyCount = poll(&state, 1, interval)
            // What else fails here fails in reading, too, and is told there.
            if readyCount > 0 || readyCount < 0 && errno != EINTR { return true }
        }
        return false
    }
}
