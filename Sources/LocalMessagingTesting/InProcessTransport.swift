import Glibc
import LocalMessaging
import NIOCore
import NIOEmbedded
import Synchronization

/// The names of a group that are served, and the loop that serves them all in virtual time.
final class InProcessNetwork: Sendable {
    let eventLoop = NIOAsyncTestingEventLoop()
    private let listeners = Mutex<[String: InProcessListener]>([:])

    func add(_ listener: InProcessListener) throws(ServerError) {
        let isFree = listeners.withLock { listeners in
            guard listeners[listener.name] == nil else { return false }
            listeners[listener.name] = listener
            return true
        }
        guard isFree else {
            throw ServerError(.taken, "\(listener.name) is served already. Connect to it, or choose another name.")
        }
    }

    func listener(_ name: String) -> InProcessListener? { listeners.withLock { $0[name] } }

    /// Gives a name free, unless another side has it by now.
    func release(_ name: String, of side: InProcessSide?) {
        listeners.withLock { if $0[name]?.side === side { $0[name] = nil } }
    }
}

/// One process of the group, as it were: a server, or a client with its connections one after the other.
final class InProcessSide: Sendable {
    private struct State {
        var links: [InProcessLink] = []
        var isHeld = false
        var isDead = false
    }

    private let eventLoop: any EventLoop
    private let state: NIOLoopBoundBox<State>

    init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        state = .makeBoxSendingValue(State(), eventLoop: eventLoop)
    }

    /// Whether it was killed; on the event loop.
    var isDead: Bool { state.value.isDead }

    /// A new end of a stream of this side; on the event loop.
    func makeLink() -> InProcessLink {
        let link = InProcessLink(isHeld: state.value.isHeld)
        state.value.links.append(link)
        return link
    }

    /// Lets go of an end that is closed; on the event loop.
    func remove(_ link: InProcessLink) {
        state.value.links.removeAll { $0 === link }
    }

    func kill() async {
        await onLoop { state in
            state.isDead = true
            for link in state.links { link.cut() }
        }
    }

    func holdReading(_ isHeld: Bool) async {
        await onLoop { state in
            state.isHeld = isHeld
            for link in state.links { link.isHeld = isHeld }
        }
    }

    private func onLoop(_ change: @escaping @Sendable (inout State) -> Void) async {
        await withCheckedContinuation { continuation in
            eventLoop.execute { [state] in
                change(&state.value)
                continuation.resume()
            }
        }
    }
}

/// What one side connects and serves by.
struct InProcessTransport: MessageTransport {
    let network: InProcessNetwork
    let side: InProcessSide

    var eventLoop: any EventLoop { network.eventLoop }

    func listen(
        as name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any MessageListener {
        try GroupContainer.check(name, as: "Server name")
        let listener = InProcessListener(name: name, network: network, side: side, initialize: initialize)
        try network.add(listener)
        return listener
    }

    func connect(
        to name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any Channel {
        try GroupContainer.check(name, as: "Server name")
        return try await eventLoop.flatSubmit { self.connectNow(to: name, initialize) }.get()
    }

    private func connectNow(
        to name: String,
        _ initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        guard !side.isDead else {
            return eventLoop.makeFailedFuture(Invalidation.system("this side was killed."))
        }
        guard let listener = network.listener(name), listener.isOpen, !listener.side.isDead else {
            return eventLoop.makeFailedFuture(Invalidation.noServer(name))
        }
        let (near, far) = (side.makeLink(), listener.side.makeLink())
        InProcessLink.join(near, far)
        let server = open(far, of: listener.side, listener.initialize)
        let client = open(near, of: side, initialize)
        return server.and(client).map { $0.1 }
    }

    /// A channel over a link, set up by `initialize` and then active.
    private func open(
        _ link: InProcessLink,
        of side: InProcessSide,
        _ initialize: (any Channel) -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        let channel = NIOAsyncTestingChannel(loop: network.eventLoop)
        let bound = NIOLoopBound(link, eventLoop: network.eventLoop)
        channel.closeFuture.whenComplete { _ in side.remove(bound.value) }
        let ready = eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(link) }
            .and(initialize(channel))
            .flatMap { _ in channel.register() }
            .flatMapThrowing { try SocketAddress(unixDomainSocketPath: "in-process") }
            .flatMap { channel.connect(to: $0) }
            .map { channel as any Channel }
        ready.whenFailure { _ in channel.close(promise: nil) }
        return ready
    }

    func identity(of channel: any Channel) -> EventLoopFuture<PeerIdentity> {
        channel.eventLoop.makeSucceededFuture(.current)
    }

    func connectAttachments(to name: String, token: [UInt8]) -> AttachmentSocket.Outcome<AttachmentSocket> {
        guard let listener = network.listener(name) else { return .gone }
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return .failed(String(cString: strerror(errno))) }
        listener.offer(AttachmentSocket(owning: ends[0]), token: token)
        return .done(AttachmentSocket(owning: ends[1]))
    }
}

/// A server's place among the names.
final class InProcessListener: MessageListener {
    let name: String
    let side: InProcessSide
    let initialize: @Sendable (any Channel) -> EventLoopFuture<Void>
    private let network: InProcessNetwork
    private let waiting = Mutex<[(token: [UInt8], socket: AttachmentSocket)]>([])
    private let opened = Atomic(false)

    init(
        name: String,
        network: InProcessNetwork,
        side: InProcessSide,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) {
        self.name = name
        self.network = network
        self.side = side
        self.initialize = initialize
    }

    var isOpen: Bool { opened.load(ordering: .acquiring) }

    func open() {
        opened.store(true, ordering: .releasing)
    }

    func offer(_ socket: AttachmentSocket, token: [UInt8]) {
        waiting.withLock { $0.append((token, socket)) }
    }

    func acceptAttachments(_ take: ([UInt8], pid_t, AttachmentSocket) -> Void) -> String? {
        let offered = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for (token, socket) in offered { take(token, getpid(), socket) }
        return nil
    }

    func close() async {
        network.release(name, of: side)
    }
}
