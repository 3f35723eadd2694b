internal import CallBasics
import MediaEngine
import SDP

/// The RTP streams in a capture: who sends what to whom, and which codec it probably is.
///
/// A stream is what one SSRC sends from one address to another. A datagram that merely looks like RTP forms a stream of
/// its own, which is left out when its sequence numbers make no sense. Session descriptions in SIP messages of the
/// capture name the codecs of dynamic payload types, and say with handshakes what is encrypted.
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
        /// Those of them that have four bytes of payload, as a telephone event has.
        var eventSizedCounts: [UInt8: Int] = [:]
        /// Steps from one sequence number to the next that are small, as in a stream.
        var steadyCount = 0
        var lastSequence: SequenceNumber?

        /// The payload type of most packets, telephone events and comfort noise left out where there is another.
        func mainPayloadType(except others: Set<UInt8>) -> UInt8 {
            let candidates = payloadTypes.filter { !others.contains($0.key) }
            let all = candidates.isEmpty ? payloadTypes : candidates
            return all.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? 0
        }

        /// What tells it from all others.
        var key: Key { Key(ssrc: ssrc, source: source, destination: destination) }

        /// How long it lasted.
        var duration: Duration {
            let (span, overflow) = lastNanoseconds.subtractingReportingOverflow(firstNanoseconds)
            return .nanoseconds(overflow ? 0 : max(span, 0))
        }

        /// For how long both lasted at once.
        func overlap(with other: Stream) -> Duration {
            let start = max(firstNanoseconds, other.firstNanoseconds)
            let (span, overflow) = min(lastNanoseconds, other.lastNanoseconds).subtractingReportingOverflow(start)
            return .nanoseconds(overflow ? 0 : max(span, 0))
        }

        /// Whether the sequence numbers are those of a stream.
        var isCredible: Bool { packetCount >= 3 && steadyCount * 2 >= packetCount }
    }

    /// What tells a stream from all others: both sides may choose one SSRC.
    struct Key: Hashable, Sendable {
        let ssrc: UInt32
        let source: SocketAddress
        let destination: SocketAddress
    }

    /// Streams beyond these are left out.
    static let maximumStreamCount = 4096

    /// The streams, the one with the most packets first.
    private(set) var streams: [Stream] = []
    /// What session descriptions in the capture say.
    private(set) var descriptions = CapturedDescriptions()
    /// Handshakes in the capture.
    private(set) var handshakes = EncryptionSigns()
    /// What receivers report of the streams.
    private(set) var reports = CapturedReports()
    /// UDP datagrams in the capture.
    private(set) var datagramCount = 0
    /// Datagrams that belong to no stream.
    private(set) var otherCount = 0

    /// The streams in `datagrams`.
    init(_ datagrams: some Sequence<CapturedDatagram>) {
        var found: [Key: Stream] = [:]
        for datagram in datagrams {
            datagramCount += 1
            let bytes = datagram.payload.span
            guard DatagramKind(of: bytes) == .rtp, let packet = Self.packet(bytes) else {
                otherCount += 1
                handshakes.add(datagram)
                reports.add(datagram)
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

    /// What the payload types of `stream` stand for, by session descriptions.
    func formats(of stream: Stream) -> [UInt8: CapturedDescriptions.Format] {
        descriptions.formats(from: stream.source, to: stream.destination)
    }

    /// What the payload type `type` of `stream` stands for: as described, or for good; nil where neither says it.
    func format(_ type: UInt8, of stream: Stream) -> (format: SDP.PayloadFormat, isDescribed: Bool)? {
        if let described = formats(of: stream)[type] { return (described.format, true) }
        return SDP.PayloadFormat(staticPayloadType: type).map { ($0, false) }
    }

    /// The payload type of `stream`'s sound.
    func payloadType(of stream: Stream) -> UInt8 {
        let formats = formats(of: stream)
        let names = ["telephone-event", "CN", "red"]
        let beside = formats.filter { entry in names.contains { entry.value.format.isNamed($0) } }.map(\.key)
        let type = stream.mainPayloadType(except: Set(beside + [13, telephoneEventPayloadType(of: stream)]))
        guard type == redPayloadType(of: stream),
            let inside = formats[type]?.format.parameters?.split(separator: "/").first
        else {
            return type
        }
        // Everything is packed in RED, whose parameters name what is inside: "96/96".
        return UInt8(inside).map { $0 & 0x7F } ?? type
    }

    /// The payload types of `stream` that are sound, too, beside `payloadType`, in their order.
    func otherSoundTypes(of stream: Stream, than payloadType: UInt8) -> [UInt8] {
        let formats = formats(of: stream)
        let events = telephoneEventPayloadType(of: stream)
        return stream.payloadTypes.keys.sorted().filter { type in
            // 13 is comfort noise; 72 to 76 would be RTCP (RFC 3551, section 6).
            guard type != payloadType, type != events, type != 13, !(72...76 ~= type) else { return false }
            return !["telephone-event", "CN", "red"].contains { formats[type]?.format.isNamed($0) ?? false }
        }
    }

    /// The payload type of redundant audio (RED, RFC 2198) in `stream`, where it is described.
    func redPayloadType(of stream: Stream) -> UInt8? {
        formats(of: stream).filter { $0.value.format.isNamed("red") && stream.payloadTypes[$0.key] != nil }.keys.min()
    }

    /// The payload type of `stream`'s telephone events: one that is described, above all one that the stream has; else one
    /// whose packets all have four bytes; else 101.
    func telephoneEventPayloadType(of stream: Stream) -> UInt8 {
        let formats = formats(of: stream)
        let described = formats.filter { $0.value.format.isNamed("telephone-event") }.keys.sorted()
        if let there = described.first(where: { stream.payloadTypes[$0] != nil }) { return there }
        let guessed = stream.eventSizedCounts.filter { type, count in
            type >= 96 && formats[type] == nil && stream.payloadTypes[type] == count
        }
        // The usual number before others, and those in their order.
        return guessed[Self.usualTelephoneEvents] != nil
            ? Self.usualTelephoneEvents : guessed.keys.min() ?? described.first ?? Self.usualTelephoneEvents
    }

    private static let usualTelephoneEvents: UInt8 = 101

    /// Whether `stream` has telephone events and nothing else but comfort noise.
    func hasKeysAlone(_ stream: Stream) -> Bool {
        let events = telephoneEventPayloadType(of: stream)
        guard let count = stream.payloadTypes[events], stream.eventSizedCounts[events] == count else { return false }
        return stream.payloadTypes.keys.allSatisfy { $0 == events || $0 == 13 }
    }

    /// Whether `stream` is a picture.
    func isVideo(_ stream: Stream) -> Bool {
        let type = stream.mainPayloadType(except: [])
        if let described = formats(of: stream)[type] { return described.kind == "video" }
        // RFC 3551, table 5; MP2T (33) is both.
        return 25...34 ~= type
    }

    /// The surveys of all streams, in their order, made of the same datagrams again.
    func surveys(_ datagrams: some Sequence<CapturedDatagram>) -> [StreamSurvey] {
        let surveyors = streams.map { stream in
            let type = payloadType(of: stream)
            return StreamSurveyor(
                payloadType: type,
                format: format(type, of: stream)?.format,
                eventPayloadType: telephoneEventPayloadType(of: stream)
            )
        }
        let places = Dictionary(zip(streams.map(\.key), streams.indices)) { first, _ in first }
        for datagram in datagrams {
            let bytes = datagram.payload.span
            guard DatagramKind(of: bytes) == .rtp, let packet = Self.packet(bytes) else { continue }
            let key = Key(ssrc: packet.header.ssrc, source: datagram.source, destination: datagram.destination)
            guard let place = places[key] else { continue }
            surveyors[place].add(packet, in: bytes, at: datagram.unixNanoseconds)
        }
        return surveyors.map(\.survey)
    }

    /// What says that `stream` is encrypted; nil where nothing does.
    func encryption(of stream: Stream, _ survey: StreamSurvey) -> EncryptionSigns.Sign? {
        handshakes.sign(
            from: stream.source,
            to: stream.destination,
            descriptions,
            isSound: survey.isSound,
            tagByteCount: survey.tagByteCount
        )
    }

    /// Whether `datagram` is a packet of `stream`.
    static func contains(_ stream: Stream, _ datagram: CapturedDatagram) -> Bool {
        guard datagram.source == stream.source, datagram.destination == stream.destination else { return false }
        let bytes = datagram.payload.span
        guard DatagramKind(of: bytes) == .rtp, let packet = packet(bytes) else { return false }
        return packet.header.ssrc == stream.ssrc
    }

    /// The time from one packet of a stream to another by their time stamps; nil where those do not tell it.
    static func timestampStep(_ one: CapturedDatagram, _ next: CapturedDatagram, clockRate: Int?) -> Duration? {
        guard let clockRate, clockRate > 0,
            let first = packet(one.payload.span), let second = packet(next.payload.span),
            first.header.payloadType == second.header.payloadType
        else { return nil }
        let units = second.header.timestamp &- first.header.timestamp
        return .nanoseconds(Int64(units) * 1_000_000_000 / Int64(clockRate))
    }

    private static func packet(_ bytes: Span<UInt8>) -> RTPPacket? {
        do throws(RTPError) { return try RTPPacket(parsing: bytes) } catch { return nil }
    }

    /// Takes the formats of a session description behind the header of a SIP message.
    private mutating func readDescription(_ bytes: [UInt8]) {
        guard let start = Self.bodyStart(bytes) else { return }
        do throws(SDPError) {
            descriptions.add(try SDP.SessionDescription(parsing: bytes.span.extracting(start...)))
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
        if packet.payloadByteCount == TelephoneEvent.byteCount {
            eventSizedCounts[packet.header.payloadType, default: 0] += 1
        }
        lastNanoseconds = nanoseconds
    }
}
