package import CallBasics
import Glibc

/// A UDP datagram out of a capture.
package struct CapturedDatagram: Sendable, Equatable {
    /// When it was captured, in nanoseconds since 1970.
    package let unixNanoseconds: Int64
    /// Who sent it.
    package let source: SocketAddress
    /// To whom.
    package let destination: SocketAddress
    /// Its bytes.
    package let payload: [UInt8]

    /// A datagram that was captured at `unixNanoseconds`.
    package init(unixNanoseconds: Int64, source: SocketAddress, destination: SocketAddress, payload: [UInt8]) {
        self.unixNanoseconds = unixNanoseconds
        self.source = source
        self.destination = destination
        self.payload = payload
    }
}

/// Reads the UDP datagrams of a classic capture file, with time stamps in micro- or nanoseconds, of either byte order.
///
/// Link types: Ethernet (with VLAN tags), raw IP, BSD loopback, Linux cooked v1 and v2. What is no whole UDP datagram is
/// skipped and counted; a file that ends inside a record, or is damaged, ends the sequence there.
/// Thread: any but media; it allocates.
/// Source: IETF draft-ietf-opsawg-pcap; tcpdump.org's list of link types
package struct PcapReader: Sequence, IteratorProtocol, Sendable {
    /// Larger files are refused.
    package static let maximumByteCount = 1 << 29

    /// Packets that were no whole UDP datagram.
    package private(set) var skippedCount = 0
    /// Whether the file ended inside a record, or a record cannot be right.
    package private(set) var isCutShort = false

    private let bytes: [UInt8]
    private let isLittleEndian: Bool
    private let hasNanoseconds: Bool
    private let linkType: UInt32
    private var position = PcapRecord.fileHeaderByteCount
    private static let maximumPacketByteCount = 1 << 18

    /// Reads the capture in the file at `path`.
    ///
    /// Throws: `system`, `tooLarge`, `notACapture`, `nextGeneration`, or `unsupportedLinkType`.
    package init(path: String) throws(PcapError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.systemError(path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.systemError(path) }
        guard status.st_size <= Self.maximumByteCount else {
            throw PcapError(
                .tooLarge,
                "\(path) has \(status.st_size) bytes, more than \(Self.maximumByteCount). Cut it with editcap -c."
            )
        }
        var contents = [UInt8](repeating: 0, count: status.st_size)
        var filled = 0
        while filled < contents.count {
            let room = contents.count - filled
            let count = contents.withUnsafeMutableBytes { read(descriptor, $0.baseAddress.map { $0 + filled }, room) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.systemError(path) }
            guard count > 0 else { break }
            filled += count
        }
        contents.removeLast(contents.count - filled)
        try self.init(bytes: contents)
    }

    /// Reads the capture in `bytes`.
    ///
    /// Throws: `notACapture`, `nextGeneration`, or `unsupportedLinkType`.
    package init(bytes: [UInt8]) throws(PcapError) {
        self.bytes = bytes
        let magic = bytes.count >= 4 ? bytes.span.uint32(at: 0) : 0
        switch magic {
        case 0xA1B2_C3D4: (isLittleEndian, hasNanoseconds) = (false, false)
        case 0xD4C3_B2A1: (isLittleEndian, hasNanoseconds) = (true, false)
        case 0xA1B2_3C4D: (isLittleEndian, hasNanoseconds) = (false, true)
        case 0x4D3C_B2A1: (isLittleEndian, hasNanoseconds) = (true, true)
        case 0x0A0D_0D0A:
            throw PcapError(
                .nextGeneration,
                "The capture is pcapng, which is not read. Convert it: editcap -F pcap IN OUT, or tcpdump -r IN -w OUT."
            )
        default:
            throw PcapError(
                .notACapture,
                "The file does not begin as a capture does. Give one that tcpdump -w has written."
            )
        }
        guard bytes.count >= PcapRecord.fileHeaderByteCount else {
            throw PcapError(.notACapture, "The capture has \(bytes.count) bytes and ends in its header. Capture again.")
        }
        let word = bytes.span.uint32(at: 20)
        linkType = (isLittleEndian ? word.byteSwapped : word) & 0xFFFF
        guard LinkLayer.isSupported(linkType) else {
            throw PcapError(
                .unsupportedLinkType,
                "The capture has link type \(linkType), which is not read. Capture on an Ethernet, loopback or \"any\" interface."
            )
        }
    }

    /// The next UDP datagram, or nil at the end.
    package mutating func next() -> CapturedDatagram? {
        while let record = nextRecord() {
            if let datagram = datagram(in: record) { return datagram }
            skippedCount += 1
        }
        return nil
    }

    private struct Record {
        let unixNanoseconds: Int64
        let start: Int
        let end: Int
    }

    private mutating func nextRecord() -> Record? {
        guard position < bytes.count, !isCutShort else { return nil }
        guard bytes.count - position >= 16 else {
            isCutShort = true
            return nil
        }
        let seconds = Int64(word(at: position))
        let fraction = Int64(word(at: position + 4)) * (hasNanoseconds ? 1 : 1000)
        let captured = Int(word(at: position + 8))
        let start = position + 16
        guard captured <= Self.maximumPacketByteCount, captured <= bytes.count - start else {
            isCutShort = true
            return nil
        }
        position = start + captured
        return Record(unixNanoseconds: seconds * 1_000_000_000 + fraction, start: start, end: start + captured)
    }

    private func word(at offset: Int) -> UInt32 {
        let value = bytes.span.uint32(at: offset)
        return isLittleEndian ? value.byteSwapped : value
    }

    private func datagram(in record: Record) -> CapturedDatagram? {
        let packet = bytes.span.extracting(record.start..<record.end)
        guard let ip = LinkLayer.offsetOfIP(linkType, in: packet),
            let found = UDPLocation(in: packet.extracting(ip..<packet.count))
        else { return nil }
        let start = record.start + ip + found.payloadOffset
        return CapturedDatagram(
            unixNanoseconds: record.unixNanoseconds,
            source: found.source,
            destination: found.destination,
            payload: Array(bytes[start..<(start + found.payloadByteCount)])
        )
    }

    private static func systemError(_ path: String) -> PcapError {
        PcapError(
            .system,
            "\(path) could not be read: \(String(cString: strerror(errno))). Check the path and its permissions."
        )
    }
}
