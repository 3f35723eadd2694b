package import CallBasics
package import MediaTransport
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import SIPTransport
internal import Synchronization

/// A connection to a server of TURN, by TCP or TLS, beside a port of a call.
///
///     port of the call ◄── datagrams ──► port of this ◄── TURNStream ──► connection ──► server
///
/// It is made when the call sends the first datagram. What finds the connection full is lost, as on a network: sound that is
/// late is none. It ends after `close`, or when nobody has it any more.
/// Thread: any.
/// Source: RFC 8656, section 3.1.
package final class TURNConnection: TURNCarrier {
    /// How a server proves who it is.
    package struct Security: Sendable {
        let name: String
        let authoritiesPath: String?

        /// A server that shows a certificate for `name`, a host or an address, which those in the file prove; nil for those
        /// of this machine.
        package init(name: String, authoritiesPath: String?) {
            (self.name, self.authoritiesPath) = (name, authoritiesPath)
        }
    }

    package let address: CallBasics.SocketAddress
    private let port: any Channel
    private let state: ConnectionState

    private init(_ address: CallBasics.SocketAddress, _ port: any Channel, _ state: ConnectionState) {
        (self.address, self.port, self.state) = (address, port, state)
    }

    deinit { close() }

    /// Opens the port that stands for `server`, on the address of a port of a call, from which alone it takes anything.
    ///
    /// - Parameters:
    ///   - server: Where the server takes connections.
    ///   - security: Nil for TCP, in the clear.
    ///   - leg: The port of the call.
    /// - Returns: What stands for the server.
    /// - Throws: `TURNError.disconnected` when there is no port, or no certificate to trust
    package static func open(
        to server: CallBasics.SocketAddress,
        _ security: Security?,
        beside leg: CallBasics.SocketAddress
    ) async throws(TURNError) -> TURNConnection {
        do {
            var context: NIOSSLContext?
            if let security {
                context = try await NIOThreadPool.singleton.runIfActive { try Self.context(security) }
            }
            let state = ConnectionState()
            let secured = context.map { ($0, security?.name ?? "") }
            let handler = { @Sendable in try PortHandler(server, secured, for: leg, state) }
            let port = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(handler())
                    }
                }
                .bind(to: leg.with(port: 0).forNIO).get()
            guard let address = port.localAddress?.known else { throw ChannelError.unknownLocalAddress }
            return TURNConnection(address, port, state)
        } catch {
            throw .disconnected("it cannot be reached by a connection. \(error)")
        }
    }

    private static func context(_ security: Security) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let path = security.authoritiesPath {
            configuration.trustRoots = .certificates(try TLSContexts.certificates(at: path))
        }
        configuration.minimumTLSVersion = .tlsv12
        // Whose it is, is looked at behind the handshake: the library takes the address in the place of the name, too.
        configuration.certificateVerification = .noHostnameVerification
        configuration.shutdownTimeout = .seconds(1)
        return try NIOSSLContext(configuration: configuration)
    }

    package var isConnected: Bool { state.isConnected }
    package var failure: String? { state.failure }

    package func close() {
        port.eventLoop.scheduleTask(in: .seconds(1)) { [port] in port.close(promise: nil) }
    }
}

/// What has become of a connection.
final class ConnectionState: Sendable {
    private let state = Mutex<(isConnected: Bool, failure: String?)>((false, nil))

    var isConnected: Bool { state.withLock(\.isConnected) }
    var failure: String? { state.withLock(\.failure) }

    func connect() { state.withLock { $0.isConnected = true } }
    func end(_ reason: String) { state.withLock { $0 = (false, reason) } }
}
