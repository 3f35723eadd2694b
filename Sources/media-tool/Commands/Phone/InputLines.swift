internal import Dispatch
internal import Glibc

/// The lines of standard input, as they come, to its end; who writes faster than they are taken waits.
struct InputLines: Sendable {
    /// A line beyond this is left out.
    private static let longest = 1 << 16
    /// Lines that are read and not taken.
    private static let waiting = 256

    let lines: AsyncStream<String>
    private let room = DispatchSemaphore(value: 0)

    /// Begins to read.
    init() {
        let continuation: AsyncStream<String>.Continuation
        (lines, continuation) = AsyncStream.makeStream()
        for _ in 0..<Self.waiting { room.signal() }
        DispatchQueue(label: "media-tool.lines").async { [room] in
            func tell(_ line: [UInt8]) {
                room.wait()
                continuation.yield(String(decoding: line, as: UTF8.self))
            }
            var (line, isTooLong): ([UInt8], Bool) = ([], false)
            var bytes = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN {
                    // Another program has left it so that it does not wait.
                    var state = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                    _ = poll(&state, 1, -1)
                    continue
                }
                guard count > 0 else { break }
                for byte in bytes[..<count] {
                    guard byte != 0x0A else {
                        if !isTooLong { tell(line) }
                        (line, isTooLong) = ([], false)
                        continue
                    }
                    if line.count < Self.longest { line.append(byte) } else { isTooLong = true }
                }
            }
            if !line.isEmpty, !isTooLong { tell(line) }
            continuation.finish()
        }
    }

    /// A line was taken: there is room for another.
    func take() { room.signal() }
}
