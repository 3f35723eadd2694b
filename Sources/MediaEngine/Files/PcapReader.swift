package import CallBasics

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

/// Reads the UDP datagrams of a capture file: classic pcap, with time stamps in micro- or nanoseconds, or pcapng, both of
/// either byte order.
///
/// Link types: Ethernet (with VLAN tags), raw IP, BSD loopback, Linux cooked v1 and v2. What is no whole UDP datagram is
/// skipped and counted; a file that ends inside a record, or is damaged, ends the sequence there. A copy of the reader reads
/// on its own from where it was copied, and takes no more memory.
/// Thread: any but media; it allocates.
/// Source: IETF draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng; tcpdump.org's list of link types
package struct PcapReader: Sequence, IteratorProtocol, Sendable {
    /// Larger files are refused.
    package static let maximumByteCount = 1 << 29

    /// Packets that were no whole UDP datagram, TCP and fragments among them.
    package private(set) var skippedCount = 0
    /// Those of them that were TCP segments.
    package private(set) var tcpCount = 0
    /// TCP segments that a SIP message begins.
    package private(set) var sipOverTCPCount = 0
    /// Packets that were a fragment of another one.
    package private(set) var fragmentCount = 0
    /// Kinds of networks in a pcapng file that are not read.
    package private(set) var unreadLinkTypes: Set<UInt32> = []

    private let bytes: [UInt8]
    // One of the two is there.
    private var classic: PcapFrames?
    private var nextGeneration: PcapngFrames?

    /// Reads the capture in `bytes`.
    ///
    /// Throws: `tooLarge`, `notACapture`, or `unsupportedLinkType`.
    package init(bytes: [UInt8]) throws(PcapError) {
        guard bytes.count <= Self.maximumByteCount else {
            throw PcapError(
                .tooLarge,
                "The capture has more than \(Self.maximumByteCount) bytes. Cut it with editcap -c."
            )
        }
        self.bytes = bytes
        classic = try PcapFrames(bytes.span)
        nextGeneration = PcapngFrames(bytes.span)
        guard classic != nil || nextGeneration != nil else {
            throw PcapError(
                .notACapture,
                "The file does not begin as a capture does. Give one that tcpdump -w or Wireshark has written."
            )
        }
    }

    /// What is wrong with the file, with the byte at which it is, as far as it was read; nil while nothing is.
    package var damage: String? { classic?.damage ?? nextGeneration?.damage }

    /// Whether the file ended inside a record, or a record cannot be right.
    package var isCutShort: Bool { damage != nil }

    /// Packets without a time of their own, which count as captured with the one before.
    package var untimedCount: Int { nextGeneration?.untimedCount ?? 0 }

    /// The next UDP datagram, or nil at the end.
    package mutating func next() -> CapturedDatagram? {
        while let frame = nextFrame() {
            if let datagram = datagram(in: frame) { return datagram }
            skippedCount += 1
        }
        return nil
    }

    private mutating func nextFrame() -> CapturedFrame? {
        let bytes = bytes
        return classic == nil ? nextGeneration?.next(in: bytes.span) : classic?.next(in: bytes.span)
    }

    private mutating func datagram(in frame: CapturedFrame) -> CapturedDatagram? {
        guard LinkLayer.isSupported(frame.linkType) else {
            // A type has 16 bits, so the set does not grow without end.
            unreadLinkTypes.insert(frame.linkType)
            return nil
        }
        let bytes = bytes
        let packet = bytes.span.extracting(frame.range)
        guard let start = LinkLayer.offsetOfIP(frame.linkType, in: packet) else { return nil }
        let rest = packet.extracting(start..<packet.count)
        guard let ip = IPLocation(in: rest) else { return nil }
        guard let found = UDPLocation(ip, in: rest) else {
            let segment = TCPSegment(ip, in: rest)
            tcpCount += segment == nil ? 0 : 1
            sipOverTCPCount += segment?.beginsSIP == true ? 1 : 0
            fragmentCount += ip.isFragment ? 1 : 0
            return nil
        }
        let payload = frame.range.lowerBound + start + found.payloadOffset
        return CapturedDatagram(
            unixNanoseconds: frame.unixNanoseconds,
            source: found.source,
            destination: found.destination,
            payload: Array(bytes[payload..<payload + found.payloadByteCount])
        )
    }
}
