import CallBasics
package import Glibc

/// The way to and from the addresses of socket calls, where port and host are in network order.
///
/// Source: ip(7), ipv6(7)
extension SocketAddress {
    /// The address that a socket call has written to `source`, of either family.
    init(_ source: UnsafePointer<sockaddr_in6>) {
        let port = UInt16(bigEndian: source.pointee.sin6_port)
        let bytes = UnsafeRawPointer(source)
        guard source.pointee.sin6_family == UInt16(AF_INET6) else {
            self.init(ipv4: UInt32(bigEndian: bytes.load(fromByteOffset: 4, as: UInt32.self)), port: port)
            return
        }
        let high = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        let low = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        self.init(
            ipv6High: UInt64(bigEndian: high),
            low: UInt64(bigEndian: low),
            scope: source.pointee.sin6_scope_id,
            port: port
        )
    }

    /// Hands `body` the address as a socket call takes it, and its byte count.
    package func withSystemAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        if isIPv4 {
            var v4 = sockaddr_in()
            v4.sin_family = UInt16(AF_INET)
            v4.sin_port = port.bigEndian
            v4.sin_addr = inAddress
            return withUnsafePointer(to: &v4) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        var v6 = sockaddr_in6()
        v6.sin6_family = UInt16(AF_INET6)
        v6.sin6_port = port.bigEndian
        v6.sin6_addr = in6Address
        v6.sin6_scope_id = scope
        return withUnsafePointer(to: &v6) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
    }
}
