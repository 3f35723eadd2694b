import CallBasics

/// Finds the packets of a capture file of the newer kind, pcapng, as Wireshark and dumpcap write it.
///
///    block: type (4), length (4), body, length again (4); the length is that of the whole block, a multiple of 4
///    section header (0x0A0D0D0A): byte order, version, section length, options; what follows has that byte order
///    interface description (1): link type (2), reserved (2), longest packet (4), options: if_tsresol, if_tsoffset
///    enhanced packet (6): interface, time (two words, the higher one first), captured length, original length, packet
///    simple packet (3): original length, packet; of the first interface, and without a time
///
/// Other blocks are skipped. A simple packet counts as captured when the packet before it was.
/// Shape: memory for the interfaces of one section.
/// Source: IETF draft-ietf-opsawg-pcapng, sections 4.1 to 4.4
struct PcapngFrames: Sendable {
    /// What is wrong with the file behind the last packet that was found.
    private(set) var damage: String?
    /// Packets that carry no time of their own.
    private(set) var untimedCount = 0

    private struct Interface: Sendable {
        let linkType: UInt32
        let snapLength: Int
        let resolution: UInt8
        let offsetSeconds: Int64
    }

    private static let sectionHeader: UInt32 = 0x0A0D_0D0A
    private static let maximumBlockByteCount = 1 << 24
    private static let maximumInterfaceCount = 1 << 16
    private static let microseconds: UInt8 = 6

    private var isLittleEndian = false
    private var interfaces: [Interface] = []
    private var position = 0
    private var lastNanoseconds: Int64 = 0

    /// Begins with the first section header; nil when the file does not begin with one.
    init?(_ bytes: Span<UInt8>) {
        guard bytes.count >= 4, bytes.uint32(at: 0) == Self.sectionHeader else { return nil }
    }

    /// The next packet of the file, or nil at its end.
    mutating func next(in bytes: Span<UInt8>) -> CapturedFrame? {
        while position < bytes.count, damage == nil {
            guard let block = nextBlock(bytes) else { return nil }
            switch block.type {
            case Self.sectionHeader: interfaces = []
            case 1: addInterface(bytes, block.body)
            case 3: if let frame = simplePacket(bytes, block.body) { return frame }
            case 6: if let frame = enhancedPacket(bytes, block.body) { return frame }
            default: break
            }
        }
        return nil
    }

    // MARK: Blocks

    private mutating func nextBlock(_ bytes: Span<UInt8>) -> (type: UInt32, body: Range<Int>)? {
        let rest = bytes.count - position
        guard rest >= 12 else { return spoilt("It ends in the header of the block at byte \(position).") }
        // A section header is the same in both orders, and says which one holds from here on.
        if bytes.uint32(at: position) == Self.sectionHeader {
            switch bytes.uint32(at: position + 8) {
            case 0x1A2B_3C4D: isLittleEndian = false
            case 0x4D3C_2B1A: isLittleEndian = true
            default: return spoilt("The section header at byte \(position) has no byte order.")
            }
        }
        let type = word(bytes, position)
        let byteCount = Int(word(bytes, position + 4))
        let least = type == Self.sectionHeader ? 28 : 12
        guard byteCount >= least, byteCount % 4 == 0, byteCount <= Self.maximumBlockByteCount else {
            return spoilt("The block at byte \(position) says that it has \(byteCount) bytes, which none can have.")
        }
        guard byteCount <= rest else {
            return spoilt("The block at byte \(position) has \(byteCount) bytes, of which \(rest) are there.")
        }
        guard Int(word(bytes, position + byteCount - 4)) == byteCount else {
            return spoilt("The block at byte \(position) has another length at its end.")
        }
        if type == Self.sectionHeader {
            let version = half(bytes, position + 12)
            guard version == 1 else {
                return spoilt("The section at byte \(position) has version \(version), of which only 1 is known.")
            }
        }
        let start = position
        position += byteCount
        return (type, start + 8..<start + byteCount - 4)
    }

    private mutating func spoilt(_ reason: String) -> (type: UInt32, body: Range<Int>)? {
        damage = reason
        return nil
    }

