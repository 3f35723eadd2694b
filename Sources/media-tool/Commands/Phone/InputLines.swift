internal import Dispatch
internal import Glibc

/// The lines of standard input, as they come, to its end.
enum InputLines {
    /// A line beyond this is left out.
    private static let longest = 1 << 16

    /// Lines that come faster than they are taken wait; beyond 256 they are lost.
    static func read() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(256))
        let queue = DispatchQueue(label: "media-tool.lines")
        queue.async {
            var (line, isTooLong): ([UInt8], Bool) = ([], false)
            var bytes = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                for byte in bytes[..<count] {
                    guard byte != 0x0A else {
                        if !isTooLong { continuation.yield(String(decoding: line, as: UTF8.self)) }
                        (line, isTooLong) = ([], false)
                        continue
                    }
                    if line.count < longest { line.append(byte) } else { isTooLong = true }
                }
            }
            if !line.isEmpty, !isTooLong { continuation.yield(String(decoding: line, as: UTF8.self)) }
            continuation.finish()
        }
        return lines
    }
}
