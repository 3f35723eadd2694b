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
    private let start: Int
    private let end: Int

    /// Reads the description whose header stands at `offset`, and checks every chunk of it.
    ///
    /// Throws: what the header throws, or `invalidLength` when a chunk or an item leaves the packet.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(RTPError) {
        let header = try RTCPHeader(parsing: bytes, at: offset)
        chunkCount = Int(header.count)
        start = offset &+ RTCPHeader.byteCount
        end = offset &+ header.packetByteCount
        var position = start
        for _ in 0..<chunkCount {
            guard let chunk = chunkExtent(at: position, in: bytes) else {
                throw RTPError(.invalidLength, found: end &- position, required: end &- position &+ 1)
            }
            position = chunk.end
        }
    }

    /// Where the canonical name of `ssrc` lies in `bytes`, or nil when the description does not give it.
    package func canonicalNameRange(of ssrc: UInt32, in bytes: Span<UInt8>) -> Range<Int>? {
        guard bytes.count >= end else { return nil }
        var position = start
        for _ in 0..<chunkCount {
            guard let chunk = chunkExtent(at: position, in: bytes) else { return nil }
            if bytes.uint32(at: position) == ssrc { return chunk.canonicalName }
            position = chunk.end
        }
        return nil
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

    private func chunkExtent(at chunkStart: Int, in bytes: Span<UInt8>) -> (canonicalName: Range<Int>?, end: Int)? {
        guard chunkStart &+ 8 <= end, end <= bytes.count else { return nil }
        var canonicalName: Range<Int>?
        var position = chunkStart &+ 4
        while position < end {
            let type = bytes[position]
            guard type != 0 else {
                let padded = start &+ ((position &- start &+ 4) & ~3)
                return padded <= end ? (canonicalName, padded) : nil
            }
            guard position &+ 2 <= end else { return nil }
            let text = (position &+ 2)..<(position &+ 2 &+ Int(bytes[position &+ 1]))
            guard text.upperBound <= end else { return nil }
            if type == Self.canonicalNameType, canonicalName == nil { canonicalName = text }
            position = text.upperBound
        }
        return nil
    }
}