    private mutating func addInterface(_ bytes: Span<UInt8>, _ body: Range<Int>) {
        guard body.count >= 8, interfaces.count < Self.maximumInterfaceCount else {
            damage = "The interface description at byte \(body.lowerBound - 8) is too short, or one of too many."
            return
        }
        var (resolution, offsetSeconds) = (Self.microseconds, Int64(0))
        var option = body.lowerBound + 8
        // An option has its code and its length in two bytes each, and a value that is filled up to a multiple of four.
        while body.upperBound - option >= 4 {
            let (code, length) = (half(bytes, option), Int(half(bytes, option + 2)))
            guard code != 0, length <= body.upperBound - option - 4 else { break }
            if code == 9, length == 1 { resolution = bytes[option + 4] }
            if code == 14, length == 8 {
                let words = (UInt64(word(bytes, option + 4)), UInt64(word(bytes, option + 8)))
                let whole = isLittleEndian ? words.1 << 32 | words.0 : words.0 << 32 | words.1
                offsetSeconds = Int64(bitPattern: whole)
            }
            option += 4 + (length + 3) / 4 * 4
        }
        interfaces.append(
            Interface(
                linkType: UInt32(half(bytes, body.lowerBound)),
                snapLength: Int(word(bytes, body.lowerBound + 4)),
                resolution: resolution,
                offsetSeconds: offsetSeconds
            )
        )
    }

    // MARK: Packets

    private mutating func enhancedPacket(_ bytes: Span<UInt8>, _ body: Range<Int>) -> CapturedFrame? {
        let block = body.lowerBound - 8
        guard body.count >= 20 else {
            damage = "The packet at byte \(block) ends in its header."
            return nil
        }
        let number = Int(word(bytes, body.lowerBound))
        guard number < interfaces.count else {
            damage = "The packet at byte \(block) is of interface \(number), which is not described."
            return nil
        }
        let captured = Int(word(bytes, body.lowerBound + 12))
        guard captured <= body.count - 20 else {
            damage = "The packet at byte \(block) says \(captured) bytes, which its block does not hold."
            return nil
        }
        let ticks =
            UInt64(word(bytes, body.lowerBound + 4)) << 32 | UInt64(word(bytes, body.lowerBound + 8))
        lastNanoseconds = Self.nanoseconds(ticks, interfaces[number])
        return frame(interfaces[number], at: body.lowerBound + 20, captured)
    }

    private mutating func simplePacket(_ bytes: Span<UInt8>, _ body: Range<Int>) -> CapturedFrame? {
        guard body.count >= 4, let interface = interfaces.first else {
            damage = "The simple packet at byte \(body.lowerBound - 8) has no length, or no interface."
            return nil
        }
        let original = Int(word(bytes, body.lowerBound))
        let limit = interface.snapLength > 0 ? interface.snapLength : Int.max
        untimedCount += 1
        return frame(interface, at: body.lowerBound + 4, min(original, limit, body.count - 4))
    }

    private func frame(_ interface: Interface, at start: Int, _ byteCount: Int) -> CapturedFrame {
        CapturedFrame(
            unixNanoseconds: lastNanoseconds,
            linkType: interface.linkType,
            range: start..<start + byteCount
        )
    }

    /// The time of `ticks`: the highest bit of the resolution says whether its others are a power of 2 or of 10.
    private static func nanoseconds(_ ticks: UInt64, _ interface: Interface) -> Int64 {
        let exponent = Int(interface.resolution & 0x7F)
        let scaled = UInt128(ticks) * 1_000_000_000
        // A time is less than 2^94, and less than 10^29, of the finest units that are told apart.
        let time: UInt128
        if interface.resolution & 0x80 != 0 {
            time = scaled >> UInt128(exponent)
        } else {
            time = exponent > 28 ? 0 : scaled / (0..<exponent).reduce(UInt128(1)) { power, _ in power * 10 }
        }
        let (offset, overflow) = interface.offsetSeconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return 0 }
        let (sum, tooLarge) = Int64(clamping: time).addingReportingOverflow(offset)
        return tooLarge ? .max : max(sum, 0)
    }

    private func word(_ bytes: Span<UInt8>, _ offset: Int) -> UInt32 {
        let value = bytes.uint32(at: offset)
        return isLittleEndian ? value.byteSwapped : value
    }

    private func half(_ bytes: Span<UInt8>, _ offset: Int) -> UInt16 {
        let value = bytes.uint16(at: offset)
        return isLittleEndian ? value.byteSwapped : value
    }
}
