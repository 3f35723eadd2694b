internal import CallBasics
internal import NIOCore
internal import NIOPosix
internal import SIP

/// Takes datagrams from their channel.
final class DatagramHandler: ChannelInboundHandler {
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
final class StreamHandler: ChannelInboundHandler {
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

extension DatagramBootstrap {
    /// Leaves IPv4 to sockets of its own.
    func onlyIPv6(if isIPv6: Bool) -> DatagramBootstrap {
        isIPv6 ? channelOption(ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1) : self
    }
}

extension ServerBootstrap {
    /// Leaves IPv4 to sockets of its own.
    func onlyIPv6(if isIPv6: Bool) -> ServerBootstrap {
        isIPv6
            ? serverChannelOption(ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1) : self
    }
}
