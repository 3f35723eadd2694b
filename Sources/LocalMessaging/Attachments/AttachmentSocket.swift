import CLinux
import Glibc
import Synchronization

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
    package enum Outcome<Value> {
        case done(Value)
        /// The peer has not read earlier ones yet, or the user's processes have too many under way (ETOOMANYREFS).
        case later
        /// The peer has ended; the end of its stream says how.
        case gone
        /// The system refused.
        case failed(String)
        /// The peer passed something else than it said.
        case broken(String)
    }

    /// Passes descriptors beside eight bytes that say to which frame they belong.
    func pass(_ files: [OpenFile], for ordinal: UInt64) -> Outcome<Void> {
        var ordinal = ordinal.bigEndian
        let descriptors = files.map(\.descriptor)
        let sent = linux_send_descriptors(file.descriptor, &ordinal, 8, descriptors, CInt(descriptors.count))
        switch sent {
        case 8: return .done(())
        case -Int(EAGAIN), -Int(ETOOMANYREFS): return .later
        case -Int(EPIPE), -Int(ECONNRESET): return .gone
        default: return .failed(String(cString: strerror(CInt(-sent))))
        }
    }

    /// The descriptors of the frame with `ordinal`, which are here when the frame is.
    func receive(for ordinal: UInt64) -> Outcome<[OpenFile]> {
        var found: UInt64 = 0
        var count: CInt = 0
        let (received, files) = withUnsafeTemporaryAllocation(of: CInt.self, capacity: Self.maximumDescriptorCount) {
            var received = linux_receive_descriptors(file.descriptor, &found, 8, $0.baseAddress, &count)
            // A peer that ended before it had read everything; told once, and what it passed before is still there.
            if received == -Int(ECONNRESET) {
                received = linux_receive_descriptors(file.descriptor, &found, 8, $0.baseAddress, &count)
            }
            return (received, $0[..<Int(count)].map { OpenFile(owning: $0) })
        }
        switch received {
        case 8 where UInt64(bigEndian: found) == ordinal: return .done(files)
        case 8: return .broken("descriptors of another frame.")
        case -Int(EAGAIN): return .later
        case -Int(EMSGSIZE), 0...: return .broken("descriptors that did not arrive whole.")
        default: return .failed(String(cString: strerror(CInt(-received))))
        }
    }

    /// Connects to the server's socket at `path` and says `token` there.
    static func connect(to path: String, token: [UInt8]) -> Outcome<AttachmentSocket> {
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return .failed(String(cString: strerror(errno))) }
        let connection = AttachmentSocket(owning: descriptor)
        let connected = withSocketAddress(path) { Glibc.connect(descriptor, $0, $1) == 0 ? 0 : -Int(errno) }
        let result = connected == 0 ? linux_send_descriptors(descriptor, token, token.count, nil, 0) : connected
        switch result {
        case token.count: return .done(connection)
        // Its queue of connections is full.
        case -Int(EAGAIN): return .later
        case -Int(ENOENT), -Int(ECONNREFUSED), -Int(EPIPE), -Int(ECONNRESET): return .gone
        default: return .failed(String(cString: strerror(CInt(-result))))
        }
    }

    /// The token that a client said first, and who it is.
    fileprivate func introduction() -> Outcome<(token: [UInt8], process: pid_t)> {
        var count: CInt = 0
        var credentials = linux_credentials()
        var token: [UInt8] = []
        let byteCount = AttachmentListener.tokenByteCount
        let received = withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { bytes in
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
            if received == bytes.count { token = [UInt8](bytes) }
            return received
        }
        guard received != -Int(EAGAIN) else { return .later }
        guard received == byteCount, linux_peer_credentials(file.descriptor, &credentials) == 0 else {
            return .broken("no token.")
        }
        return .done((token, credentials.process))
    }
}

/// Where clients of a server connect their sockets for descriptors.
///
/// Nobody waits on it: a client says in its stream that it has connected, and then its connection is accepted.
final class AttachmentListener: Sendable {
    static let tokenByteCount = 16
    /// The most connections that are kept without a token.
    static let maximumSilentCount = 64

    private let file: OpenFile
    /// Accepted on behalf of another client, before their own had said its token.
    private let silent = Mutex<[AttachmentSocket]>([])

    /// Takes over a listening, non-blocking SOCK_SEQPACKET socket.
    package init(owning descriptor: CInt) {
        file = OpenFile(owning: descriptor)
    }

    /// Accepts every connection that waits, and hands those that said a token to `take`.
    ///
    /// One whose client has not come that far yet is looked at again by the next call, which that client asks for.
    ///
    /// Returns why one that waits could not be accepted, as when this process may have no more descriptors.
    func acceptAll(_ take: (_ token: [UInt8], _ process: pid_t, _ socket: AttachmentSocket) -> Void) -> String? {
        var sockets = silent.withLock { silent in
            defer { silent = [] }
            return silent
        }
        var accepted = linux_accept(file.descriptor)
        while accepted >= 0 {
            sockets.append(AttachmentSocket(owning: accepted))
            accepted = linux_accept(file.descriptor)
        }
        var unheard: [AttachmentSocket] = []
        for socket in sockets {
            switch socket.introduction() {
            case .done(let (token, process)): take(token, process, socket)
            case .later: unheard.append(socket)
            case .gone, .failed, .broken: break
            }
        }
        silent.withLock { $0 = unheard.suffix(Self.maximumSilentCount) }
        return accepted == -EAGAIN ? nil : String(cString: strerror(-accepted))
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
