import CallBasics
import Glibc

/// The links of one call: sockets of its own, or a link that was given.
struct CallSockets: Sendable {
    let link: any DatagramLink
    /// RTCP's own socket; nil when it shares RTP's.
    let controlLink: (any DatagramLink)?
    let local: SocketAddress
    let localControl: SocketAddress?

    /// Pairs of ports that are tried until RTCP's is free, too.
    private static let attempts = 64

    /// Sockets on `address`: RTP on its port and, with `hasControlPort`, RTCP on the next one.
    ///
    /// - Parameters:
    ///   - address: Where; port 0 takes any free port, an even one when RTCP's follows it (RFC 3550, section 11).
    ///   - hasControlPort: Whether RTCP has a port of its own.
    ///   - sharing: What the sockets of the media thread share; nil in virtual time.
    /// - Throws: `NetworkError` when the port, or one behind it, is not to be had.
    init(bind address: SocketAddress, hasControlPort: Bool, sharing: SocketSharing?) throws(NetworkError) {
        guard hasControlPort else {
            let socket = try UDPSocket(bind: address, sharing: sharing)
            self.init(link: socket, controlLink: nil, local: socket.localAddress, localControl: nil)
            return
        }
        // Ports that do not fit stay bound until a pair is found, so that the next one is another.
        var unfit: [UDPSocket] = []
        while true {
            let socket = try UDPSocket(bind: address, sharing: sharing)
            let port = socket.localAddress.port
            do throws(NetworkError) {
                guard address.port != 0 || port % 2 == 0 else {
                    throw NetworkError(.portInUse, "UDP port \(port) is odd.")
                }
                guard port < .max else { throw NetworkError(.portInUse, "There is no UDP port behind \(port).") }
                let control = try UDPSocket(bind: socket.localAddress.with(port: port + 1), sharing: sharing)
                self.init(
                    link: socket,
                    controlLink: control,
                    local: socket.localAddress,
                    localControl: control.localAddress
                )
                return
            } catch {
                unfit.append(socket)
                guard address.port == 0, error.code == .portInUse, unfit.count < Self.attempts else { throw error }
            }
        }
    }

    /// A link that exists, for RTP and RTCP together.
    init(_ link: any DatagramLink, local: SocketAddress) {
        self.init(link: link, controlLink: nil, local: local, localControl: nil)
    }

    /// Goes to another address of the machine, with the same ports; a link that was given stays.
    ///
    /// - Throws: `NetworkError` when one of them cannot; then all stay
    func move(to host: SocketAddress) throws(NetworkError) {
        guard let socket = link as? UDPSocket else { return }
        let place = host.with(port: socket.port)
        try move(to: CallSockets(bind: place, hasControlPort: controlLink != nil, sharing: nil))
    }

    /// Goes on by the ports of `other`; a link that was given stays.
    ///
    /// - Throws: `NetworkError` when they are of the other family, or RTCP has none there
    func move(to other: CallSockets) throws(NetworkError) {
        let (socket, twin) = (link as? UDPSocket, other.link as? UDPSocket)
        let (control, controlTwin) = (controlLink as? UDPSocket, other.controlLink as? UDPSocket)
        guard let socket, let twin else { return }
        guard twin.localAddress.isIPv4 == socket.localAddress.isIPv4, control == nil || controlTwin != nil else {
            throw NetworkError("Binding", address: other.local, errno: EAFNOSUPPORT)
        }
        socket.take(twin)
        if let controlTwin { control?.take(controlTwin) }
    }

    /// Closes what are sockets; what they have counted stays known.
    func close() {
        for link in [link, controlLink] { (link as? UDPSocket)?.close() }
    }

    private init(
        link: any DatagramLink,
        controlLink: (any DatagramLink)?,
        local: SocketAddress,
        localControl: SocketAddress?
    ) {
        self.link = link
        self.controlLink = controlLink
        self.local = local
        self.localControl = localControl
    }
}

extension CallConfiguration {
    /// Refuses `agreement` where it is secured and the links are not, or the links are and it is not; and where RTCP is to have a
    /// port of its own and `sockets` has none.
    ///
    /// RTCP must not share RTP's port then (RFC 5761, section 5.1.1): the other side may take it for RTP, or not at all. A
    /// link that the application gave is for both.
    /// - Throws: `EngineError` with the code `unknownTransport` or `noControlPort`.
    func check(_ agreement: MediaAgreement, over sockets: CallSockets) throws(EngineError) {
        guard agreement.codec == nil || agreement.isSecured == (security != nil) else {
            throw .state(
                .unknownTransport,
                agreement.isSecured
                    ? "SRTP was agreed on, and the call has nothing that secures its links. Offer and take RTP/AVP."
                    : "RTP in the clear was agreed on, and the call is secured. Offer and take what is secured."
            )
        }
        if case .link = network { return }
        guard !agreement.multiplexesControl, sockets.controlLink == nil else { return }
        throw .state(
            .noControlPort,
            "RTCP was agreed to have a port of its own, and there is none beside \(sockets.local). Reserve ports with "
                + "hasControlPort, or agree on rtcp-mux."
        )
    }
}
