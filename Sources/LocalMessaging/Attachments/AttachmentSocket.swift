import CLinux
import Glibc

/// The socket beside a connection that passes its descriptors (unix(7), SCM_RIGHTS).
///
/// swift-nio reads and writes streams without control messages, and would drop descriptors. So those of a frame go
/// through this socket just before the frame goes through the stream: when the frame arrives, they are there. It is made
/// when the first descriptors are to be passed.
///
/// Thread: any; each call is one system call that does not wait.
package final class AttachmentSocket: Sendable {
    static let maximumDescriptorCount = 8

    private let file: OpenFile

    package init(owning descriptor: CInt) {
        file = OpenFile(owning: descriptor)
    }

    /// What became of a call.
    enum Outcome<Value> {
        case done(Value)
        /// The peer has not read earlier ones yet, or the user's processes have too many under way (ETOOMANYREFS).
        case later
        case failed(String)
    }

    /// Passes descriptors beside eight bytes that say to which frame they belong.
    func pass(_ files: [OpenFile], for ordinal: UInt64) -> Outcome<Void> {
        var ordinal = ordinal.bigEndian
        let descriptors = files.map(\.descriptor)
        let sent = linux_send_descriptors(file.descriptor, &ordinal, 8, descriptors, CInt(descriptors.count))
        switch sent {
        case 8: return .done(())
        case -Int(EAGAIN), -Int(ETOOMANYREFS): return .later
        default: return .failed(String(cString: strerror(CInt(-sent))))
        }
    }

    /// The descriptors of the frame with `ordinal`, which are here when the frame is.
    func receive(for ordinal: UInt64) -> Outcome<[OpenFile]> {
        var found: UInt64 = 0
        var count: CInt = 0
        let (received, files) = withUnsafeTemporaryAllocation(of: CInt.self, capacity: Self.maximumDescriptorCount) {
            let received = linux_receive_descriptors(file.descriptor, &found, 8, $0.baseAddress, &count)
            return (received, $0[..<Int(count)].map { OpenFile(owning: $0) })
        }
        guard received == 8 else {
            return received == -Int(EAGAIN) ? .later : .failed("descriptors that did not arrive whole.")
        }
        guard UInt64(bigEndian: found) == ordinal else { return .failed("descriptors of another frame.") }
        return .done(files)
    }

    /// Connects to the server's socket at `path` and says `token` there.
    static func connect(to path: String, token: [UInt8]) -> AttachmentSocket? {
        guard let descriptor = makeSocket() else { return nil }
        let connection = AttachmentSocket(owning: descriptor)
        let connected = withSocketAddress(path) { Glibc.connect(descriptor, $0, $1) }
        guard connected == 0, linux_send_descriptors(descriptor, token, token.count, nil, 0) == token.count else {
            return nil
        }
        return connection
    }

    fileprivate static func makeSocket() -> CInt? {
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        return descriptor >= 0 ? descriptor : nil
    }

    /// The token that a client said first, and who it is.
    fileprivate func introduction() -> (token: [UInt8], process: pid_t)? {
        var count: CInt = 0
        var credentials = linux_credentials()
        let token = withUnsafeTemporaryAllocation(byteCount: AttachmentListener.tokenByteCount, alignment: 1) { bytes in
            let received = withUnsafeTemporaryAllocation(of: CInt.self, capacity: Self.maximumDescriptorCount) {
                let received = linux_receive_descriptors(
                    file.descriptor,
                    bytes.baseAddress,
                    bytes.count,
                    $0.baseAddress,
                    &count
                )
                for descriptor in $0[..<Int(count)] { close(descriptor) }
                return received
            }
            return received == bytes.count ? [UInt8](bytes) : nil
        }
        guard let token, linux_peer_credentials(file.descriptor, &credentials) == 0 else { return nil }
        return (token, credentials.process)
    }
}

/// Where clients of a server connect their sockets for descriptors.
///
/// Nobody waits on it: a client says in its stream that it has connected, and then its connection is accepted.
final class AttachmentListener: Sendable {
    static let tokenByteCount = 16

    private let file: OpenFile

    /// Takes over a listening, non-blocking SOCK_SEQPACKET socket.
    package init(owning descriptor: CInt) {
        file = OpenFile(owning: descriptor)
    }

    /// Accepts every connection that waits, and hands those that said a token to `take`.
    func acceptAll(_ take: (_ token: [UInt8], _ process: pid_t, _ socket: AttachmentSocket) -> Void) {
        while true {
            let descriptor = linux_accept(file.descriptor)
            guard descriptor >= 0 else { return }
            let socket = AttachmentSocket(owning: descriptor)
            if let (token, process) = socket.introduction() { take(token, process, socket) }
        }
    }
}

/// Calls `body` with the address of the Unix socket at `path`, which fits one.
func withSocketAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { room in
        precondition(path.utf8.count < room.count, "Names are checked against the room of an address.")
        room.copyBytes(from: path.utf8)
    }
    return withUnsafePointer(to: address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
}
