package import CallBasics

/// How datagrams go to the other side: from the own address, or by a server that passes them on.
package struct Route: Hashable, Sendable, CustomStringConvertible {
    /// Where the other side takes them, and they come from.
    package let peer: SocketAddress
    package let isRelayed: Bool

    package init(_ peer: SocketAddress, isRelayed: Bool = false) { (self.peer, self.isRelayed) = (peer, isRelayed) }

    /// Whether a server that sends from `relayed` may reach `peer`.
    ///
    /// From a public address a private one is that of somebody else, if it is any: where a server has no route to it, it may take
    /// that for the end of the relay (coturn 4.6.1).
    static func leads(from relayed: SocketAddress, to peer: SocketAddress) -> Bool {
        relayed.isIPv4 == peer.isIPv4 && (relayed.isPrivate || !peer.isPrivate)
    }

    package var description: String { isRelayed ? "\(peer) by a relay" : "\(peer)" }
}
