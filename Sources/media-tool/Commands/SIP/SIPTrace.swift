internal import CallBasics
internal import Glibc
import MediaEngine
import SIP
import SIPTransport
import Synchronization

/// A file of the messages that are sent and received: text, or a capture for Wireshark where its name ends with .pcap.
///
/// In a capture each message is a datagram, whatever carried it.
final class SIPTrace: Sendable {
    private enum Output {
        case text(CInt)
        case capture(PcapWriter)
    }

    private struct State {
        var output: Output?
        var failure: String?
    }

    private let path: String
    private let unixNanosecondsAtZero: Int64
    private let state: Mutex<State>

    /// Creates or empties the file.
    ///
    /// - Parameters:
    ///   - path: Where it goes.
    ///   - hasSecrets: Whether only its owner may read it.
    /// - Throws: `ToolFailure` when it cannot be written, or others may read what has secrets
    init(path: String, hasSecrets: Bool) throws {
        self.path = path
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let unix = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
        unixNanosecondsAtZero = unix - SIPEndpoint<UserAgent>.now.nanoseconds
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, hasSecrets ? 0o600 : 0o644)
        guard file >= 0 else { throw Self.failure(path) }
        var status = stat()
        if hasSecrets, fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 {
            Glibc.close(file)
            throw ToolFailure("Others may read \(path), which will have secrets. Say: chmod 600 \(path)")
        }
        guard path.hasSuffix(".pcap") else {
            // What cannot be cut short, such as a terminal, is written on.
            _ = ftruncate(file, 0)
            state = Mutex(State(output: .text(file)))
            return
        }
        Glibc.close(file)
        let writer = try PcapWriter(path: path, unixNanosecondsAtZero: unixNanosecondsAtZero)
        state = Mutex(State(output: .capture(writer)))
    }

    /// Writes a message; what fails is told at the end.
    func write(_ message: TappedMessage) {
        state.withLock { state in
            guard state.failure == nil, let output = state.output else { return }
            let (flow, isSent) = (message.flow, message.isSent)
            let (source, destination) = isSent ? (flow.local, flow.remote) : (flow.remote, flow.local)
            switch output {
            case .text(let file):
                let time = UTCTime(unixMilliseconds: (unixNanosecondsAtZero + message.time.nanoseconds) / 1_000_000)
                let line =
                    "--- \(time.date) \(time.time) \(isSent ? "sent" : "received") \(flow.transport) "
                    + "\(source) > \(destination), \(English.count(message.bytes.count, "byte"))\n"
                let bytes = Array(line.utf8) + message.bytes + Array("\n".utf8)
                if !Self.write(bytes, to: file) { state.failure = Self.failure(path).description }
            case .capture(let writer):
                do throws(PcapError) {
                    try writer.write(message.bytes.span, from: source, to: destination, at: message.time)
                    try writer.flush()
                } catch {
                    state.failure = "\(error)"
                }
            }
        }
    }

    /// Closes the file; says on standard error when something is missing in it.
    func close() {
        let failure = state.withLock { state in
            switch state.output.take() {
            case .text(let file)?: _ = Glibc.close(file)
            case .capture(let writer)?: do throws(PcapError) { try writer.close() } catch { state.failure = "\(error)" }
            case nil: return String?.none
            }
            return state.failure
        }
        if let failure { StandardError.write("Note: \(failure)\n") }
    }

    private static func write(_ bytes: [UInt8], to file: CInt) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func failure(_ path: String) -> ToolFailure {
        ToolFailure("\(path) cannot be written: \(String(cString: strerror(errno))). Free space, or write elsewhere.")
    }
}
