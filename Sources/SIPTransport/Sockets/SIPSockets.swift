package import CallBasics
package import NIOCore
internal import NIOPosix
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
    func handleFailed(_ flow: Flow)
    /// The other side, or the network, closed it.
    func handleClosed(_ flow: Flow)
    func receive(_ bytes: [UInt8], on flow: Flow)
    func receive(datagram: [UInt8], local: CallBasics.SocketAddress, remote: CallBasics.SocketAddress)
    /// A datagram could not be sent.
    func handleUndelivered(local: CallBasics.SocketAddress, remote: CallBasics.SocketAddress)
}

/// The UDP and TCP sockets of a stack: thin, for what they carry is the business of `FlowTable`.
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
    private var listeners: [any Channel] = []
    private var connections: [Flow: Connection] = [:]

    /// Changes with `closeAll`: what was begun before it is not wanted any more.
    private var generation = 0

    private enum Connection {
        /// With its channel once there is one.
        case opening((any Channel)?)
        case open(any Channel)
    }

    package init(on loop: any EventLoop) { self.loop = loop }

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
    package func listen(at address: CallBasics.SocketAddress) -> EventLoopFuture<CallBasics.SocketAddress> {
        loop.preconditionInEventLoop()
        let sockets = NIOLoopBound(self, eventLoop: loop)
        return ServerBootstrap(group: loop)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .onlyIPv6(if: !address.isIPv4)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try sockets.value.accept(channel) }
            }
            .bind(host: address.host, port: Int(address.port))
            .flatMapThrowing { channel in
                sockets.value.listeners.append(channel)
                return address.with(port: UInt16(channel.localAddress?.port ?? 0))
            }
            .flatMapErrorThrowing { throw SIPSocketError($0, "tcp \(address)") }
    }

    private func accept(_ channel: any Channel) throws {
        guard let local = channel.localAddress?.known, let remote = channel.remoteAddress?.known,
            let flow = delegate?.accept(.tcp, local: local, remote: remote)
        else {
            channel.close(promise: nil)
            return
        }
        connections[flow] = .open(channel)
        try channel.pipeline.syncOperations.addHandler(StreamHandler(self, flow))
    }

    // MARK: Flows

    /// Makes a connection, from the flow's own address and any port.
    package func open(_ flow: Flow) {
        loop.preconditionInEventLoop()
        connections[flow] = .opening(nil)
        let sockets = NIOLoopBound(self, eventLoop: loop)
        guard let own = try? flow.local.with(port: 0).forNIO, let other = try? flow.remote.forNIO else {
            return loop.execute { sockets.value.handleOpening(flow, .failure(ChannelError.unknownLocalAddress)) }
        }
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .bind(to: own)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(StreamHandler(sockets.value, flow))
                    if case .opening? = sockets.value.connections[flow] {
                        sockets.value.connections[flow] = .opening(channel)
                    }
                }
            }
            .connect(to: other)
            .whenComplete { result in sockets.value.handleOpening(flow, result) }
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
        case .failure:
            connections[flow] = nil
            delegate?.handleFailed(flow)
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
        (datagramSockets, listeners, connections) = ([], [], [:])
        return EventLoopFuture.andAllComplete(channels.map { $0.close() }, on: loop)
    }

    /// A socket of datagrams has ended by what the kernel said to one of them; others still need it.
    private func handleEnd(ofSocket channel: any Channel) {
        guard let place = datagramSockets.firstIndex(where: { $0.channel === channel }) else { return }
        bindAgain(datagramSockets.remove(at: place).address, generation)
    }

    private func bindAgain(_ address: CallBasics.SocketAddress, _ generation: Int) {
        guard generation == self.generation else { return }
        let sockets = NIOLoopBound(self, eventLoop: loop)
        bindDatagrams(at: address).whenFailure { _ in
            // Somebody else has the port, or the address is gone: it may be back.
            sockets.value.loop.scheduleTask(in: .seconds(1)) { sockets.value.bindAgain(address, generation) }
        }
    }

    // MARK: What handlers tell

    fileprivate func handleDatagram(_ envelope: AddressedEnvelope<ByteBuffer>, on channel: any Channel) {
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

    fileprivate func handleBytes(_ bytes: [UInt8], on flow: Flow) {
        guard connections[flow] != nil else { return }
        delegate?.receive(bytes, on: flow)
    }

    fileprivate func handleEnd(of flow: Flow) {
        guard case .open? = connections[flow] else { return }
        connections[flow] = nil
        delegate?.handleClosed(flow)
    }
}

/// Takes datagrams from their channel.
private final class DatagramHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    private weak var sockets: SIPSockets?

    init(_ sockets: SIPSockets) { self.sockets = sockets }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        sockets?.handleDatagram(unwrapInboundIn(data), on: context.channel)
    }

    /// What comes of one datagram does not end the socket of all.
    func errorCaught(context _: ChannelHandlerContext, error _: any Error) {}
}

/// Takes bytes from the channel of a connection.
private final class StreamHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private weak var sockets: SIPSockets?
    private let flow: Flow

    init(_ sockets: SIPSockets, _ flow: Flow) { (self.sockets, self.flow) = (sockets, flow) }

    func channelRead(context _: ChannelHandlerContext, data: NIOAny) {
        sockets?.handleBytes(Array(unwrapInboundIn(data).readableBytesView), on: flow)
    }

    func channelInactive(context _: ChannelHandlerContext) { sockets?.handleEnd(of: flow) }

    func errorCaught(context: ChannelHandlerContext, error _: any Error) { context.close(promise: nil) }
}

extension CallBasics.SocketAddress {
    /// Whether one peer may be there: no port 0, no broadcast, no multicast, no wildcard.
    fileprivate var isDestination: Bool {
        guard port != 0, !isUnspecified else { return false }
        let first = host.prefix { $0 != "." && $0 != ":" }
        guard isIPv4 else { return !first.lowercased().hasPrefix("ff") || first.count < 4 }
        return (UInt8(first) ?? 255) < 224
    }
}

extension DatagramBootstrap {
    /// Leaves IPv4 to sockets of its own.
    fileprivate func onlyIPv6(if isIPv6: Bool) -> DatagramBootstrap {
        isIPv6 ? channelOption(ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1) : self
    }
}

extension ServerBootstrap {
    /// Leaves IPv4 to sockets of its own.
    fileprivate func onlyIPv6(if isIPv6: Bool) -> ServerBootstrap {
        isIPv6
            ? serverChannelOption(ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1) : self
    }
}
