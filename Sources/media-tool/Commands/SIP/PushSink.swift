internal import CallBasics
internal import Glibc
import MediaEngine
import SIP

/// Where the pushes of `sip server` go: a line each, as a datagram, into a file, or both.
final class PushSink {
    private let address: SocketAddress?
    private var socketNumber: Int32 = -1
    private var logNumber: Int32 = -1

    /// - Throws: `ToolFailure` when the file cannot be written
    init(to address: SocketAddress?, log path: String?) throws {
        self.address = address
        if let address {
            socketNumber = socket(
                address.isIPv4 ? AF_INET : AF_INET6,
                Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue),
                0
            )
        }
        guard let path else { return }
        logNumber = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        // Also one that was there already.
        guard logNumber >= 0, fchmod(logNumber, 0o600) == 0 else {
            throw ToolFailure("\(path) cannot be written: \(String(cString: strerror(errno))).")
        }
    }

    deinit { for number in [socketNumber, logNumber] where number >= 0 { close(number) } }

    /// Sends a push; a datagram may get lost.
    ///
    /// - Throws: `ToolFailure` when the file is full
    func send(_ push: ServerPush) throws {
        // One line of words, whatever the user is called.
        let words = [
            ("method", push.method), ("user", push.user), ("callid", push.callID), ("from", push.from),
            ("contact", push.contact.bytes.text),
        ]
        let line =
            "PUSH " + words.map { "\($0)=\($1.printable.replacing(" ", with: "%20"))" }.joined(separator: " ") + "\n"
        let bytes = Array(line.utf8)
        if let address, socketNumber >= 0 {
            _ = address.withSystemAddress { sendto(socketNumber, bytes, bytes.count, 0, $0, $1) }
        }
        guard logNumber >= 0, write(logNumber, bytes, bytes.count) != bytes.count else { return }
        throw ToolFailure("A push could not be written: \(String(cString: strerror(errno))).")
    }
}
