import CallBasics
import Glibc

/// Lays out capture records: a time stamp, made-up IP and UDP headers with right checksums, and the datagram.
///
///    record header (16): seconds, microseconds, captured length, original length, all little-endian
///    IPv4 header (20) or IPv6 header (40) | UDP header (8) | payload
///
/// The file's link type is raw IP, which has nothing in front of the IP header.
/// Thread: any; allocates nothing.
/// Source: IETF draft-ietf-opsawg-pcap; RFC 791; RFC 8200; RFC 768
enum PcapRecord {
    static let fileHeaderByteCount = 24
    static let maximumPayloadByteCount = 65_507
    static let maximumOverhead = 16 + 40 + 8
    static let linkTypeRaw: UInt32 = 101

    /// Writes the header that the file begins with; answers its byte count.
    static func serializeFileHeader(into bytes: inout MutableSpan<UInt8>) -> Int {
        storeLittle(0xA1B2_C3D4, into: &bytes, at: 0)
        storeLittle(0x0004_0002, into: &bytes, at: 4)
        storeLittle(0, into: &bytes, at: 8)
        storeLittle(0, into: &bytes, at: 12)
        storeLittle(262_144, into: &bytes, at: 16)
        storeLittle(linkTypeRaw, into: &bytes, at: 20)
        return fileHeaderByteCount
    }

    /// Writes the record of one datagram; answers its byte count, or 0 when it does not fit or is no UDP datagram's size.
    static func serialize(
        _ payload: Span<UInt8>,
        from source: SocketAddress,
        to destination: SocketAddress,
        unixNanoseconds: Int64,
        into bytes: inout MutableSpan<UInt8>
    ) -> Int {
        let isIPv4 = source.isIPv4 && destination.isIPv4
        let addressByteCount = isIPv4 ? 4 : 16
        let ipByteCount = isIPv4 ? 20 : 40
        let packetByteCount = ipByteCount &+ 8 &+ payload.count
        guard payload.count <= maximumPayloadByteCount, bytes.count >= 16 &+ packetByteCount else { return 0 }

        let time = max(unixNanoseconds, 0)
        storeLittle(UInt32(truncatingIfNeeded: time / 1_000_000_000), into: &bytes, at: 0)
        storeLittle(UInt32(truncatingIfNeeded: time % 1_000_000_000 / 1000), into: &bytes, at: 4)
        storeLittle(UInt32(packetByteCount), into: &bytes, at: 8)
        storeLittle(UInt32(packetByteCount), into: &bytes, at: 12)

        let ip = 16
        let udpByteCount = UInt16(8 &+ payload.count)
        for index in ip..<(ip &+ ipByteCount) { bytes[index] = 0 }
        if isIPv4 {
            bytes[ip] = 0x45
            bytes.store(UInt16(packetByteCount), at: ip &+ 2)
            bytes[ip &+ 6] = 0x40
            bytes[ip &+ 8] = 64
            bytes[ip &+ 9] = 17
        } else {
            bytes[ip] = 0x60
            bytes.store(udpByteCount, at: ip &+ 4)
            bytes[ip &+ 6] = 17
            bytes[ip &+ 7] = 64
        }
        let addresses = ip &+ (isIPv4 ? 12 : 8)
        store(source, isIPv4: isIPv4, into: &bytes, at: addresses)
        store(destination, isIPv4: isIPv4, into: &bytes, at: addresses &+ addressByteCount)
        if isIPv4 { bytes.store(~fold(sum(bytes, from: ip, count: 20)), at: ip &+ 10) }

        let udp = ip &+ ipByteCount
        bytes.store(source.port, at: udp)
        bytes.store(destination.port, at: udp &+ 2)
        bytes.store(udpByteCount, at: udp &+ 4)
        bytes.store(UInt16(0), at: udp &+ 6)
        bytes.store(payload, at: udp &+ 8)
        // The pseudo header: addresses, protocol and length; then the datagram itself.
        var total = sum(bytes, from: addresses, count: 2 &* addressByteCount) &+ 17 &+ UInt32(udpByteCount)
        total &+= sum(bytes, from: udp, count: Int(udpByteCount))
        let checksum = ~fold(total)
        bytes.store(checksum == 0 ? 0xFFFF : checksum, at: udp &+ 6)
        return 16 &+ packetByteCount
    }

    private static func store(
        _ address: SocketAddress,
        isIPv4: Bool,
        into bytes: inout MutableSpan<UInt8>,
        at offset: Int
    ) {
        if isIPv4 {
            bytes.store(UInt32(bigEndian: address.inAddress.s_addr), at: offset)
            return
        }
        let words = unsafeBitCast(address.in6Address, to: (UInt32, UInt32, UInt32, UInt32).self)
        bytes.store(UInt32(bigEndian: words.0), at: offset)
        bytes.store(UInt32(bigEndian: words.1), at: offset &+ 4)
        bytes.store(UInt32(bigEndian: words.2), at: offset &+ 8)
        bytes.store(UInt32(bigEndian: words.3), at: offset &+ 12)
    }

    private static func sum(_ bytes: borrowing MutableSpan<UInt8>, from start: Int, count: Int) -> UInt32 {
        var total: UInt32 = 0
        var index = start
        let end = start &+ count
        while index < end {
            let low = index &+ 1 < end ? bytes[index &+ 1] : 0
            total &+= UInt32(bytes[index]) << 8 | UInt32(low)
            index &+= 2
        }
        return total
    }

    private static func fold(_ total: UInt32) -> UInt16 {
        let once = (total & 0xFFFF) &+ (total >> 16)
        return UInt16(truncatingIfNeeded: (once & 0xFFFF) &+ (once >> 16))
    }

    private static func storeLittle(_ value: UInt32, into bytes: inout MutableSpan<UInt8>, at offset: Int) {
        bytes.store(value.byteSwapped, at: offset)
    }
}
