package import CallBasics
package import NIOCore
internal import NIOPosix
internal import NIOSSL
package import SIP

/// What the sockets of a stack tell; all on their event loop.
package protocol SIPSocketsDelegate: AnyObject {
    /// Somebody made a connection; nil closes it.
    func accept(
        _ transport: Flow.Transport,
        local: CallBasics.SocketAddress,
        remote: CallBasics.SocketAddress
    ) -> Flow?
    func handleOpened(_ flow: Flow)
    func handleFailed(_ flow: Flow, _ error: any Error)
    /// The other side, or the network, closed it.
    func handleClosed(_ flow: Flow)
    func receive(_ bytes: [UInt8], on flow: Flow)
    func receive(datagram: [UInt8], local: CallBasics.SocketAddress, remote: CallBasics.SocketAddress)
    /// A datagram could not be sent.
    func handleUndelivered(local: CallBasics.SocketAddress, remote: CallBasics.SocketAddress)
}

/// The UDP, TCP and TLS sockets of a stack: thin, for what they carry is the business of `FlowTable`.
///
/// Thread: the event loop, but for its making.
package final class SIPSockets {
    /// What may wait to be written on one connection; a peer that reads no more is left.
    static let writeLimit = 1 << 20
    /// How long what was sent may take to leave a connection that is to be closed.
    static let lingering = TimeAmount.seconds(5)

    package weak var delegate: (any SIPSocketsDelegate)?
    private let loop: any EventLoop
    private var datagramSockets: [(address: CallBasics.SocketAddress, channel: any Channel)] = []
    /// Where datagrams are wanted whose socket has ended.
    private var lostSockets: Set<CallBasics.SocketAddress> = []
    private var listeners: [any Channel] = []
    private var connections: [Flow: Connection] = [:]
    private var contexts: TLSContexts
    /// What connections are accepted with; nil until there is a certificate.
    private var serverContext: NIOSSLContext?

    /// Changes with `closeAll`: what was begun before it is not wanted any more.
    private var generation = 0

    private enum Connection {
        /// With its channel once there is one.
        case opening((any Channel)?)
        case open(any Channel)
    }

    package init(on loop: any EventLoop, _ security: SIPSecurity) {
        self.loop = loop
        contexts = TLSContexts(security)
    }

    /// Secures connections from now on as told, with files read anew; those that are open stay.
    ///
    /// Throws: `security`, and all is as before
    package func secure(by security: SIPSecurity) -> EventLoopFuture<Void> {
        loop.preconditionInEventLoop()
        var changed = TLSContexts(security)
        let sockets = NIOLoopBound(self, eventLoop: loop)
        let client = changed.forClient(on: loop)
        let server = changed.forServer(on: loop)
        let contexts = NIOLoopBound(changed, eventLoop: loop)
        return client.flatMap { _ in server.map { $0.map { $0 } } ?? sockets.value.loop.makeSucceededFuture(nil) }
            .map { (context: NIOSSLContext?) in
                (sockets.value.contexts, sockets.value.serverContext) = (contexts.value, context)
            }
    }

    /// Whether others can connect by TLS.
    package var hasCertificate: Bool { contexts.security.certificate != nil }

    // MARK: Own ports

    /// Receives and sends datagrams on an address; the answer has its port.
    package func bindDatagrams(at address: CallBasics.SocketAddress) -> EventLoopFuture<CallBasics.SocketAddress> {
        loop.preconditionInEventLoop()
        let sockets = NIOLoopBound(self, eventLoop: loop)
        let (isWildcard, generation) = (address.isUnspecified, generation)
        return DatagramBootstrap(group: loop)
            .onlyIPv6(if: !address.isIPv4)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 65_535))
            .channelOption(.receivePacketInfo, value: isWildcard)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DatagramHandler(sockets.value))
                }
            }
            .bind(host: address.host, port: Int(address.port))
            .flatMapThrowing { channel in
                let bound = address.with(port: UInt16(channel.localAddress?.port ?? 0))
                guard sockets.value.generation == generation else {
                    channel.close(promise: nil)
                    return bound
                }
                sockets.value.datagramSockets.append((bound, channel))
                channel.closeFuture.whenComplete { _ in sockets.value.handleEnd(ofSocket: channel) }
                return bound
            }
            .flatMapErrorThrowing { throw SIPSocketError($0, "udp \(address)") }
    }

    /// Takes connections on an address; the answer has its port.
    ///
    /// By TLS without an own certificate the port is held, and whoever connects is sent away.
    package func listen(_ transport: Flow.Transport, at address: CallBasics.SocketAddress)
        -> EventLoopFuture<CallBasics.SocketAddress>
    {
        loop.preconditionInEventLoop()
        let sockets = NIOLoopBound(self, eventLoop: loop)
        let generation = generation
        guard transport == .tls, serverContext == nil, let made = contexts.forServer(on: loop) else {
            return listenSecured(transport, at: address, generation)
        }
        made.whenFailure { _ in sockets.value.contexts.forget() }
        return made.flatMap { context in
            sockets.value.serverContext = context
            return sockets.value.listenSecured(transport, at: address, generation)
        }
    }

    private func listenSecured(
        _ transport: Flow.Transport,
        at address: CallBasics.SocketAddress,
        _ generation: Int
    ) -> EventLoopFuture<CallBasics.SocketAddress> {
        let sockets = NIOLoopBound(self, eventLoop: loop)
        return ServerBootstrap(group: loop)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .onlyIPv6(if: !address.isIPv4)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try sockets.value.accept(transport, channel) }
            }
            .bind(host: address.host, port: Int(address.port))
            .flatMapThrowing { channel in
                if sockets.value.generation == generation {
                    sockets.value.listeners.append(channel)
                } else {
                    channel.close(promise: nil)
                }
                return address.with(port: UInt16(channel.localAddress?.port ?? 0))
            }
            .flatMapErrorThrowing { throw SIPSocketError($0, "\(transport) \(address)") }
    }

    private func accept(_ transport: Flow.Transport, _ channel: any Channel) throws {
        guard transport == .tcp || serverContext != nil, let local = channel.localAddress?.known,
            let remote = channel.remoteAddress?.known,
            let flow = delegate?.accept(transport, local: local, remote: remote)
        else {
            channel.close(promise: nil)
            return
        }
        connections[flow] = .open(channel)
        if transport == .tls, let serverContext {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: serverContext))
        }
        try channel.pipeline.syncOperations.addHandler(StreamHandler(self, flow))
    }

    // MARK: Flows

    /// Makes a connection, from the flow's own address and any port; one by TLS to the server of that name.
    package func open(_ flow: Flow, tlsName: String? = nil) {
        loop.preconditionInEventLoop()
        connections[flow] = .opening(nil)
        guard flow.transport == .tls else { return connect(flow, nil) }
        let sockets = NIOLoopBound(self, eventLoop: loop)
        let name = contexts.security.serverName ?? tlsName ?? flow.remote.host
        contexts.forClient(on: loop).whenComplete { result in
            guard case .opening? = sockets.value.connections[flow] else { return }
            switch result {
            case .success(let context): sockets.value.connect(flow, (context, name))
            case .failure(let error):
                sockets.value.contexts.forget()
                sockets.value.handleOpening(flow, .failure(error))
            }
        }
    }

    private func connect(_ flow: Flow, _ secured: (context: NIOSSLContext, name: String)?) {
        let sockets = NIOLoopBound(self, eventLoop: loop)
        guard let own = try? flow.local.with(port: 0).forNIO, let other = try? flow.remote.forNIO else {
            return loop.execute { sockets.value.handleOpening(flow, .failure(ChannelError.unknownLocalAddress)) }
        }
        let handshake = loop.makePromise(of: Void.self)
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .bind(to: own)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try sockets.value.begin(flow, secured, on: channel, handshake) }
            }
            .connect(to: other)
            .flatMap { channel in
                if secured == nil { handshake.succeed() }
                return handshake.futureResult.map { channel }
            }
            .flatMapErrorThrowing { error in
                // Of a connection that never came to its handshake.
                handshake.fail(error)
                throw secured == nil ? error : SIPSocketError(handshake: error, with: flow.remote)
            }
            .whenComplete { result in sockets.value.handleOpening(flow, result) }
    }

    private func begin(
        _ flow: Flow,
        _ secured: (context: NIOSSLContext, name: String)?,
        on channel: any Channel,
        _ handshake: EventLoopPromise<Void>
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        if let (context, name) = secured {
            // An address is no name that a server could be asked for (RFC 6066, section 3).
            let host = CallBasics.SocketAddress(host: name, port: 0) == nil ? name : nil
            try pipeline.addHandlers([
                try NIOSSLClientHandler(context: context, serverHostname: host),
                HandshakeWatch(contexts.security, name: name, of: flow.remote, handshake),
            ])
        }
        try pipeline.addHandler(StreamHandler(self, flow))
        if case .opening? = connections[flow] { connections[flow] = .opening(channel) }
    }

    private func handleOpening(_ flow: Flow, _ result: Result<any Channel, any Error>) {
        guard case .opening? = connections[flow] else {
            // Nobody wants it any more.
            if case .success(let channel) = result { channel.close(promise: nil) }
            return
        }
        switch result {
        case .success(let channel):
            connections[flow] = .open(channel)
            delegate?.handleOpened(flow)
        case .failure(let error):
            connections[flow] = nil
            delegate?.handleFailed(flow, error)
        }
    }

    /// Sends by a socket of UDP, or a connection that is open; what has neither is dropped.
    package func send(_ bytes: [UInt8], on flow: Flow) {
        loop.preconditionInEventLoop()
        guard flow.transport != .udp else { return sendDatagram(bytes, flow) }
        guard case .open(let channel)? = connections[flow] else { return }
        channel.writeAndFlush(channel.allocator.buffer(bytes: bytes), promise: nil)
        let waiting = try? channel.syncOptions?.getOption(.bufferedWritableBytes)
        guard let waiting, waiting > Self.writeLimit else { return }
        connections[flow] = nil
        channel.close(promise: nil)
        let sockets = NIOLoopBound(self, eventLoop: loop)
        // In a turn of its own: whoever sends is not in the middle of something then.
        loop.execute { sockets.value.delegate?.handleClosed(flow) }
    }

    private func sendDatagram(_ bytes: [UInt8], _ flow: Flow) {
        guard lostSockets.contains(flow.local) else { return sendBySocket(bytes, flow) }
        // Its address may be there again.
        let sockets = NIOLoopBound(self, eventLoop: loop)
        bindLost(flow.local).whenComplete { _ in sockets.value.sendBySocket(bytes, flow) }
    }

    private func sendBySocket(_ bytes: [UInt8], _ flow: Flow) {
        let socket =
            datagramSockets.first { $0.address == flow.local }
            ?? datagramSockets.first {
                $0.address.isUnspecified && $0.address.port == flow.local.port && $0.address.isIPv4 == flow.local.isIPv4
            }
        let sockets = NIOLoopBound(self, eventLoop: loop)
        // What no datagram can go to would end the socket for all.
        guard let channel = socket?.channel, flow.remote.isDestination, let remote = try? flow.remote.forNIO else {
            return loop.execute {
                sockets.value.delegate?.handleUndelivered(local: flow.local, remote: flow.remote)
            }
        }
        let envelope = AddressedEnvelope(remoteAddress: remote, data: channel.allocator.buffer(bytes: bytes))
        channel.writeAndFlush(envelope).whenFailure { _ in
            sockets.value.loop.execute {
                sockets.value.delegate?.handleUndelivered(local: flow.local, remote: flow.remote)
            }
        }
    }

    /// Closes a connection once what was sent has left, or ends its opening; nothing is told of it.
    package func close(_ flow: Flow) {
        loop.preconditionInEventLoop()
        let connection = connections.removeValue(forKey: flow)
        if case .opening(let channel?)? = connection { channel.close(promise: nil) }
        guard case .open(let channel)? = connection else { return }
        let end = loop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
        channel.writeAndFlush(channel.allocator.buffer(capacity: 0)).whenComplete { _ in
            end.cancel()
            channel.close(promise: nil)
        }
    }

    /// Closes all sockets at once; nothing is told of it.
    package func closeAll() -> EventLoopFuture<Void> {
        loop.preconditionInEventLoop()
        var channels = datagramSockets.map(\.channel) + listeners
        for connection in connections.values {
            switch connection {
            case .open(let channel), .opening(let channel?): channels.append(channel)
            case .opening(nil): break
            }
        }
        generation += 1
        (datagramSockets, lostSockets, listeners, connections) = ([], [], [], [:])
        return EventLoopFuture.andAllComplete(channels.map { $0.close() }, on: loop)
    }

    /// The sockets of datagrams and the listeners.
    package var ownChannels: [any Channel] { datagramSockets.map(\.channel) + listeners }

    /// Closes sockets of datagrams and listeners that others have taken the place of; nothing is told of it.
    ///
    /// Those that have ended are not wanted any more, either.
    package func retireOwn(_ channels: [any Channel]) {
        lostSockets = []
        closeOwn(channels)
    }

    private func closeOwn(_ channels: [any Channel]) {
        loop.preconditionInEventLoop()
        datagramSockets.removeAll { socket in channels.contains { $0 === socket.channel } }
        listeners.removeAll { listener in channels.contains { $0 === listener } }
        for channel in channels { channel.close(promise: nil) }
    }

    /// Closes all of them but some.
    package func closeOwn(except kept: [any Channel]) {
        closeOwn(ownChannels.filter { channel in !kept.contains { $0 === channel } })
    }

    /// A socket of datagrams has ended by what the kernel said to one of them; others still need it.
    private func handleEnd(ofSocket channel: any Channel) {
        guard let place = datagramSockets.firstIndex(where: { $0.channel === channel }) else { return }
        let address = datagramSockets.remove(at: place).address
        lostSockets.insert(address)
        bindAgain(address, generation)
    }

    private func bindAgain(_ address: CallBasics.SocketAddress, _ generation: Int) {
        guard generation == self.generation, lostSockets.contains(address) else { return }
        let sockets = NIOLoopBound(self, eventLoop: loop)
        bindLost(address).whenFailure { _ in
            // Somebody else has the port, or the address is gone: it may be back.
            sockets.value.loop.scheduleTask(in: .seconds(1)) { sockets.value.bindAgain(address, generation) }
        }
    }

    private func bindLost(_ address: CallBasics.SocketAddress) -> EventLoopFuture<Void> {
        let sockets = NIOLoopBound(self, eventLoop: loop)
        return bindDatagrams(at: address).map { _ in
            guard sockets.value.lostSockets.remove(address) == nil else { return }
            // Nobody wants it any more.
            sockets.value.closeOwn(sockets.value.datagramSockets.filter { $0.address == address }.map(\.channel))
        }
    }

    // MARK: What handlers tell

    func handleDatagram(_ envelope: AddressedEnvelope<ByteBuffer>, on channel: any Channel) {
        guard let bound = datagramSockets.first(where: { $0.channel === channel })?.address,
            let remote = envelope.remoteAddress.known
        else { return }
        let used = envelope.metadata?.packetInfo?.destinationAddress.known
        delegate?.receive(
            datagram: Array(envelope.data.readableBytesView),
            local: used?.with(port: bound.port) ?? bound,
            remote: remote
        )
    }

    func handleBytes(_ bytes: [UInt8], on flow: Flow) {
        guard connections[flow] != nil else { return }
        delegate?.receive(bytes, on: flow)
    }

    func handleEnd(of flow: Flow) {
        guard case .open? = connections[flow] else { return }
        connections[flow] = nil
        delegate?.handleClosed(flow)
    }
}
