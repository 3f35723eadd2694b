import MediaEngine
import SDP

/// The RTP streams in a capture: who sends what to whom, and which codec it probably is.
///
/// A stream is what one SSRC sends from one address to another. A datagram that merely looks like RTP forms a stream of
/// its own, which is left out when its sequence numbers make no sense. Session descriptions in SIP messages of the
/// capture name the codecs of dynamic payload types.
/// Thread: control; it allocates, but not without bound: see `maximumStreamCount`.
struct CapturedStreams: Sendable {
    /// One stream.
    struct Stream: Sendable, Hashable {
        /// The source.
        let ssrc: UInt32
        /// Who sends.
        let source: SocketAddress
        /// To whom.
        let destination: SocketAddress
        /// Packets, duplicates included.
        var packetCount = 0
        /// Bytes of their payloads.
        var payloadByteCount = 0
        /// When the first packet was captured, in nanoseconds since 1970.
        var firstNanoseconds: Int64
        /// When the last packet was captured.
        var lastNanoseconds: Int64
        /// Packets of each payload type.
        var payloadTypes: [UInt8: Int] = [:]
        /// Steps from one sequence number to the next that are small, as in a stream.
        var steadyCount = 0
        var lastSequence: SequenceNumber?

        /// The payload type of most packets, telephone events and comfort noise left out where there is another.
        func mainPayloadType(except others: Set<UInt8>) -> UInt8 {
            let candidates = payloadTypes.filter { !others.contains($0.key) }
            let all = candidates.isEmpty ? payloadTypes : candidates
            return all.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? 0
        }

        /// How long it lasted.
        var duration: Duration {
            let (span, overflow) = lastNanoseconds.subtractingReportingOverflow(firstNanoseconds)
            return .nanoseconds(overflow ? 0 : max(span, 0))
        }

        /// Whether the sequence numbers are those of a stream.
        var isCredible: Bool { packetCount >= 3 && steadyCount * 2 >= packetCount }
    }

    /// Streams beyond these are left out.
    static let maximumStreamCount = 4096

    /// The streams, the one with the most packets first.
    private(set) var streams: [Stream] = []
    /// What session descriptions in the capture say of payload types; of several, the last.
    private(set) var formats: [UInt8: SDP.PayloadFormat] = [:]
    /// UDP datagrams in the capture.
    private(set) var datagramCount = 0
    /// Datagrams that belong to no stream.
    private(set) var otherCount = 0

    private struct Key: Hashable {
        let ssrc: UInt32
        let source: SocketAddress
        let destination: SocketAddress
    }

    /// The streams in `datagrams`.
    init(_ datagrams: some Sequence<CapturedDatagram>) {
        var found: [Key: Stream] = [:]
        for datagram in datagrams {
            datagramCount += 1
            let bytes = datagram.payload.span
            guard DatagramKind(of: bytes) == .rtp, let packet = Self.packet(bytes) else {
                otherCount += 1
                readDescription(datagram.payload)
                continue
            }
            let key = Key(ssrc: packet.header.ssrc, source: datagram.source, destination: datagram.destination)
            guard found[key] != nil || found.count < Self.maximumStreamCount else {
                otherCount += 1
                continue
            }
            let fresh = Stream(
                ssrc: key.ssrc,
                source: key.source,
                destination: key.destination,
                firstNanoseconds: datagram.unixNanoseconds,
                lastNanoseconds: datagram.unixNanoseconds
            )
            found[key, default: fresh].add(packet, at: datagram.unixNanoseconds)
        }
        streams = found.values.filter(\.isCredible).sorted { left, right in
            (right.packetCount, left.ssrc, left.source.port) < (left.packetCount, right.ssrc, right.source.port)
        }
        otherCount += found.values.reduce(0) { $0 + ($1.isCredible ? 0 : $1.packetCount) }
    }

    /// The payload type of `stream`'s sound.
    func payloadType(of stream: Stream) -> UInt8 {
        let names = ["telephone-event", "CN", "red"]
        let beside = formats.values.filter { format in names.contains { format.isNamed($0) } }.map(\.payloadType)
        let type = stream.mainPayloadType(except: Set(beside + [13, Self.usualTelephoneEvents]))
        guard type == redPayloadType(of: stream), let inside = formats[type]?.parameters?.split(separator: "/").first
        else {
            return type
        }
        // Everything is packed in RED, whose parameters name what is inside: "96/96".
        return UInt8(inside).map { $0 & 0x7F } ?? type
    }

    /// The payload type of redundant audio (RED, RFC 2198) in `stream`, where it is described.
    func redPayloadType(of stream: Stream) -> UInt8? {
        formats.values.first { $0.isNamed("red") && stream.payloadTypes[$0.payloadType] != nil }?.payloadType
    }

    /// The payload type of `stream`'s telephone events: one that is described, above all one that the stream has, or 101.
    func telephoneEventPayloadType(of stream: Stream) -> UInt8 {
        let described = formats.values.filter { $0.isNamed("telephone-event") }.map(\.payloadType).sorted()
        return described.first { stream.payloadTypes[$0] != nil } ?? described.first ?? Self.usualTelephoneEvents
    }

    private static let usualTelephoneEvents: UInt8 = 101

    /// Whether `datagram` is a packet of `stream`.
    static func contains(_ stream: Stream, _ datagram: CapturedDatagram) -> Bool {
        guard datagram.source == stream.source, datagram.destination == stream.destination else { return false }
        let bytes = datagram.payload.span
        guard DatagramKind(of: bytes) == .rtp, let packet = packet(bytes) else { return false }
        return packet.header.ssrc == stream.ssrc
    }

    private static func packet(_ bytes: Span<UInt8>) -> RTPPacket? {
        do throws(RTPError) { return try RTPPacket(parsing: bytes) } catch { return nil }
    }

    /// Takes the formats of a session description behind the header of a SIP message.
    private mutating func readDescription(_ bytes: [UInt8]) {
        guard let start = Self.bodyStart(bytes) else { return }
        do throws(SDPError) {
            let description = try SDP.SessionDescription(parsing: bytes.span.extracting(start...))
            for format in description.media.filter({ $0.kind == "audio" }).flatMap(\.formats) {
                formats[format.payloadType] = format
            }
        } catch {
            // The message has a body of another kind; the stream is replayed without.
            return
        }
    }

    private static func bodyStart(_ bytes: [UInt8]) -> Int? {
        guard let first = bytes.first, 0x41...0x5A ~= first else { return nil }
        let mark: [UInt8] = [13, 10, 13, 10]
        guard bytes.count > mark.count else { return nil }
        return (0..<(bytes.count - mark.count)).first { bytes[$0] == 13 && bytes[$0..<($0 + 4)].elementsEqual(mark) }
            .map { $0 + mark.count }
    }
}

extension CapturedStreams.Stream {
    fileprivate mutating func add(_ packet: RTPPacket, at nanoseconds: Int64) {
        let sequence = SequenceNumber(packet.header.sequenceNumber)
        if let lastSequence, -100...1000 ~= sequence.distance(from: lastSequence) { steadyCount += 1 }
        lastSequence = sequence
        packetCount += 1
        payloadByteCount += packet.payloadByteCount
        payloadTypes[packet.header.payloadType, default: 0] += 1
        lastNanoseconds = nanoseconds
    }
}
