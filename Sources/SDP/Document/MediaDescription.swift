/// One medium of a session description: its m= line, and typed views of what belongs to it.
///
///     m=<kind> <port>[/<count>] <protocol> <format> ...
///
/// Views look at the section first, then at the session where a value there holds for all media.
/// Source: RFC 8866, sections 5.14 and 6; RFC 3605 (rtcp), RFC 5761 (rtcp-mux).
public struct MediaDescription: Hashable, Sendable {
    /// What it is, in lower case: "audio", "video", "image", "application".
    public let kind: String
    /// The port that media goes to; 0 says that the medium is refused or off.
    public let port: UInt16
    /// How many ports follow each other from `port`, two for each.
    package let portCount: Int
    /// How it travels.
    public let transport: MediaProtocol
    /// The same, as it was written.
    let transportName: String
    /// The formats as they were written: payload types when it travels by RTP.
    package let formatNames: [String]
    /// Whether the m= line has all its fields, of characters that it may have; else the medium cannot be answered.
    package let isWellFormed: Bool

    let lines: [DescriptionLine]
    let sessionLines: [DescriptionLine]

    init(lines: [DescriptionLine], sessionLines: [DescriptionLine]) {
        self.lines = lines
        self.sessionLines = sessionLines
        var rest = lines.first?.value ?? []
        kind = String(decoding: (rest.takeField() ?? []).map(\.lowercase), as: UTF8.self)
        var ports = rest.takeField() ?? []
        let port: UInt16? = ports.take(before: UInt8(ascii: "/")).decimal()
        self.port = port ?? 0
        portCount = ports.decimal() ?? 1
        transportName = (rest.takeField() ?? []).text
        transport = MediaProtocol(transportName)
        var names: [String] = []
        while let name = rest.takeField() { names.append(name.text) }
        formatNames = names
        let isVisible = lines.first?.value.allSatisfy { $0.isVisible || $0.isBlank } ?? false
        // Who refuses a medium may leave out its formats.
        isWellFormed = isVisible && !transportName.isEmpty && (port == 0 || port != nil && !names.isEmpty)
    }

    /// The address, or the name, that media goes to; nil when none is given.
    ///
    /// Source: RFC 8866, section 5.7.
    public var host: String? { connection(in: lines) ?? connection(in: sessionLines) }

    /// Which way media flows, seen from who wrote the description.
    public var direction: MediaDirection { direction(in: lines) ?? direction(in: sessionLines) ?? .sendReceive }

    /// Audio for each packet that the writer wants to get, in ms; nil leaves it to the codec.
    package var packetTime: Int? { milliseconds("ptime") }

    /// The most audio for each packet, in ms; nil leaves it to the codec.
    package var maximumPacketTime: Int? { milliseconds("maxptime") }

    /// The attributes of this medium, in order; those of the session are not among them.
    public var attributes: [SDPAttribute] { lines.compactMap(\.attribute) }

    /// Whether RTP and RTCP may share one port.
    package var isMultiplexed: Bool { has("rtcp-mux") || has("rtcp-mux-only") }

    /// Whether they have to.
    var requiresMultiplexing: Bool { has("rtcp-mux-only") }

    /// Whether ICE finds the path, so that the address above is only the first guess.
    package var usesICE: Bool {
        [lines, sessionLines].contains { $0.contains { $0.value(ofAttribute: "ice-ufrag") != nil } }
    }

    /// Where RTCP goes when it does not share RTP's port: the address given, or the next port.
    package var controlAddress: (host: String?, port: UInt16) {
        guard var value = value(of: "rtcp"), let port: UInt16 = value.takeField()?.decimal() else {
            return (host, port == UInt16.max ? 0 : port + 1)
        }
        return (Self.address(value) ?? host, port)
    }

    /// The limit that a b= line of `type` gives, such as AS in kbit/s, TIAS, RR and RS in bit/s.
    ///
    /// Source: RFC 8866, section 5.8; RFC 3556, RFC 3890.
    package func bandwidth(_ type: StaticString) -> Int? {
        for line in [lines, sessionLines].joined() where line.type == UInt8(ascii: "b") {
            var value = line.value
            guard value.take(before: UInt8(ascii: ":")).isNamed(type), let limit: UInt32 = value.trimmed?.decimal()
            else {
                continue
            }
            return Int(limit)
        }
        return nil
    }

    /// What the medium may take on the wire, in bit/s: by TIAS, which does not count headers, else by AS.
    package var maximumBitRate: Int? { bandwidth("TIAS") ?? bandwidth("AS").map { $0 * 1000 } }

    func has(_ attribute: StaticString) -> Bool {
        lines.contains { $0.attributeName?.isNamed(attribute) ?? false }
    }

