internal import CallBasics

/// Reads what the kernel tells of links, addresses and routes; of bytes that are wrong, what came before them.
///
/// A datagram has one message or more, each at a multiple of four bytes, and so have the attributes in them. Numbers are
/// in the machine's byte order, addresses in that of the network. Lengths count their own head, but not what fills up.
///
///     message    length 4 | type 2 | flags 2 | sequence 4 | port 4 | body
///
///     link       family 1 | 0 1 | type 2 | interface 4 | flags 4 | change 4      | attributes: name 3
///     address    family 1 | prefix 1 | flags 1 | scope 1 | interface 4           | attributes: address 1, own 2, flags 8
///     route      family 1 | target's prefix 1 | source's prefix 1 | service 1    | attributes: interface 4, source 7
///                table 1 | protocol 1 | scope 1 | type 1 | flags 4
///     refusal    -errno 4 | head of the question 16
///
///     attribute  length 2 | type 2 | value
///
/// Source: netlink(7), rtnetlink(7); linux/netlink.h, linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/if.h
package enum RouteMessageReader {
    /// The messages in a datagram that tell something, in order; others are passed over.
    package static func messages(in datagram: [UInt8]) -> [RouteMessage] {
        var messages: [RouteMessage] = []
        var rest = RouteFields(datagram)
        while let length: UInt32 = rest.number(at: 0), let type: UInt16 = rest.number(at: 4),
            let body = rest.part(from: headByteCount, to: Int(length))
        {
            if let message = message(type, body) { messages.append(message) }
            rest = rest.rest(from: RouteFields.aligned(Int(length)))
        }
        return messages
    }

    private static func message(_ type: UInt16, _ body: RouteFields) -> RouteMessage? {
        switch type {
        case RouteWire.newLink, RouteWire.goneLink: link(body, isGone: type == RouteWire.goneLink)
        case RouteWire.newAddress, RouteWire.goneAddress: address(body, isAdded: type == RouteWire.newAddress)
        case RouteWire.newRoute, RouteWire.goneRoute: route(body, isAdded: type == RouteWire.newRoute)
        case RouteWire.newRule, RouteWire.goneRule: .rule
        case RouteWire.overrun: .overrun
        case RouteWire.error: refusal(body)
        default: nil
        }
    }

    private static func link(_ body: RouteFields, isGone: Bool) -> RouteMessage? {
        guard let index: UInt32 = body.number(at: 4), let flags: UInt32 = body.number(at: 8),
            let attributes = body.attributes(from: RouteWire.linkByteCount)
        else { return nil }
        return .link(
            LinkNotice(
                index,
                attributes.attribute(3)?.text ?? "",
                isGone: isGone,
                isUp: flags & 0x1 != 0,
                isRunning: flags & 0x40 != 0
            )
        )
    }

    private static func address(_ body: RouteFields, isAdded: Bool) -> RouteMessage? {
        guard let family: UInt8 = body.number(at: 0), let shortFlags: UInt8 = body.number(at: 2),
            let index: UInt32 = body.number(at: 4), let attributes = body.attributes(from: 8)
        else { return nil }
        // On a link between two, the first is the other's.
        guard let value = attributes.attribute(2) ?? attributes.attribute(1),
            let address = value.address(family, interface: index)
        else { return nil }
        let flags = attributes.attribute(8)?.number(at: 0) ?? UInt32(shortFlags)
        return .address(
            AddressNotice(
                address,
                on: index,
                isAdded: isAdded,
                // An optimistic one may be used.
                isTentative: flags & 0x44 == 0x40,
                isDuplicate: flags & 0x08 != 0,
                // With IPv4 the flag says something else.
                isTemporary: family == RouteWire.ipv6 && flags & 0x01 != 0
            )
        )
    }

    private static func route(_ body: RouteFields, isAdded: Bool) -> RouteMessage? {
        guard let family: UInt8 = body.number(at: 0), let prefix: UInt8 = body.number(at: 1),
            let type: UInt8 = body.number(at: 7), let attributes = body.attributes(from: RouteWire.routeByteCount)
        else { return nil }
        let interface: UInt32? = attributes.attribute(4)?.number(at: 0)
        return .route(
            RouteNotice(
                isAdded: isAdded,
                isDefault: prefix == 0,
                // RTN_UNICAST, RTN_LOCAL
                isUsable: type == 1 || type == 2,
                interface: interface,
                source: attributes.attribute(7)?.address(family, interface: interface ?? 0)
            )
        )
    }

    /// An error of 0 is no refusal.
    private static func refusal(_ body: RouteFields) -> RouteMessage? {
        guard let code: Int32 = body.number(at: 0), code != 0, code != .min else { return nil }
        return .refusal(abs(code))
    }

    private static let headByteCount = RouteWire.headByteCount
}

