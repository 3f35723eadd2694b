import CallBasics

/// A packet in a capture file: when it was captured, on which kind of network, and where its bytes lie.
struct CapturedFrame: Equatable {
    /// In nanoseconds since 1970.
    let unixNanoseconds: Int64
    let linkType: UInt32
    /// The bytes' places in the file.
    let range: Range<Int>
}

/// Finds the packets of a classic capture file.
///
///    file header (24): magic, version, zone, accuracy, longest packet, link type
///    records: seconds, micro- or nanoseconds, captured length, original length, packet
///
/// Source: IETF draft-ietf-opsawg-pcap
struct PcapFrames: Sendable {
    /// What is wrong with the file behind the last packet that was found.
    private(set) var damage: String?

    private let isLittleEndian: Bool
    private let hasNanoseconds: Bool
    private let linkType: UInt32
    private var position = PcapRecord.fileHeaderByteCount
    private static let maximumPacketByteCount = 1 << 18

    /// Reads the file header; nil when the file does not begin with the magic number.
    ///
    /// - Parameter bytes: The file.
    /// - Throws: `notACapture`, or `unsupportedLinkType`.
    init?(_ bytes: Span<UInt8>) throws(PcapError) {
        switch bytes.count >= 4 ? bytes.uint32(at: 0) : 0 {
        case 0xA1B2_C3D4: (isLittleEndian, hasNanoseconds) = (false, false)
        case 0xD4C3_B2A1: (isLittleEndian, hasNanoseconds) = (true, false)
        case 0xA1B2_3C4D: (isLittleEndian, hasNanoseconds) = (false, true)
        case 0x4D3C_B2A1: (isLittleEndian, hasNanoseconds) = (true, true)
        default: return nil
        }
        guard bytes.count >= PcapRecord.fileHeaderByteCount else {
            throw PcapError(.notACapture, "The capture has \(bytes.count) bytes and ends in its header. Capture again.")
        }
        let word = bytes.uint32(at: 20)
        linkType = (isLittleEndian ? word.byteSwapped : word) & 0xFFFF
        guard LinkLayer.isSupported(linkType) else { throw LinkLayer.unsupported(linkType) }
    }

    /// The next packet of the file, or nil at its end.
    mutating func next(in bytes: Span<UInt8>) -> CapturedFrame? {
        guard position < bytes.count, damage == nil else { return nil }
        guard bytes.count - position >= 16 else {
            damage = "It ends in the header of the record at byte \(position)."
            return nil
        }
        let seconds = Int64(word(bytes, position))
        let fraction = Int64(word(bytes, position + 4)) * (hasNanoseconds ? 1 : 1000)
        let captured = Int(word(bytes, position + 8))
        let start = position + 16
        guard captured <= Self.maximumPacketByteCount else {
            damage = "The record at byte \(position) says that it has \(captured) bytes, which no packet has."
            return nil
        }
        guard captured <= bytes.count - start else {
            damage = "The record at byte \(position) has \(captured) bytes, of which \(bytes.count - start) are there."
            return nil
        }
        position = start + captured
        return CapturedFrame(
            unixNanoseconds: seconds * 1_000_000_000 + fraction,
            linkType: linkType,
            range: start..<position
        )
    }

    private func word(_ bytes: Span<UInt8>, _ offset: Int) -> UInt32 {
        let value = bytes.uint32(at: offset)
        return isLittleEndian ? value.byteSwapped : value
    }
}
