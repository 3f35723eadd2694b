import CallBasics

/// The fixed fields that every RTP packet begins with.
///
///     0                   1                   2                   3
///     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |V=2|P|X|  CC   |M|     PT      |       sequence number         |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |                           timestamp                           |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |           synchronization source (SSRC) identifier            |
///    +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
///
/// Units: `timestamp` in units of the payload type's clock rate.
/// Source: RFC 3550, section 5.1
package struct RTPHeader: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of the fixed header.
    package static let byteCount = 12
    /// The version that RFC 3550 defines.
    package static let version: UInt8 = 2

    /// The marker bit: for audio, the first packet of a talk spurt (RFC 3551, section 4.1).
    package var isMarked: Bool
    /// The payload type, 0 to 127.
    package var payloadType: UInt8
    /// The sequence number, one higher for each packet sent.
    package var sequenceNumber: UInt16
    /// The sampling instant of the payload's first sample.
    package var timestamp: UInt32
    /// The synchronization source that sent the packet.
    package var ssrc: UInt32

    /// A header with the given fields.
    package init(isMarked: Bool = false, payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32) {
        self.isMarked = isMarked
        self.payloadType = payloadType & 0x7F
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
    }

    /// Writes the header, without contributing sources, extension or padding, to the first 12 bytes.
    ///
    /// Answers the byte count, 12, or 0 when `bytes` is shorter than that.
    /// Thread: any; allocates nothing.
    @discardableResult
    package func serialize(into bytes: inout MutableSpan<UInt8>) -> Int {
        guard bytes.count >= Self.byteCount else { return 0 }
        bytes[0] = Self.version << 6
        bytes[1] = (isMarked ? 0x80 : 0) | payloadType & 0x7F
        bytes.store(sequenceNumber, at: 2)
        bytes.store(timestamp, at: 4)
        bytes.store(ssrc, at: 8)
        return Self.byteCount
    }

    /// Writes the header and `payload` behind it; answers their byte count, or 0 when `bytes` is too short.
    ///
    /// Thread: any; allocates nothing.
    @discardableResult
    package func serialize(with payload: Span<UInt8>, into bytes: inout MutableSpan<UInt8>) -> Int {
        guard bytes.count >= Self.byteCount &+ payload.count else { return 0 }
        serialize(into: &bytes)
        bytes.store(payload, at: Self.byteCount)
        return Self.byteCount &+ payload.count
    }
}
