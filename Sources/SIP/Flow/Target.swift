package import CallBasics

/// Where a request can be sent to.
package struct Target: Hashable, Sendable {
    package var transport: Flow.Transport
    package var address: SocketAddress
    /// Whose certificate the server has to show, and which name it is told: the domain of the URI, not what its records
    /// lead to, an IPv6 address without brackets; nil unless it is TLS.
    ///
    /// Source: RFC 5922, section 4
    package var tlsName: String?

    package init(_ transport: Flow.Transport, _ address: SocketAddress, tlsName: String? = nil) {
        (self.transport, self.address, self.tlsName) = (transport, address, tlsName)
    }
}
