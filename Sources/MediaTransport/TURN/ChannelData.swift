/// What goes by a channel between this side and a server of TURN.
///
///      0      number of the channel, 0x4000 to 0x4FFF
///      2      count of the bytes behind it
///      4      what the peer sends, or is sent; over UDP nothing is behind it
///
/// Source: RFC 8656, section 12.4.
enum ChannelData {
    static let headerByteCount = 4
    /// The first byte of each.
    static let firstBytes: ClosedRange<UInt8> = 0x40...0x4F

    static func wrapped(_ bytes: [UInt8], _ number: UInt16) -> [UInt8] {
        [UInt8(number >> 8), UInt8(number & 0xFF), UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    /// What a datagram has in it; nil for one that is nothing of that kind.
    static func unwrapped(_ datagram: [UInt8]) -> (number: UInt16, bytes: [UInt8])? {
        guard let (number, place) = place(in: datagram.span) else { return nil }
        return (number, Array(datagram[place]))
    }

    /// Where it is; nil for a datagram that is nothing of that kind.
    static func place(in datagram: Span<UInt8>) -> (number: UInt16, bytes: Range<Int>)? {
        guard datagram.count >= headerByteCount, firstBytes.contains(datagram[0]) else { return nil }
        let count = Int(datagram[2]) << 8 | Int(datagram[3])
        // Some pad it, as over TCP.
        guard headerByteCount + count <= datagram.count else { return nil }
        let number = UInt16(datagram[0]) << 8 | UInt16(datagram[1])
        return (number, headerByteCount..<headerByteCount + count)
    }
}
