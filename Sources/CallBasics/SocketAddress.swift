package import Glibc

/// An IP address and a port, v4 or v6, without a pointer: it travels through rings and is compared per packet.
///
/// An IPv4 address is held as an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2).
public struct SocketAddress: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64
    /// The index of the network interface that a link-local IPv6 address belongs to; 0 for others (RFC 4007, section 6).
    package let scope: UInt32
    /// The port, in host order.
    public let port: UInt16

    private static let mappedPrefix: UInt64 = 0xFFFF_0000_0000

    /// The IPv4 address whose four bytes are `ipv4`, first byte highest.
    public init(ipv4: UInt32, port: UInt16) {
        high = 0
        low = Self.mappedPrefix | UInt64(ipv4)
        scope = 0
        self.port = port
    }

    /// The IPv6 address whose sixteen bytes are `high` and `low`, first byte highest, on the interface `scope`.
    package init(ipv6High high: UInt64, low: UInt64, scope: UInt32 = 0, port: UInt16) {
        self.high = high
        self.low = low
        self.scope = scope
        self.port = port
    }

    /// The numeric address `host`, such as "127.0.0.1", "::1" or "fe80::1%eth0"; nil when it is not one.
    public init?(host: String, port: UInt16) {
        var v4 = in_addr()
        if inet_pton(AF_INET, host, &v4) == 1 {
            self.init(ipv4: UInt32(bigEndian: v4.s_addr), port: port)
            return
        }
        let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var scope: UInt32 = 0
        if parts.count == 2 {
            scope = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
            guard scope > 0 else { return nil }
        }
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, String(parts[0]), &v6) == 1 else { return nil }
        let (high, low) = withUnsafeBytes(of: &v6) { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(ipv6High: UInt64(bigEndian: high), low: UInt64(bigEndian: low), scope: scope, port: port)
    }

    /// 127.0.0.1 with `port`.
    public static func loopback(port: UInt16) -> SocketAddress {
        SocketAddress(ipv4: 0x7F00_0001, port: port)
    }

    /// The sixteen bytes of the address, first byte highest; an IPv4 address is mapped, and in the last four.
    package var halves: (high: UInt64, low: UInt64) { (high, low) }

    /// Whether the address is IPv4.
    public var isIPv4: Bool { high == 0 && low & ~0xFFFF_FFFF == Self.mappedPrefix }

    /// The same host with another port.
    package func with(port: UInt16) -> SocketAddress {
        SocketAddress(ipv6High: high, low: low, scope: scope, port: port)
    }

    /// Whether it is an IPv6 address of one link only, which says nothing without the interface (RFC 4291, section 2.5.6).
    package var isLinkLocal: Bool { high >> 54 == 0x3FA }

    /// Whether it is 0.0.0.0 or ::, which leads back to the own machine.
    package var isUnspecified: Bool { low & ~(isIPv4 ? Self.mappedPrefix : 0) == 0 && high == 0 }

    /// Whether one peer may be there: no port 0, no broadcast, no multicast, no wildcard.
    package var isDestination: Bool {
        guard port != 0, !isUnspecified else { return false }
        return isIPv4 ? UInt32(truncatingIfNeeded: low) >> 24 < 224 : high >> 56 != 0xFF
    }

    /// Whether it never leaves the machine (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5.3).
    package var isLoopback: Bool {
        isIPv4 ? UInt32(truncatingIfNeeded: low) >> 24 == 127 : high == 0 && low == 1
    }

    /// Whether hosts of other networks cannot reach it, and see another one in its place, if any.
    ///
    /// Source: RFC 1918, section 3; RFC 3927; RFC 6598 (shared by a provider's customers); RFC 4193; RFC 4291, section 2.5.6
    package var isPrivate: Bool {
        guard isIPv4 else { return isLinkLocal || high >> 57 == 0x7E }
        let address = UInt32(truncatingIfNeeded: low)
        return address >> 24 == 10 || address >> 20 == 0xAC1 || address >> 16 == 0xC0A8
            || address >> 22 == 0x191 || address >> 16 == 0xA9FE
    }

    /// The same address; a link-local one that has no interface is taken to be on that of `local`.
    ///
    /// Session descriptions have no place for an interface, and what comes from there has one.
    package func scoped(as local: SocketAddress) -> SocketAddress {
        guard isLinkLocal, scope == 0 else { return self }
        return SocketAddress(ipv6High: high, low: low, scope: local.scope, port: port)
    }

    /// The host in numeric form: "127.0.0.1", "::1" or "fe80::1%eth0".
    public var host: String {
        guard !isIPv4 else { return String(decoding: ipv4Digits, as: UTF8.self) }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        var v6 = in6Address
        inet_ntop(AF_INET6, &v6, &text, socklen_t(text.count))
        let address = Self.text(text)
        guard scope > 0 else { return address }
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        return "\(address)%\(if_indextoname(scope, &name) == nil ? String(scope) : Self.text(name))"
    }

    /// The digits and dots of an IPv4 address.
    package var ipv4Digits: [UInt8] {
        var digits: [UInt8] = []
        digits.reserveCapacity(15)
        for shift in stride(from: 24, through: 0, by: -8) {
            let byte = UInt8(truncatingIfNeeded: low >> UInt64(shift))
            if byte >= 100 { digits.append(0x30 + byte / 100) }
            if byte >= 10 { digits.append(0x30 + byte / 10 % 10) }
            digits.append(0x30 + byte % 10)
            if shift > 0 { digits.append(0x2E) }
        }
        return digits
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// "127.0.0.1:5004" or "[::1]:5004".
    public var description: String { isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)" }

    /// The address bytes as the socket calls take them.
    package var in6Address: in6_addr {
        var address = in6_addr()
        withUnsafeMutableBytes(of: &address) { bytes in
            bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        return address
    }

    /// The four bytes of an IPv4 address as the socket calls take them.
    package var inAddress: in_addr { in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian) }
}
