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

/// Where the payload of a UDP datagram lies in an IP packet, and between whom it travels.
///
/// Source: RFC 791, RFC 8200, RFC 768
struct UDPLocation {
    let source: SocketAddress
    let destination: SocketAddress
    let payloadOffset: Int
    let payloadByteCount: Int

    /// Reads the headers in `packet`; nil for anything but one whole, unfragmented UDP datagram.
    init?(in packet: Span<UInt8>) {
        guard let first = packet.count > 0 ? packet[0] : nil else { return nil }
        switch first >> 4 {
        case 4: self.init(inIPv4: packet)
        case 6: self.init(inIPv6: packet)
        default: return nil
        }
    }

    private init?(inIPv4 packet: Span<UInt8>) {
        guard packet.count >= 20 else { return nil }
        let headerByteCount = Int(packet[0] & 0x0F) * 4
        // More fragments, or a fragment's offset.
        guard headerByteCount >= 20, packet[9] == 17, packet.uint16(at: 6) & 0x3FFF == 0 else { return nil }
        let (from, to) = (packet.uint32(at: 12), packet.uint32(at: 16))
        self.init(udpAt: headerByteCount, in: packet) { port, isSource in
            SocketAddress(ipv4: isSource ? from : to, port: port)
        }
    }

    private init?(inIPv6 packet: Span<UInt8>) {
        guard packet.count >= 40 else { return nil }
        var next = packet[6]
        var offset = 40
        // Hop-by-hop options, routing and destination options may stand before UDP.
        while next == 0 || next == 43 || next == 60 {
            guard packet.count >= offset + 8 else { return nil }
            next = packet[offset]
            offset += (Int(packet[offset + 1]) + 1) * 8
        }
        guard next == 17 else { return nil }
        let fromHigh = UInt64(packet.uint32(at: 8)) << 32 | UInt64(packet.uint32(at: 12))
        let fromLow = UInt64(packet.uint32(at: 16)) << 32 | UInt64(packet.uint32(at: 20))
        let toHigh = UInt64(packet.uint32(at: 24)) << 32 | UInt64(packet.uint32(at: 28))
        let toLow = UInt64(packet.uint32(at: 32)) << 32 | UInt64(packet.uint32(at: 36))
        self.init(udpAt: offset, in: packet) { port, isSource in
            SocketAddress(ipv6High: isSource ? fromHigh : toHigh, low: isSource ? fromLow : toLow, port: port)
        }
    }

    private init?(udpAt offset: Int, in packet: Span<UInt8>, address: (UInt16, Bool) -> SocketAddress) {
        guard packet.count >= offset + 8 else { return nil }
        let byteCount = Int(packet.uint16(at: offset + 4))
        guard byteCount >= 8, packet.count >= offset + byteCount else { return nil }
        source = address(packet.uint16(at: offset), true)
        destination = address(packet.uint16(at: offset + 2), false)
        payloadOffset = offset + 8
        payloadByteCount = byteCount - 8
    }
}
