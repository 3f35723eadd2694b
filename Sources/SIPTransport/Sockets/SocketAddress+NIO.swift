package import CallBasics
package import NIOCore

extension CallBasics.SocketAddress {
    /// The address as NIO has it; the scope of a link-local one is lost.
    package var forNIO: NIOCore.SocketAddress {
        get throws { try NIOCore.SocketAddress(ipAddress: String(host.prefix { $0 != "%" }), port: Int(port)) }
    }
}

extension NIOCore.SocketAddress {
    /// The address as the package has it; nil where it is none of a network.
    package var known: CallBasics.SocketAddress? {
        ipAddress.flatMap { CallBasics.SocketAddress(host: $0, port: UInt16(truncatingIfNeeded: port ?? 0)) }
    }
}
