public import CallBasics
internal import MediaEngine
package import MediaTransport
internal import TURNTransport

/// How the way between two sides is found, through NATs, too (ICE), for sound that is secured by DTLS.
///
/// Each side tells the other where it may be reached, both check these ways, and the best one is used for as long as the other
/// side agrees to it. Where the other side has no ICE, sound goes to where its description says.
/// Source: RFC 8445.
public struct ICEConfiguration: Hashable, Sendable {
    /// Whether this side only answers checks (ICE-lite): it has to be reached at its own address, and checked all the time, as
    /// browsers do.
    package var isLite = false
    /// Servers that tell how this side is seen from outside (STUN); the first 4 are asked before a call is made or answered,
    /// which waits for them for 1 s at most.
    public var servers: [SocketAddress] = []
    /// A server that passes on what comes and goes where no other way leads to the other side (TURN); it tells how this side is
    /// seen, too, and is asked within the same time.
    public var relay: TURNServer?

    /// A side that looks for the way itself, asks `servers`, and may go by `relay`.
    public init(servers: [SocketAddress] = [], relay: TURNServer? = nil) {
        (self.servers, self.relay) = (servers, relay)
    }

    /// A side that only answers.
    package static let lite = {
        var configuration = ICEConfiguration()
        configuration.isLite = true
        return configuration
    }()
}

/// A server that passes on what sides send each other, and who may use it (TURN).
///
/// Source: RFC 8656.
public struct TURNServer: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// How it is reached.
    public enum Transport: Hashable, Sendable {
        /// By UDP, and by TCP, too, when nothing is heard for 150 ms, as in networks that let no UDP out.
        case any
        case udp
        case tcp
        /// By TLS over TCP, with a certificate for `name`, a host or an address.
        case tls(name: String)
    }

    /// Where it takes UDP, or connections.
    public var address: SocketAddress
    /// Who may use it; empty where nobody is asked.
    public var user: String
    /// What proves that; it is never shown.
    public var password: String
    /// How it is reached; behind it, sound goes on by UDP.
    public var transport: Transport
    /// A file of certificates in PEM that prove its own, by TLS; nil for those of the machine.
    public var authoritiesPath: String?

    /// The server at `address`, for `user`, who proves to be that by `password`.
    public init(address: SocketAddress, user: String, password: String, transport: Transport = .any) {
        (self.address, self.user, self.password, self.transport) = (address, user, password, transport)
    }

    /// Its address and the user.
    public var description: String { "\(address), as \(user)" }
    /// Nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Asks for an address by each way to the server.
    ///
    /// - Parameter leg: The port that asks.
    /// - Returns: The questions, in the order of the ways.
    /// - Throws: `TURNError` when a way cannot be tried
    package func allocations(for leg: SocketAddress) async throws(TURNError) -> [TURNAllocation] {
        var carriers: [TURNConnection?] = []
        switch transport {
        case .udp: carriers = [nil]
        case .any: carriers = [nil] + [try? await TURNConnection.open(to: address, nil, beside: leg)].compactMap(\.self)
        case .tcp: carriers = [try await .open(to: address, nil, beside: leg)]
        case .tls(let name):
            let security = TURNConnection.Security(name: name, authoritiesPath: authoritiesPath)
            carriers = [try await .open(to: address, security, beside: leg)]
        }
        let (generator, now) = (SystemRandomNumberGenerator(), MonotonicClock.current)
        return carriers.map { carrier in
            let server = carrier?.address ?? address
            return TURNAllocation(at: server, by: carrier, user: user, password: password, generator, at: now)
        }
    }
}
