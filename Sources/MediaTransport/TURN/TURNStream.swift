/// What goes between this side and a server of TURN over TCP or TLS: a stream of bytes, in which each message tells its own length.
///
///     bytes of the connection ──► messages of STUN, and ChannelData without what it is padded by
///
/// It keeps no more than one message that is not there as a whole.
/// Source: RFC 8489, section 6.2.2; RFC 8656, section 12.5.
package struct TURNStream: Sendable {
    private var bytes: [UInt8] = []
    private var start = 0

    package init() {}

    package mutating func append(_ new: some Sequence<UInt8>) {
        bytes.removeFirst(start)
        start = 0
        bytes += new
    }

    /// The next message that is there as a whole; nil when none is.
    ///
    /// - Throws: `TURNError.malformed` when what follows begins nothing of TURN; nothing can be read behind it.
    package mutating func next() throws(TURNError) -> [UInt8]? {
        guard bytes.count - start >= Self.headByteCount else { return nil }
        guard let size = Self.size(bytes[start...]) else { throw .malformed }
        guard bytes.count - start >= size.padded else { return nil }
        defer { start += size.padded }
        return Array(bytes[start..<start + size.own])
    }

    /// A message as it goes into the stream; nil for what is none.
    package static func framed(_ message: [UInt8]) -> [UInt8]? {
        guard message.count >= headByteCount, let size = size(message[...]), size.own == message.count else {
            return nil
        }
        return message + [UInt8](repeating: 0, count: size.padded - size.own)
    }

    /// How long a message is, without and with what pads it; nil for what begins none.
    private static func size(_ bytes: ArraySlice<UInt8>) -> (own: Int, padded: Int)? {
        let first = bytes.startIndex
        let count = Int(bytes[first + 2]) << 8 | Int(bytes[first + 3])
        let size: (own: Int, padded: Int)
        if ChannelData.firstBytes.contains(bytes[first]) {
            let own = ChannelData.headerByteCount + count
            size = (own, (own + 3) & ~3)
        } else if bytes[first] & 0xC0 == 0, count & 3 == 0 {
            size = (STUNMessage.headerByteCount + count, STUNMessage.headerByteCount + count)
        } else {
            return nil
        }
        return size.own <= datagramLimit ? size : nil
    }

    private static let headByteCount = 4
    /// What a datagram of UDP can have, as which it goes on.
    private static let datagramLimit = 65_507
}
