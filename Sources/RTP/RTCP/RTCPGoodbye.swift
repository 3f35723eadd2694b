import CallBasics

/// A goodbye: sources that will send no more.
///
///    header (4): count = sources, PT = 203
///    SSRC (4 each) | optional: length (1), reason for leaving …
///
/// Source: RFC 3550, section 6.6
package struct RTCPGoodbye: Hashable, Sendable, BitwiseCopyable {
    /// Sources that leave, 0 to 31.
    package let sourceCount: Int
    private let start: Int

    /// Reads the goodbye whose header stands at `offset`.
    ///
    /// Throws: what the header throws, or `invalidLength` when sources or reason do not fit.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(RTPError) {
        let header = try RTCPHeader(parsing: bytes, at: offset)
        sourceCount = Int(header.count)
        start = offset &+ RTCPHeader.byteCount
        let end = offset &+ header.packetByteCount
        let sourcesEnd = start &+ 4 &* sourceCount
        guard sourcesEnd <= end else {
            throw RTPError(.invalidLength, found: header.packetByteCount, required: sourcesEnd &- offset)
        }
        guard sourcesEnd < end, !header.hasPadding else { return }
        let reasonEnd = sourcesEnd &+ 1 &+ Int(bytes[sourcesEnd])
        guard reasonEnd <= end else {
            throw RTPError(.invalidLength, found: header.packetByteCount, required: reasonEnd &- offset)
        }
    }

    /// Source `index`, or nil when there is none.
    package func source(_ index: Int, in bytes: Span<UInt8>) -> UInt32? {
        let position = start &+ 4 &* index
        guard index >= 0, index < sourceCount, bytes.count &- position >= 4 else { return nil }
        return bytes.uint32(at: position)
    }

    /// Whether `ssrc` is among those that leave.
    package func contains(_ ssrc: UInt32, in bytes: Span<UInt8>) -> Bool {
        for index in 0..<sourceCount where source(index, in: bytes) == ssrc { return true }
        return false
    }

    /// Writes the goodbye of `ssrc`, without a reason, at `offset`; answers its byte count, or 0 when it does not fit.
    package static func serialize(ssrc: UInt32, into bytes: inout MutableSpan<UInt8>, at offset: Int = 0) -> Int {
        guard offset >= 0, bytes.count &- offset >= 8 else { return 0 }
        let header = RTCPHeader(count: 1, packetType: RTCPHeader.PacketType.goodbye, packetByteCount: 8)
        header.serialize(into: &bytes, at: offset)
        bytes.store(ssrc, at: offset &+ 4)
        return 8
    }
}
