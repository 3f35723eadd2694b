package import CallBasics

/// The way between two addresses that a message comes by; answers leave by the flow of their request.
package struct Flow: Hashable, Sendable {
    /// What carries the bytes.
    package enum Transport: Hashable, Sendable, CaseIterable {
        case udp, tcp, tls

        /// The name as it is written in a Via.
        package var name: StaticString {
            switch self {
            case .udp: "UDP"
            case .tcp: "TCP"
            case .tls: "TLS"
            }
        }

        var nameBytes: Bytes {
            switch self {
            case .udp: Self.names.udp
            case .tcp: Self.names.tcp
            case .tls: Self.names.tls
            }
        }

        private static let names = (udp: Bytes("UDP"), tcp: Bytes("TCP"), tls: Bytes("TLS"))

        /// Whether nothing that is sent gets lost while the connection lives.
        package var isReliable: Bool { self != .udp }
    }

    package var transport: Transport
    /// The own address as others can be told it.
    package var local: SocketAddress
    package var remote: SocketAddress
    /// Tells connections between the same addresses apart; 0 for UDP.
    package var number: UInt64

    package init(_ transport: Transport, local: SocketAddress, remote: SocketAddress, number: UInt64 = 0) {
        (self.transport, self.local, self.remote, self.number) = (transport, local, remote, number)
    }
}

extension SocketAddress {
    /// The address as a header writes it, without the scope that means something on one machine only.
    var hostBytes: Bytes { isIPv4 ? ipv4Digits[...] : Bytes(host.prefix { $0 != "%" }) }
    /// The address as sent-by writes it, an IPv6 address in brackets.
    var sentBy: Bytes { isIPv4 ? hostBytes : Bytes("[\(hostBytes.text)]") }
}
