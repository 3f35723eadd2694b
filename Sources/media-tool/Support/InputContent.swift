internal import Glibc
import MediaEngine

/// All that a file or a pipe holds, or what of it came before a signal.
struct InputContent {
    /// What was read.
    let bytes: [UInt8]
    /// Whether a signal ended the reading before the end.
    let isInterrupted: Bool

    /// Whoever writes to the pipe may have got the signal, too, and has so long for the last of it.
    private static let lastWait = Duration.seconds(1)
    /// A signal is looked for that often while nothing comes, in ms.
    private static let pollTime: Int32 = 100
    private static let blockByteCount = 1 << 16

    /// Reads what is at `path`, at most `limit` bytes and one block more; a signal ends the reading of a pipe, and is answered by
    /// that.
    ///
    /// - Throws: `ToolFailure` when it cannot be read.
    static func read(_ path: String, limit: Int) throws -> InputContent {
        let content = try InputContent(path: path, limit: limit) { Interruption.hasCome }
        if Interruption.hasCome, InputPath.isPipe(path) { Interruption.answer() }
        return content
    }

    /// Reads what is at `path`, at most `limit` bytes and one block more.
    ///
    /// - Parameters:
    ///   - path: The file or the pipe.
    ///   - limit: After so many bytes it ends.
    ///   - isEnded: Whether a signal has come.
    /// - Throws: `ToolFailure` when it cannot be read.
    init(path: String, limit: Int, isEnded: () -> Bool) throws {
        func failure() -> ToolFailure {
            let reason = String(cString: strerror(errno))
            return ToolFailure("\(InputPath.name(of: path)) cannot be read: \(reason). Check its name and permissions.")
        }
        let descriptor = ReadingEnd.open(path)
        guard descriptor >= 0 else { throw failure() }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: Self.blockByteCount)
        var deadline: MediaTime?
        var isInterrupted = false
        while bytes.count <= limit {
            if deadline == nil, isEnded() { deadline = MonotonicClock.current + Self.lastWait }
            if let deadline, MonotonicClock.current >= deadline {
                isInterrupted = true
                break
            }
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let readyCount = poll(&state, 1, Self.pollTime)
            // What else fails here fails in reading, too, and is told there.
            if readyCount == 0 || readyCount < 0 && errno == EINTR { continue }
            let count = Glibc.read(descriptor, &block, block.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw failure() }
            guard count > 0 else { break }
            bytes += block[..<count]
        }
        self.bytes = bytes
        self.isInterrupted = isInterrupted
    }
}
