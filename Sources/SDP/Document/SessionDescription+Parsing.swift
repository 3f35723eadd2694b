internal import CallBasics

extension SessionDescription {
    /// Reads a description from `text`.
    ///
    /// Throws: `SDPError` as `init(parsing:)` of bytes does.
    public init(parsing text: String) throws(SDPError) {
        try self.init(parsing: Array(text.utf8).span)
    }

    /// Reads a description from `bytes`, with lines ended by CR LF, LF or CR; the last one may have no end.
    ///
    /// No line has to be there: what is missing is for the reader of the description to miss.
    /// Throws: `limitExceeded` for more than 65,536 bytes, 2000 lines, 16 media, 512 attributes of the session or of a
    /// medium, or 128 formats of a medium; `invalidCharacter` for NUL; `notADescription` when there is no line.
    public init(parsing bytes: borrowing Span<UInt8>) throws(SDPError) {
        try Self.limit(bytes.count, Limits.byteCount, "bytes")
        let whole = bytes.withUnsafeBufferPointer { Array($0) }[...]
        var reader = SectionReader()
        var lineStart = whole.startIndex
        for index in whole.indices {
            switch whole[index] {
            case 0x0A, 0x0D:
                try reader.read(whole[lineStart..<index])
                lineStart = index + 1
            case 0:
                throw SDPError(
                    .invalidCharacter,
                    "Byte \(index) of the session description is NUL, which no line may have. Give text."
                )
            default: break
            }
        }
        try reader.read(whole[lineStart...])
        guard reader.lineCount > 0 else {
            throw SDPError(
                .notADescription,
                "\(bytes.count) bytes hold no line like \"v=0\". Give a session description (application/sdp)."
            )
        }
        self.init(sessionLines: reader.sessionLines, sections: reader.sections)
    }

    /// Puts lines where they belong, within the limits.
    private struct SectionReader {
        private(set) var sessionLines: [DescriptionLine] = []
        private(set) var sections: [[DescriptionLine]] = []
        private(set) var lineCount = 0
        private var attributeCount = 0

        mutating func read(_ bytes: Bytes) throws(SDPError) {
            guard let line = DescriptionLine(parsing: bytes) else { return }
            lineCount += 1
            try limit(lineCount, Limits.lineCount, "lines")
            switch line.type {
            case UInt8(ascii: "m"):
                try limit(sections.count + 1, Limits.mediaCount, "media")
                var fields = line.value
                // Kind, port and protocol stand before the formats.
                var formatCount = -3
                while fields.takeField() != nil { formatCount += 1 }
                try limit(formatCount, Limits.formatCount, "formats of one medium")
                sections.append([])
                attributeCount = 0
            case UInt8(ascii: "a"):
                attributeCount += 1
                try limit(attributeCount, Limits.attributeCount, "attributes in one part")
            default: break
            }
            if sections.isEmpty { sessionLines.append(line) } else { sections[sections.count - 1].append(line) }
        }
    }

    private static func limit(_ count: Int, _ limit: Int, _ what: String) throws(SDPError) {
        guard count > limit else { return }
        throw SDPError(
            .limitExceeded,
            "Session description has \(count) \(what), more than \(limit). Send a smaller one."
        )
    }
}
