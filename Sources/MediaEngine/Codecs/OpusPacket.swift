/// The outer shape of an Opus packet: enough to know whether it carries a copy of the packet before.
///
///      0 1 2 3 4 5 6 7
///     +-+-+-+-+-+-+-+-+
///     | config  |s| c |   config: mode, bandwidth, frame size; s: stereo; c: how frames are packed
///     +-+-+-+-+-+-+-+-+
///
/// Source: RFC 6716, sections 3.1, 3.2 and 4.2.3.
package struct OpusPacket {
    /// Whether the SILK part of the first frame holds low-bitrate redundancy (LBRR): in-band FEC.
    let carriesFEC: Bool

    /// The shape of `payload`, or nil when it is not a packet.
    init?(parsing payload: Span<UInt8>) {
        guard payload.count > 0, payload.count <= 1275 * 48 + 64 else { return nil }
        let config = payload[0] >> 3
        guard let first = Self.firstFrame(of: payload) else { return nil }
        guard config < 16, first.byteCount > 0 else {
            carriesFEC = false
            return
        }
        // The header bits of a SILK frame come first and have even odds, so the range coder leaves them as plain
        // bits: per channel one voice activity flag for each 20 ms, then one LBRR flag.
        let silkFrameCount = config >= 12 ? 1 : max(1, UInt8(config & 3))
        let bits = payload[first.offset]
        let middle = bits >> (7 - silkFrameCount) & 1
        let isStereo = payload[0] & 4 != 0
        // Side: two sets of flags; with three SILK frames they fill the byte exactly.
        let side = isStereo ? bits >> (6 - 2 * silkFrameCount) & 1 : 0
        carriesFEC = middle | side != 0
    }

    /// How long the sound of `payload` is, in units of 48 kHz, as its time stamps count; nil when it is not a packet.
    ///
    /// Source: RFC 6716, section 3.1 (table 2), and 3.2 (at most 120 ms).
    package static func timestampUnits(of payload: Span<UInt8>) -> UInt32? {
        guard payload.count > 0 else { return nil }
        let config = payload[0] >> 3
        let frame: UInt32
        switch config {
        // SILK lasts 10, 20, 40 or 60 ms, the hybrid 10 or 20, CELT 2.5, 5, 10 or 20.
        case 0..<12: frame = config & 3 == 3 ? 2880 : 480 << UInt32(config & 3)
        case 12..<16: frame = 480 << UInt32(config & 1)
        default: frame = 120 << UInt32(config & 3)
        }
        let count: UInt32
        switch payload[0] & 3 {
        case 0: count = 1
        case 1, 2: count = 2
        default: count = payload.count > 1 ? UInt32(payload[1] & 0x3F) : 0
        }
        let units = frame * count
        return 120...5760 ~= units ? units : nil
    }

    /// Where the first frame lies.
    private static func firstFrame(of payload: Span<UInt8>) -> (offset: Int, byteCount: Int)? {
        let count = payload.count
        switch payload[0] & 3 {
        case 0: return (1, count - 1)
        case 1: return (count - 1) % 2 == 0 ? (1, (count - 1) / 2) : nil
        case 2:
            guard let (length, lengthBytes) = frameLength(in: payload, at: 1) else { return nil }
            return 1 + lengthBytes + length <= count ? (1 + lengthBytes, length) : nil
        default: return firstOfMany(in: payload)
        }
    }

    /// Code 3: a frame count byte, the padding's length, then lengths of all frames but the last when they differ.
    private static func firstOfMany(in payload: Span<UInt8>) -> (offset: Int, byteCount: Int)? {
        guard payload.count >= 2 else { return nil }
        let frameCount = Int(payload[1] & 0x3F)
        guard frameCount > 0, frameCount <= 48 else { return nil }
        var offset = 2
        var end = payload.count
        if payload[1] & 0x40 != 0 {
            var isLast = false
            while !isLast {
                guard offset < end else { return nil }
                let byte = payload[offset]
                offset += 1
                isLast = byte != 255
                end -= isLast ? Int(byte) : 254
            }
        }
        guard payload[1] & 0x80 != 0 else {
            let rest = end - offset
            return rest >= 0 && rest % frameCount == 0 ? (offset, rest / frameCount) : nil
        }
        var first = -1
        var sum = 0
        for _ in 0..<frameCount - 1 {
            guard offset < end, let (length, lengthBytes) = frameLength(in: payload, at: offset) else { return nil }
            if first < 0 { first = length }
            sum += length
            offset += lengthBytes
        }
        guard offset + sum <= end else { return nil }
        return (offset, first < 0 ? end - offset : first)
    }

    /// A frame length of one or two bytes (RFC 6716, section 3.2.1).
    private static func frameLength(in payload: Span<UInt8>, at offset: Int) -> (length: Int, byteCount: Int)? {
        guard offset < payload.count else { return nil }
        let first = Int(payload[offset])
        guard first >= 252 else { return (first, 1) }
        guard offset + 1 < payload.count else { return nil }
        return (first + 4 * Int(payload[offset + 1]), 2)
    }
}
