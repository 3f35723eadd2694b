internal import CallBasics
internal import Glibc

/// The bytes of a question to the kernel.
///
///     which way   length 4 | type 2 | flags 2 | sequence 4 | port 4
///                 family 1 | prefix 1 | 0 10
///                 length 2 | type 2 | the other's address 4 or 16
///                 length 2 | type 2 | interface 4, for an address of one link
///
///     which link  length 4 | type 2 | flags 2 | sequence 4 | port 4
///                 0 4 | interface 4 | 0 8
///
/// Source: as for `RouteMessageReader`
enum RouteQuestion {
    /// Asks for the way to an address: the answer is a route, or a refusal.
    static func way(to remote: SocketAddress) -> [UInt8] {
        let address = remote.isIPv4 ? bytes(of: remote.inAddress) : bytes(of: remote.in6Address)
        let family = remote.isIPv4 ? RouteWire.ipv4 : RouteWire.ipv6
        var body = [family, UInt8(address.count * 8)]
        body += [UInt8](repeating: 0, count: RouteWire.routeByteCount - body.count)
        body += attribute(1, address)
        if remote.scope > 0 { body += attribute(4, bytes(of: remote.scope)) }
        return message(RouteWire.getRoute, body)
    }

    /// Asks for an interface: the answer is a link, or a refusal.
    static func link(_ interface: UInt32) -> [UInt8] {
        let head = [UInt8](repeating: 0, count: 4) + bytes(of: interface)
        return message(RouteWire.getLink, head + [UInt8](repeating: 0, count: RouteWire.linkByteCount - head.count))
    }

    private static func message(_ type: UInt16, _ body: [UInt8]) -> [UInt8] {
        let head = bytes(of: UInt32(RouteWire.headByteCount + body.count)) + bytes(of: type)
        return head + bytes(of: RouteWire.isRequest) + [UInt8](repeating: 0, count: 8) + body
    }

    /// Values are of four or sixteen bytes, and need no filling up.
    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        bytes(of: UInt16(4 + value.count)) + bytes(of: type) + value
    }

    private static func bytes<Value>(of value: Value) -> [UInt8] {
        withUnsafeBytes(of: value) { Array($0) }
    }
}
