/// The links of one call: sockets of its own, or a link that was given, impaired when asked for.
struct CallSockets {
    let link: any DatagramLink
    /// RTCP's own socket; nil when it shares RTP's.
    let controlLink: (any DatagramLink)?
    let local: SocketAddress

    init(_ configuration: CallConfiguration, seed: UInt64) throws(NetworkError) {
        var control: (any DatagramLink)?
        let media: any DatagramLink
        switch configuration.network {
        case .udp(let address):
            let socket = try UDPSocket(bind: address)
            local = socket.localAddress
            media = socket
            if !configuration.multiplexesControl {
                control = try UDPSocket(bind: local.with(port: local.port &+ 1))
            }
        case .link(let link, let address):
            media = link
            local = address
        }
        let impairment = configuration.impairment
        link = impairment.isNone ? media : ImpairedLink(media, impairment, seed: configuration.impairmentSeed ?? seed)
        controlLink = control
    }
}
