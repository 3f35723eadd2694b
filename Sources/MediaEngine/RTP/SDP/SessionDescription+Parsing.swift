extension SessionDescription {
    /// Reads a description from `text`.
    ///
    /// Throws: `SessionDescriptionError` as `init(parsing:)` of bytes does.
    public init(parsing text: String) throws(SessionDescriptionError) {
        try self.init(parsing: Array(text.utf8))
    }

    /// Reads a description from `bytes`, with lines ended by LF, CR LF or CR.
    ///
    /// Lines and attributes that are not known, or not understood, are left out.
    /// Throws: `tooLarge`, `noAudio`, `unsupportedProtocol`, `invalidMedia`, or `noAddress`.
    public init(parsing bytes: [UInt8]) throws(SessionDescriptionError) {
        guard bytes.count <= Self.maximumByteCount else {
            throw SessionDescriptionError(
                .tooLarge,
                "Session description has \(bytes.count) bytes, more than \(Self.maximumByteCount). Give the SDP file itself."
            )
        }
        var reader = Reader()
        let lines = bytes.split(maxSplits: Self.maximumLineCount, whereSeparator: { $0 == 0x0A || $0 == 0x0D })
        for line in lines.prefix(Self.maximumLineCount) {
            try reader.read(Substring(decoding: line, as: UTF8.self))
            if reader.isPastAudio { break }
        }
        self = try reader.result()
    }

    /// What the lines so far have told.
    private struct Reader {
        private struct Media {
            var port: UInt16
            var payloadTypes: [UInt8]
            var host: String?
            var direction: Direction?
            var description = SessionDescription(host: "", port: 0, formats: [])
            var maps: [UInt8: PayloadFormat] = [:]
            var parameters: [UInt8: String] = [:]
        }

        private var sessionHost: String?
        private var sessionDirection: Direction?
        private var sessionName: String?
        private var sessionID: UInt64?
        private var sessionVersion: UInt64?
        private var media: Media?
        private var isInOtherMedia = false
        private var refusedProtocol: String?
        private(set) var isPastAudio = false

        mutating func read(_ line: Substring) throws(SessionDescriptionError) {
            guard line.utf8.count >= 2, line.dropFirst().first == "=", let type = line.first else { return }
            let value = line.dropFirst(2)
            switch type {
            case "m": try readMedia(value)
            case "c" where !isInOtherMedia: readConnection(value)
            case "a" where !isInOtherMedia: readAttribute(value)
            case "o":
                let fields = value.split(separator: " ")
                sessionID = fields.dropFirst().first.flatMap { UInt64($0) }
                sessionVersion = fields.dropFirst(2).first.flatMap { UInt64($0) }
            case "s": sessionName = String(value)
            default: break
            }
        }

        private mutating func readMedia(_ value: Substring) throws(SessionDescriptionError) {
            guard media == nil else {
                isPastAudio = true
                return
            }
            isInOtherMedia = true
            let fields = value.split(separator: " ")
            guard fields.first == "audio" else { return }
            guard fields.count >= 4, let port = fields[1].split(separator: "/").first.flatMap({ UInt16($0) }) else {
                throw SessionDescriptionError(
                    .invalidMedia,
                    "\"m=\(value.prefix(80))\" is no audio line. It must read \"m=audio PORT RTP/AVP PAYLOAD-TYPES\"."
                )
            }
            guard fields[2] == "RTP/AVP" || fields[2] == "RTP/AVPF" else {
                refusedProtocol = String(fields[2].prefix(80))
                return
            }
            let types = fields.dropFirst(3).prefix(SessionDescription.maximumFormatCount).compactMap { UInt8($0) }
            media = Media(port: port, payloadTypes: types.filter { $0 < 128 })
            isInOtherMedia = false
        }

        private mutating func readConnection(_ value: Substring) {
            let fields = value.split(separator: " ")
            guard fields.count >= 3, fields[0] == "IN", let host = fields[2].split(separator: "/").first,
                Self.isWord(host)
            else { return }
            if media == nil { sessionHost = String(host) } else { media?.host = String(host) }
        }

        private mutating func readAttribute(_ value: Substring) {
            let parts = value.split(separator: ":", maxSplits: 1)
            guard let name = parts.first else { return }
            if let direction = Direction(rawValue: String(name)), parts.count == 1 {
                if media == nil { sessionDirection = direction } else { media?.direction = direction }
                return
            }
            guard media != nil else { return }
            let text = parts.count == 2 ? parts[1].drop { $0 == " " } : ""
            switch name {
            case "rtpmap": readMap(text)
            case "fmtp":
                let fields = text.split(separator: " ", maxSplits: 1)
                guard fields.count == 2, let payloadType = UInt8(fields[0]), payloadType < 128 else { return }
                media?.parameters[payloadType] = String(fields[1])
            case "ptime": media?.description.packetTime = Self.milliseconds(text)
            case "maxptime": media?.description.maximumPacketTime = Self.milliseconds(text)
            case "rtcp-mux": media?.description.isMultiplexed = true
            case "rtcp": media?.description.controlPort = text.split(separator: " ").first.flatMap { UInt16($0) }
            default: break
            }
        }

        private mutating func readMap(_ text: Substring) {
            let fields = text.split(separator: " ", maxSplits: 1)
            guard fields.count == 2, let payloadType = UInt8(fields[0]), payloadType < 128 else { return }
            let encoding = fields[1].split(separator: "/")
            guard encoding.count >= 2, Self.isWord(encoding[0]),
                let clockRate = Int(encoding[1].drop { $0 == " " }.prefix { $0 != " " }),
                (1...1_000_000).contains(clockRate)
            else { return }
            let channels = encoding.count > 2 ? Int(encoding[2].prefix { $0 != " " }) ?? 1 : 1
            media?.maps[payloadType] = PayloadFormat(
                payloadType: payloadType,
                encodingName: String(encoding[0]),
                clockRate: clockRate,
                channelCount: min(max(channels, 1), 255)
            )
        }

        /// Whether the text has no blanks and no control characters, which could not be written again.
        private static func isWord(_ text: Substring) -> Bool {
            text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
        }

        /// Whole milliseconds, rounded up, of a text that may have a fraction; nil for what no packet can hold.
        private static func milliseconds(_ text: Substring) -> Int? {
            guard let value = Double(text.prefix { $0 != " " }), value > 0, value <= 10_000 else { return nil }
            return Int(value.rounded(.up))
        }

        func result() throws(SessionDescriptionError) -> SessionDescription {
            guard let media else {
                if let refusedProtocol {
                    throw SessionDescriptionError(
                        .unsupportedProtocol,
                        "Audio travels by \(refusedProtocol), which is not supported. Offer RTP/AVP."
                    )
                }
                throw SessionDescriptionError(
                    .noAudio,
                    "Session description has no \"m=audio\" line. Give one with audio."
                )
            }
            guard let host = media.host ?? sessionHost else {
                throw SessionDescriptionError(
                    .noAddress,
                    "Session description has no address. Add a line such as \"c=IN IP4 127.0.0.1\"."
                )
            }
            var result = media.description
            result.host = host
            result.port = media.port
            result.sessionName = sessionName ?? "-"
            result.sessionID = sessionID ?? 0
            result.sessionVersion = sessionVersion ?? 0
            result.direction = media.direction ?? sessionDirection ?? .sendReceive
            for payloadType in media.payloadTypes where result.format(payloadType: payloadType) == nil {
                guard var format = media.maps[payloadType] ?? PayloadFormat(staticPayloadType: payloadType) else {
                    continue
                }
                format.parameters = media.parameters[payloadType]
                result.formats.append(format)
            }
            guard !result.formats.isEmpty else {
                throw SessionDescriptionError(
                    .invalidMedia,
                    "No payload type of the audio line is described. Add a line such as \"a=rtpmap:96 opus/48000/2\"."
                )
            }
            return result
        }
    }
}