    /// The value of the first attribute `name` of this medium.
    func value(of name: StaticString) -> Bytes? {
        for line in lines {
            if let value = line.value(ofAttribute: name) { return value }
        }
        return nil
    }

    /// Whole milliseconds, rounded up, of a text that may have a fraction; nil for what no packet can hold.
    private func milliseconds(_ name: StaticString) -> Int? {
        guard var number = value(of: name)?.trimmed else { return nil }
        guard let whole: Int = number.take(before: UInt8(ascii: ".")).decimal(), whole <= 10_000,
            number.allSatisfy({ 0x30...0x39 ~= $0 })
        else { return nil }
        let rounded = number.contains { $0 != 0x30 } ? whole + 1 : whole
        return rounded > 0 ? rounded : nil
    }

    private func connection(in lines: [DescriptionLine]) -> String? {
        for line in lines where line.type == UInt8(ascii: "c") {
            if let address = Self.address(line.value) { return address }
        }
        return nil
    }

    /// The address of "IN IP4 address[/ttl]"; nil for other networks.
    private static func address(_ value: Bytes) -> String? {
        var rest = value
        guard rest.takeField()?.isNamed("IN") ?? false, let family = rest.takeField(),
            family.isNamed("IP4") || family.isNamed("IP6"), var address = rest.takeField()
        else { return nil }
        let host = address.take(before: UInt8(ascii: "/"))
        return host.isEmpty || !host.allSatisfy(\.isVisible) ? nil : host.text
    }

    private func direction(in lines: [DescriptionLine]) -> MediaDirection? {
        for line in lines {
            guard let name = line.attributeName else { continue }
            if let direction = MediaDirection(name) { return direction }
        }
        return nil
    }
}

extension MediaDescription {
    /// The payload types that are described, or are known without, in order; each number once.
    ///
    /// Empty when the medium does not travel by RTP.
    public var formats: [PayloadFormat] { formats(known: []) }

    /// The same; a number that nothing describes has the meaning that it has in `known`.
    func formats(known: [PayloadFormat]) -> [PayloadFormat] {
        guard transport.isRTP else { return [] }
        // By payload type, the places of the first lines that describe it, counted from 1.
        var maps = [UInt16](repeating: 0, count: 128)
        var parameters = maps
        for (index, line) in lines.enumerated() {
            if var value = line.value(ofAttribute: "rtpmap"), let number = Self.payloadType(value.takeField()) {
                if maps[number] == 0, Self.format(number, value) != nil { maps[number] = UInt16(index + 1) }
            } else if var value = line.value(ofAttribute: "fmtp"), let number = Self.payloadType(value.takeField()) {
                if parameters[number] == 0 { parameters[number] = UInt16(index + 1) }
            }
        }
        func value(_ place: UInt16) -> Bytes? {
            guard place > 0, var value = lines[Int(place) - 1].attributeValue else { return nil }
            _ = value.takeField()
            return value
        }
        var formats: [PayloadFormat] = []
        var isSeen = [Bool](repeating: false, count: 128)
        for name in formatNames {
            guard let number = Self.payloadType(Bytes(name)), !isSeen[number] else { continue }
            isSeen[number] = true
            guard
                var format = value(maps[number]).flatMap({ Self.format(number, $0) })
                    ?? PayloadFormat(staticPayloadType: UInt8(number))
                    ?? known.first(where: { $0.payloadType == number })
            else { continue }
            // Some write the sample rate of G.722 where its clock rate belongs (RFC 3551, section 4.5.2).
            if format.clockRate == 16000, format.isNamed("G722") { format.clockRate = 8000 }
            format.parameters = value(parameters[number])?.trimmed?.text
            formats.append(format)
        }
        return formats
    }

    /// The format that stands behind the number of an rtpmap line.
    private static func format(_ number: Int, _ value: Bytes) -> PayloadFormat? {
        guard var encoding = value.trimmed else { return nil }
        let name = encoding.take(before: UInt8(ascii: "/"))
        guard let clockRate: Int = encoding.take(before: UInt8(ascii: "/")).trimmed?.decimal(),
            1...1_000_000 ~= clockRate, !name.isEmpty, name.allSatisfy(\.isVisible)
        else { return nil }
        return PayloadFormat(
            payloadType: UInt8(number),
            encodingName: name.text,
            clockRate: clockRate,
            channelCount: max(1, Int(encoding.takeField()?.decimal(UInt8.self) ?? 1))
        )
    }

    private static func payloadType(_ field: Bytes?) -> Int? {
        guard let number: Int = field?.decimal(), number < 128 else { return nil }
        return number
    }
}
