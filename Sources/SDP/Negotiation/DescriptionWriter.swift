internal import CallBasics

/// Builds the lines of our descriptions, and refuses what would not be one line.
struct DescriptionWriter {
    private(set) var lines: [DescriptionLine] = []

    /// Throws: `invalidCharacter` for control characters.
    mutating func append(_ type: Unicode.Scalar, _ text: String) throws(SDPError) {
        lines.append(try DescriptionLine(type, text))
    }

    /// Throws: `invalidCharacter` for control characters; `invalidConfiguration` for an attribute that the configuration
    /// has a value of its own for.
    mutating func append(_ attribute: SDPAttribute) throws(SDPError) {
        let name = try Self.word(attribute.name, "The name of an attribute")
        let own = ["rtpmap", "fmtp", "ptime", "maxptime", "rtcp", "rtcp-mux"] + MediaDirection.allCases.map(\.rawValue)
        guard !own.contains(where: { name.isNamed($0) }), !name.utf8.contains(UInt8(ascii: ":")) else {
            throw SDPError(
                .invalidConfiguration,
                "\"a=\(name.excerpt)\" is written from the configuration already, or is no name. Set the value there."
            )
        }
        try append("a", attribute.text)
    }

    /// `text` as one field of a line.
    ///
    /// Throws: `invalidConfiguration` when it is empty or holds blanks or other characters that would end the field.
    static func word(_ text: String, _ what: String) throws(SDPError) -> String {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0.isVisible || $0 > 0x7F }) else {
            throw SDPError(
                .invalidConfiguration,
                "\(what) is \"\(text.excerpt)\". It must be one word without control characters."
            )
        }
        return text
    }

    /// "IN IP4 address"; the zone of an IPv6 address means nothing to others and is left out.
    static func connection(_ address: String) throws(SDPError) -> String {
        let host = String(decoding: address.utf8.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self)
        let family = host.utf8.contains(UInt8(ascii: ":")) ? "IP6" : "IP4"
        return try "IN \(family) \(word(host, "The address of the session"))"
    }

    /// The lines before the first medium.
    static func session(
        _ configuration: SessionConfiguration,
        _ origin: String,
        connection: String,
        times: String
    ) throws(SDPError) -> [DescriptionLine] {
        var writer = DescriptionWriter()
        try writer.append("v", "0")
        try writer.append("o", origin)
        try writer.append("s", configuration.sessionName.isEmpty ? "-" : configuration.sessionName)
        try writer.append("c", connection)
        try writer.append("t", times)
        for attribute in configuration.attributes { try writer.append(attribute) }
        return writer.lines
    }

    /// The lines of a medium that is refused or off.
    static func refusal(kind: String, transport: String, format: String) throws(SDPError) -> [DescriptionLine] {
        [try DescriptionLine("m", "\(kind) 0 \(transport) \(format)")]
    }

    /// The lines of a medium that is offered or taken.
    static func section(
        _ configuration: MediaConfiguration,
        transport: String,
        formats: [PayloadFormat],
        direction: MediaDirection,
        isMultiplexed: Bool,
        controlPort: UInt16?,
        security: [SDPAttribute]
    ) throws(SDPError) -> [DescriptionLine] {
        var writer = DescriptionWriter()
        let kind = try word(configuration.kind, "The kind of a medium")
        let numbers = formats.map { String($0.payloadType) }.joined(separator: " ")
        try writer.append(
            "m",
            "\(kind) \(configuration.port) \(word(transport, "The protocol of a medium")) \(numbers)"
        )
        if let limit = configuration.maximumBitRate {
            try check(limit, in: 1...Int(UInt32.max), "The bit rate of a medium")
            try writer.append("b", "AS:\((limit + 999) / 1000)")
            try writer.append("b", "TIAS:\(limit)")
        }
        for format in formats {
            _ = try word(format.encodingName, "The name of a codec")
            try check(format.clockRate, in: 1...1_000_000, "The clock rate of \(format.encodingName.excerpt)")
            try check(format.channelCount, in: 1...255, "The channel count of \(format.encodingName.excerpt)")
            try writer.append("a", "rtpmap:\(format.map)")
            if let parameters = format.parameters {
                try writer.append("a", "fmtp:\(format.payloadType) \(parameters)")
            }
        }
        for (name, time) in [("ptime", configuration.packetTime), ("maxptime", configuration.maximumPacketTime)] {
            guard let time else { continue }
            try check(time, in: 1...10_000, "The \(name) of a medium")
            try writer.append("a", "\(name):\(time)")
        }
        if let controlPort { try writer.append("a", "rtcp:\(controlPort)") }
        if isMultiplexed { try writer.append("a", "rtcp-mux") }
        for attribute in security { try writer.append("a", attribute.text) }
        for attribute in configuration.attributes { try writer.append(attribute) }
        try writer.append("a", direction.rawValue)
        return writer.lines
    }

    private static func check(
        _ value: Int,
        in range: ClosedRange<Int>,
        _ what: @autoclosure () -> String
    ) throws(SDPError) {
        guard !range.contains(value) else { return }
        throw SDPError(
            .invalidConfiguration,
            "\(what()) is \(value). It must lie between \(range.lowerBound) and \(range.upperBound)."
        )
    }
}