/// Numbers of the protocol that the C library's module does not have.
enum RouteWire {
    // linux/netlink.h
    static let headByteCount = 16
    static let isRequest: UInt16 = 1
    static let error: UInt16 = 2
    static let overrun: UInt16 = 4

    // linux/rtnetlink.h
    static let newLink: UInt16 = 16
    static let goneLink: UInt16 = 17
    static let getLink: UInt16 = 18
    static let newAddress: UInt16 = 20
    static let goneAddress: UInt16 = 21
    static let newRoute: UInt16 = 24
    static let goneRoute: UInt16 = 25
    static let getRoute: UInt16 = 26
    static let newRule: UInt16 = 32
    static let goneRule: UInt16 = 33
    static let linkByteCount = 16
    static let routeByteCount = 12

    // bits/socket.h
    static let ipv4: UInt8 = 2
    static let ipv6: UInt8 = 10
}

/// Bytes that are read within their bounds.
private struct RouteFields {
    private let bytes: [UInt8]
    private let range: Range<Int>

    init(_ bytes: [UInt8]) { self.init(bytes, bytes.indices) }

    private init(_ bytes: [UInt8], _ range: Range<Int>) { (self.bytes, self.range) = (bytes, range) }

    /// The next multiple of four.
    static func aligned(_ count: Int) -> Int { (count + 3) & ~3 }

    /// The number at an offset, in the machine's byte order.
    func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number? {
        guard offset <= range.count, MemoryLayout<Number>.size <= range.count - offset else { return nil }
        return bytes.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: range.lowerBound + offset, as: Number.self)
        }
    }

    /// What stands between two offsets; nil when it is not all there.
    func part(from start: Int, to end: Int) -> RouteFields? {
        guard start <= end, end <= range.count else { return nil }
        return RouteFields(bytes, (range.lowerBound + start)..<(range.lowerBound + end))
    }

    /// What stands behind an offset.
    func rest(from start: Int) -> RouteFields {
        RouteFields(bytes, min(range.lowerBound + start, range.upperBound)..<range.upperBound)
    }

    /// The attributes behind a head of so many bytes; nil when the head is not all there.
    func attributes(from start: Int) -> RouteFields? { part(from: start, to: range.count) }

    /// The value of the first attribute of a type.
    func attribute(_ type: UInt16) -> RouteFields? {
        var rest = self
        while let length: UInt16 = rest.number(at: 0), let found: UInt16 = rest.number(at: 2),
            let value = rest.part(from: 4, to: Int(length))
        {
            // The two highest bits say what is in it.
            if found & 0x3FFF == type { return value }
            rest = rest.rest(from: Self.aligned(Int(length)))
        }
        return nil
    }

    /// Characters up to a zero.
    var text: String { String(decoding: bytes[range].prefix { $0 != 0 }, as: UTF8.self) }

    /// An address of a family, without a port.
    func address(_ family: UInt8, interface: UInt32) -> SocketAddress? {
        switch (family, range.count) {
        case (RouteWire.ipv4, 4):
            return number(at: 0).map { SocketAddress(ipv4: UInt32(bigEndian: $0), port: 0) }
        case (RouteWire.ipv6, 16):
            guard let high: UInt64 = number(at: 0), let low: UInt64 = number(at: 8) else { return nil }
            let plain = SocketAddress(ipv6High: UInt64(bigEndian: high), low: UInt64(bigEndian: low), port: 0)
            guard plain.isLinkLocal else { return plain }
            return SocketAddress(
                ipv6High: UInt64(bigEndian: high),
                low: UInt64(bigEndian: low),
                scope: interface,
                port: 0
            )
        default: return nil
        }
    }
}
