import Glibc

/// Waits for a file that somebody else writes, by the kernel's notifications of its directory.
public enum FileWatch {
    /// Waits until the file at `path` has `byteCount` bytes, for `limit` at most; whether it has.
    ///
    /// Thread: blocks the caller's.
    @discardableResult
    public static func wait(for path: String, byteCount: Int = 1, _ limit: Duration = Polling.limit) -> Bool {
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let watch = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        defer { close(watch) }
        let changes = UInt32(IN_CREATE) | UInt32(IN_MODIFY) | UInt32(IN_MOVED_TO)
        guard watch >= 0, inotify_add_watch(watch, directory, changes) >= 0 else { return false }
        let end = ContinuousClock.now + limit
        var events = [UInt8](repeating: 0, count: 4096)
        while self.byteCount(of: path) < byteCount {
            let left = (end - .now) / .milliseconds(1)
            guard left > 0 else { return false }
            var descriptor = pollfd(fd: watch, events: Int16(POLLIN), revents: 0)
            poll(&descriptor, 1, CInt(left.rounded(.up)))
            while read(watch, &events, events.count) > 0 {}
        }
        return true
    }

    /// The size of the file at `path`, -1 where there is none.
    private static func byteCount(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : -1
    }
}
