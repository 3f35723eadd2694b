internal import CallBasics
import CLinux
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// Unix stream sockets in a group's directory: a server called N has the socket N, beside it `.N.lock` and `.N.files`.
struct SocketTransport: MessageTransport {
    private static let backlog: CInt = 4096
    /// A read fills one of them; frames that wait for their handlers hold the whole of it.
    private static let receiveBuffers = AdaptiveRecvByteBufferAllocator(
        minimum: 1024,
        initial: 4096,
        maximum: 256 << 10
    )
    /// A channel keeps as many buffers for good; the next read is one turn of the event loop away.
    private static let readsAtOnce: UInt = 1

    let group: GroupContainer
    /// One thread serves all connections of a process: handlers run elsewhere.
    static let eventLoop: any EventLoop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()

    /// Of that thread.
    static let polling = BusyPolling(eventLoop)

    var eventLoop: any EventLoop { Self.eventLoop }

    func listen(
        as name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any MessageListener {
        try GroupContainer.check(name, as: "Server name")
        let lock = try ServerLock(of: name, in: group)
        let attachments = AttachmentListener(owning: try bound(".\(name).files", type: SOCK_SEQPACKET))
        let stream = try bound(name, type: SOCK_STREAM)
        let channel = try await ServerBootstrap(group: eventLoop)
            .serverChannelOption(.autoRead, value: false)
            .childChannelInitializer(initialize)
            .childChannelOption(.recvAllocator, value: Self.receiveBuffers)
            .childChannelOption(.maxMessagesPerRead, value: Self.readsAtOnce)
            .withBoundSocket(stream)
            .get()
        return SocketListener(name: name, group: group, lock: lock, channel: channel, attachments: attachments)
    }

    func connect(
        to name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any Channel {
        try GroupContainer.check(name, as: "Server name")
        do {
            return try await ClientBootstrap(group: eventLoop)
                .channelInitializer(initialize)
                .channelOption(.recvAllocator, value: Self.receiveBuffers)
                .channelOption(.maxMessagesPerRead, value: Self.readsAtOnce)
                .connect(unixDomainSocketPath: group.address(of: name))
                .get()
        } catch let error as IOError {
            switch error.errnoCode {
            // EAGAIN: its queue of connections is full.
            case ENOENT, ECONNREFUSED, EAGAIN: throw Invalidation.noServer(name)
            default:
                throw Invalidation.system(
                    "connecting to \(name) failed: \(String(cString: strerror(error.errnoCode)))."
                )
            }
        }
    }

    func identity(of channel: any Channel) -> EventLoopFuture<PeerIdentity> {
        guard let options = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(Invalidation.system("the channel is no socket."))
        }
        let credentials: EventLoopFuture<linux_credentials> = options.unsafeGetSocketOption(
            level: .socket,
            name: NIOBSDSocket.Option(rawValue: linux_peer_credentials_option())
        )
        // Since Linux 6.5; before, the process is opened by its number.
        let descriptor: EventLoopFuture<CInt> = options.unsafeGetSocketOption(
            level: .socket,
            name: NIOBSDSocket.Option(rawValue: linux_peer_pidfd_option())
        )
        let file = descriptor.map { OpenFile?(OpenFile(owning: $0)) }
            .flatMapErrorThrowing { _ in nil }
        return credentials.and(file).map { credentials, file in
            PeerIdentity(
                process: credentials.process,
                user: credentials.user,
                group: credentials.group,
                processDescriptor: file
            )
        }
    }

    func connectAttachments(to name: String, token: [UInt8]) -> AttachmentSocket.Outcome<AttachmentSocket> {
        AttachmentSocket.connect(to: group.address(of: ".\(name).files"), token: token)
    }

    /// A listening socket at `name`.
    ///
    /// The caller holds the server's lock, so what is there belongs to nobody alive; it is
    /// replaced in one step, and a client meets the old socket or the new one, never none.
    private func bound(_ name: String, type: __socket_type) throws(ServerError) -> CInt {
        var status = stat()
        if fstatat(group.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT != S_IFSOCK {
            throw ServerError(
                .notASocket,
                "\(group.path)/\(name) is no socket. Remove it, or choose another name for the server."
            )
        }
        let descriptor = socket(
            AF_UNIX,
            CInt(type.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue),
            0
        )
        guard descriptor >= 0 else { throw failure("A socket for \(name)", errno) }
        let temporary = ".\(name).new"
        do throws(ServerError) {
            unlinkat(group.descriptor, temporary, 0)
            guard withSocketAddress(group.address(of: temporary), { Glibc.bind(descriptor, $0, $1) }) == 0 else {
                throw failure("Binding \(name)", errno)
            }
            guard fchmodat(group.descriptor, temporary, 0o600, 0) == 0, Glibc.listen(descriptor, Self.backlog) == 0,
                renameat(group.descriptor, temporary, group.descriptor, name) == 0
            else {
                let code = errno
                unlinkat(group.descriptor, temporary, 0)
                throw failure("Serving \(name)", code)
            }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private func failure(_ what: String, _ code: CInt) -> ServerError {
        ServerError(.system, "\(what) in \(group.path) failed: \(String(cString: strerror(code))).")
    }
}

/// A server's sockets and lock.
private final class SocketListener: MessageListener {
    private let name: String
    private let group: GroupContainer
    private let lock: ServerLock
    private let channel: any Channel
    private let attachments: AttachmentListener
    private let isClosed = Atomic(false)

    init(name: String, group: GroupContainer, lock: ServerLock, channel: any Channel, attachments: AttachmentListener) {
        self.name = name
        self.group = group
        self.lock = lock
        self.channel = channel
        self.attachments = attachments
    }

    func open() async throws {
        try await channel.setOption(.autoRead, value: true).get()
    }

    func acceptAttachments(_ take: ([UInt8], pid_t, AttachmentSocket) -> Void) -> String? {
        attachments.acceptAll(take)
    }

    func close() async {
        if isClosed.exchange(true, ordering: .relaxed) == false {
            // Under the lock: nobody else's socket can be there yet.
            unlinkat(group.descriptor, name, 0)
            unlinkat(group.descriptor, ".\(name).files", 0)
            lock.release()
        }
        try? await channel.close()
    }
}
