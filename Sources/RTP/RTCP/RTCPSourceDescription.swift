import CallBasics

/// A source description: names for sources, of which the canonical name is the one that must be there.
///
///    header (4): count = chunks, PT = 202
///    chunk: SSRC (4) | items: type (1), length (1), text … | one to four zero bytes up to a multiple of 4
///
/// Source: RFC 3550, sections 6.5 and 6.5.1
package struct RTCPSourceDescription: Hashable, Sendable, BitwiseCopyable {
    /// Longest text of an item.
    package static let maximumTextByteCount = 255
    /// The item type of the canonical name.
    package static let canonicalNameType: UInt8 = 1

    /// Chunks in the packet, 0 to 31.
    package let chunkCount: Int

    /// Reads the description whose header stands at `offset`, and checks every chunk of it.
    ///
    /// Throws: what the header throws, or `invalidLength` when a chunk or an item leaves the packet.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(RTPError) {
        let header = try RTCPHeader(parsing: bytes, at: offset)
        chunkCount = Int(header.count)
        let chunks = (offset &+ RTCPHeader.byteCount)..<(offset &+ header.packetByteCount)
        var position = chunks.lowerBound
        for _ in 0..<chunkCount {
            guard let end = Self.chunkEnd(at: position, in: bytes, chunks) else {
                let left = chunks.upperBound &- position
                throw RTPError(.invalidLength, found: left, required: left &+ 1)
            }
            position = end
        }
    }

    /// Writes a description of one chunk that gives `ssrc` its canonical name, at `offset`.
    ///
    /// Answers the byte count, or 0 when it does not fit or the name is longer than 255 bytes.
    package static func serialize(
        ssrc: UInt32,
        canonicalName: Span<UInt8>,
        into bytes: inout MutableSpan<UInt8>,
        at offset: Int = 0
    ) -> Int {
        // At least one zero byte ends the items, and more fill the word.
        let used = 8 &+ 2 &+ canonicalName.count
        let byteCount = (used &+ 4) & ~3
        guard canonicalName.count <= maximumTextByteCount, offset >= 0, bytes.count &- offset >= byteCount else {
            return 0
        }
        let type = RTCPHeader.PacketType.sourceDescription
        RTCPHeader(count: 1, packetType: type, packetByteCount: byteCount).serialize(into: &bytes, at: offset)
        bytes.store(ssrc, at: offset &+ 4)
        bytes[offset &+ 8] = canonicalNameType
        bytes[offset &+ 9] = UInt8(truncatingIfNeeded: canonicalName.count)
        bytes.store(canonicalName, at: offset &+ 10)
        for index in used..<byteCount { bytes[offset &+ index] = 0 }
        return byteCount
    }

    /// Where the chunk at `chunkStart` ends, filled up to a word; nil when it leaves `chunks`.
    private static func chunkEnd(at chunkStart: Int, in bytes: Span<UInt8>, _ chunks: Range<Int>) -> Int? {
        let end = chunks.upperBound
        guard chunkStart &+ 8 <= end, end <= bytes.count else { return nil }
        var position = chunkStart &+ 4
        while position < end {
            guard bytes[position] != 0 else {
                let padded = chunks.lowerBound &+ ((position &- chunks.lowerBound &+ 4) & ~3)
                return padded <= end ? padded : nil
            }
            guard position &+ 2 <= end else { return nil }
            let textEnd = position &+ 2 &+ Int(bytes[position &+ 1])
            guard textEnd <= end else { return nil }
            position = textEnd
        }
        return nil
    }
}
