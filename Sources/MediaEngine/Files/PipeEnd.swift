import Glibc
import Synchronization

/// The writing end of a pipe or a device, whose reader may be slow, or may have stopped.
///
/// While sound goes on, a full pipe is waited for as long as it takes. Once the file is to be closed, it is given up when
/// nothing has been read for 2 s.
/// Thread: `hurry` any; the rest whoever writes.
final class PipeEnd: Sendable {
    private let isClosing = Atomic(false)

    /// How often a writer looks whether it is to hurry, in milliseconds.
    private static var interval: Int32 { 100 }
    /// So often, once it is.
    private static var patience: Int { 20 }

    /// The end of a pipe that is open as `descriptor`; nil for a regular file.
    ///
    /// Writes that find no room fail from now on, with EAGAIN.
    init?(_ descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFREG else { return nil }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// Waits no longer than need be from now on: the file is to be closed.
    func hurry() { isClosing.store(true, ordering: .releasing) }

    /// Waits until `descriptor` takes bytes; answers false when its reader seems to have stopped, and the file is to be closed.
    func waitForRoom(_ descriptor: Int32) -> Bool {
        var idle = 0
        while idle < Self.patience {
            var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&state, 1, Self.interval) > 0 { return true }
            if isClosing.load(ordering: .acquiring) { idle += 1 }
        }
        return false
    }

    /// What became of the pipe of that name, and what to do.
    static func givenUp(_ name: String) -> String {
        "Nobody reads \(name), which is full. Let its reader go on, or write to a file."
    }
}
