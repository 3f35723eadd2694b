import CallBasics

/// Finds the IP packet behind the header of the network that a capture was made on.
///
/// Source: tcpdump.org, "Link-layer header types"
enum LinkLayer {
    private static let null: UInt32 = 0
    private static let ethernet: UInt32 = 1
    private static let raw: Set<UInt32> = [12, 14, 101, 228, 229]
    private static let loop: UInt32 = 108
    private static let linuxCooked: UInt32 = 113
    private static let linuxCookedV2: UInt32 = 276

    static func isSupported(_ linkType: UInt32) -> Bool {
        raw.contains(linkType) || [null, ethernet, loop, linuxCooked, linuxCookedV2].contains(linkType)
    }

    /// What to say of a capture that is of another network alone.
    static func unsupported(_ linkType: UInt32) -> PcapError {
        PcapError(
            .unsupportedLinkType,
            "The capture has link type \(linkType), which is not read. Capture on an Ethernet, loopback or \"any\" interface."
        )
    }

    /// Where the IP header begins in `packet`; nil when it carries something else.
    static func offsetOfIP(_ linkType: UInt32, in packet: Span<UInt8>) -> Int? {
        switch linkType {
        case null, loop: packet.count > 4 ? 4 : nil
        case ethernet: offsetInEthernet(packet)
        case linuxCooked: packet.count >= 16 && isIP(packet.uint16(at: 14)) ? 16 : nil
        case linuxCookedV2: packet.count >= 20 && isIP(packet.uint16(at: 0)) ? 20 : nil
        default: 0
        }
    }

    private static func offsetInEthernet(_ packet: Span<UInt8>) -> Int? {
        var offset = 12
        // At most two VLAN tags (IEEE 802.1ad).
        for _ in 0..<3 {
            guard packet.count >= offset + 2 else { return nil }
            let type = packet.uint16(at: offset)
            if isIP(type) { return offset + 2 }
            guard type == 0x8100 || type == 0x88A8 || type == 0x9100 else { return nil }
            offset += 4
        }
        return nil
    }

    private static func isIP(_ type: UInt16) -> Bool { type == 0x0800 || type == 0x86DD }
}

/// Where the payload of an IP packet lies, what protocol it is of, and between whom it travels.
///
/// Source: RFC 791, RFC 8200
struct IPLocation {
    /// The protocol's number: 6 is TCP, 17 UDP.
    let transport: UInt8
    /// Where the header of the transport begins.
    let offset: Int
    /// Whether the packet is a part of another one.
    let isFragment: Bool
    private let addresses: Addresses

    private enum Addresses {
        case ipv4(source: UInt32, destination: UInt32)
        case ipv6(source: (UInt64, UInt64), destination: (UInt64, UInt64))
    }

    /// Reads the header in `packet`; nil where it is none, or is not all there.
    init?(in packet: Span<UInt8>) {
        guard let first = packet.count > 0 ? packet[0] : nil else { return nil }
        switch first >> 4 {
        case 4: self.init(ipv4: packet)
        case 6: self.init(ipv6: packet)
        default: return nil
        }
    }

    private init?(ipv4 packet: Span<UInt8>) {
        guard packet.count >= 20 else { return nil }
        offset = Int(packet[0] & 0x0F) * 4
        guard offset >= 20, offset <= packet.count else { return nil }
        transport = packet[9]
        // More fragments, or a fragment's offset.
        isFragment = packet.uint16(at: 6) & 0x3FFF != 0
        addresses = .ipv4(source: packet.uint32(at: 12), destination: packet.uint32(at: 16))
    }

    private init?(ipv6 packet: Span<UInt8>) {
        guard packet.count >= 40 else { return nil }
        var next = packet[6]
        var offset = 40
        // Hop-by-hop options, routing and destination options may stand before the transport.
        while next == 0 || next == 43 || next == 60 {
            guard packet.count >= offset + 8 else { return nil }
            next = packet[offset]
            offset += (Int(packet[offset + 1]) + 1) * 8
        }
        guard offset <= packet.count else { return nil }
        (transport, self.offset, isFragment) = (next, offset, next == 44)
        func half(_ offset: Int) -> UInt64 {
            UInt64(packet.uint32(at: offset)) << 32 | UInt64(packet.uint32(at: offset + 4))
        }
        addresses = .ipv6(source: (half(8), half(16)), destination: (half(24), half(32)))
    }

    /// The two ends, with the ports of their transport.
    func ends(sourcePort: UInt16, destinationPort: UInt16) -> (source: SocketAddress, destination: SocketAddress) {
        switch addresses {
        case .ipv4(let source, let destination):
            (SocketAddress(ipv4: source, port: sourcePort), SocketAddress(ipv4: destination, port: destinationPort))
        case .ipv6(let source, let destination):
            (
                SocketAddress(ipv6High: source.0, low: source.1, port: sourcePort),
                SocketAddress(ipv6High: destination.0, low: destination.1, port: destinationPort)
            )
        }
    }
}

/// Where the payload of a UDP datagram lies in an IP packet, and between whom it travels.
///
/// Source: RFC 768
struct UDPLocation {
    let source: SocketAddress
    let destination: SocketAddress
    let payloadOffset: Int
    let payloadByteCount: Int

    /// Reads the headers in `packet`; nil for anything but one whole, unfragmented UDP datagram.
    init?(in packet: Span<UInt8>) {
        guard let ip = IPLocation(in: packet) else { return nil }
        self.init(ip, in: packet)
    }

    /// The datagram behind the header of `ip`.
    init?(_ ip: IPLocation, in packet: Span<UInt8>) {
        let offset = ip.offset
        guard ip.transport == 17, !ip.isFragment, packet.count >= offset + 8 else { return nil }
        let byteCount = Int(packet.uint16(at: offset + 4))
        guard byteCount >= 8, packet.count >= offset + byteCount else { return nil }
        (source, destination) = ip.ends(
            sourcePort: packet.uint16(at: offset),
            destinationPort: packet.uint16(at: offset + 2)
        )
        payloadOffset = offset + 8
        payloadByteCount = byteCount - 8
    }
}

/// What of a TCP segment is told: whether it carries SIP.
///
/// Source: RFC 9293, section 3.1; RFC 3261, section 7
struct TCPSegment {
    /// Whether its bytes begin with the first line of a SIP message.
    let beginsSIP: Bool

    /// Reads the segment behind the header of `ip`; nil when it is none.
    init?(_ ip: IPLocation, in packet: Span<UInt8>) {
        let offset = ip.offset
        guard ip.transport == 6, !ip.isFragment, packet.count >= offset + 20 else { return nil }
        let start = offset + Int(packet[offset + 12] >> 4) * 4
        guard start >= offset + 20, start <= packet.count else { return nil }
        beginsSIP = Self.namesSIP(packet.extracting(start..<packet.count))
    }

    /// Whether the first line is that of a request or of an answer, both of which name SIP/2.0.
    private static func namesSIP(_ text: Span<UInt8>) -> Bool {
        let mark = Array("SIP/2.0".utf8)
        var matched = 0
        for index in 0..<min(text.count, 1024) where matched < mark.count {
            let byte = text[index]
            if byte == 13 || byte == 10 { return false }
            matched = byte == mark[matched] ? matched + 1 : byte == mark[0] ? 1 : 0
        }
        return matched == mark.count
    }
}
