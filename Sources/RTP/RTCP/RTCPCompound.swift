/// The packets of one RTCP datagram, read one after the other without allocation.
///
/// The whole datagram is checked first: versions, lengths that add up to the datagram, a report in front, padding on
/// the last packet only. After that `next` cannot fail, except that a packet with a broken body is left out.
/// Source: RFC 3550, sections 6.1 and A.2
///
///     var compound = try RTCPCompound(parsing: bytes)
///     while let packet = compound.next(in: bytes) { … }
package struct RTCPCompound: Sendable, BitwiseCopyable {
    /// One packet of the compound.
    package enum Packet: Sendable, BitwiseCopyable {
        /// A sender report.
        case senderReport(RTCPSenderReport)
        /// A receiver report.
        case receiverReport(RTCPReceiverReport)
        /// A source description.
        case sourceDescription(RTCPSourceDescription)
        /// A goodbye.
        case goodbye(RTCPGoodbye)
        /// An extended report, whose blocks it hands out itself.
        case extendedReport(RTCPExtendedReport)
        /// An application-defined, feedback or unknown packet, which is skipped.
        case other(RTCPHeader)
    }

    /// Packets whose header is right and whose body is not.
    package private(set) var malformedCount = 0
    private var position = 0
    private let end: Int

    /// Checks the datagram `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: the whole datagram.
    ///   - allowsReducedSize: whether a datagram may begin with something else than a report (RFC 5506).
    /// - Throws: `truncated`, `unsupportedVersion`, `invalidLength`, `invalidPadding`, or `invalidFirstPacket`.
    package init(parsing bytes: Span<UInt8>, allowsReducedSize: Bool = false) throws(RTPError) {
        var offset = 0
        var end = 0
        repeat {
            let header = try RTCPHeader(parsing: bytes, at: offset)
            if offset == 0, !allowsReducedSize {
                let type = header.packetType
                guard type == RTCPHeader.PacketType.senderReport || type == RTCPHeader.PacketType.receiverReport else {
                    throw RTPError(.invalidFirstPacket, found: Int(type), required: 200)
                }
            }
            let next = offset &+ header.packetByteCount
            end = next
            if header.hasPadding {
                let padding = Int(bytes[next &- 1])
                guard next == bytes.count, padding > 0, padding & 3 == 0,
                    padding <= header.packetByteCount &- RTCPHeader.byteCount
                else {
                    throw RTPError(.invalidPadding, found: padding, required: header.packetByteCount)
                }
            }
            offset = next
        } while offset < bytes.count
        self.end = end
    }

    /// The next packet, or nil after the last; `bytes` must be those that were checked.
    package mutating func next(in bytes: Span<UInt8>) -> Packet? {
        while position < end, bytes.count >= end {
            guard let header = try? RTCPHeader(parsing: bytes, at: position) else { return nil }
            let offset = position
            position &+= header.packetByteCount
            if let packet = Self.packet(header, in: bytes, at: offset) { return packet }
            malformedCount &+= 1
        }
        return nil
    }

    private static func packet(_ header: RTCPHeader, in bytes: Span<UInt8>, at offset: Int) -> Packet? {
        switch header.packetType {
        case RTCPHeader.PacketType.senderReport:
            (try? RTCPSenderReport(parsing: bytes, at: offset)).map(Packet.senderReport)
        case RTCPHeader.PacketType.receiverReport:
            (try? RTCPReceiverReport(parsing: bytes, at: offset)).map(Packet.receiverReport)
        case RTCPHeader.PacketType.sourceDescription:
            (try? RTCPSourceDescription(parsing: bytes, at: offset)).map(Packet.sourceDescription)
        case RTCPHeader.PacketType.goodbye:
            (try? RTCPGoodbye(parsing: bytes, at: offset)).map(Packet.goodbye)
        case RTCPHeader.PacketType.extendedReport:
            (try? RTCPExtendedReport(parsing: bytes, at: offset)).map(Packet.extendedReport)
        default:
            Packet.other(header)
        }
    }
}
