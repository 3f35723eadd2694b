internal import CallBasics

/// One part of a body: the whole of it, or what stands between two delimiters of a multipart.
///
///     --boundary CRLF
///     Content-Type: application/sdp CRLF
///     Content-Disposition: session;handling=required CRLF
///     CRLF
///     bytes CRLF
///     --boundary-- CRLF
///
/// Source: RFC 2046, section 5.1; RFC 5621
package struct BodyPart: Sendable {
    /// What it is; nil where nothing says so.
    package let type: MediaType?
    package let disposition: ParameterizedValue?
    /// Whether its bytes are plain: no other encoding is named than one that was taken off.
    package let isPlain: Bool
    package let bytes: Bytes

    /// Whether the message is of no use to who does not understand the part, as it says itself.
    ///
    /// What says nothing is passed over: many add parts that nobody has to read.
    package var isRequired: Bool { disposition?.parameters.value("handling")?.isNamed("required") ?? false }
}

extension SIPMessage {
    /// The parts of the body, those of multiparts within it in the place of these.
    ///
    /// Deflated ones are inflated.
    /// Throws: `badRequest` when a multipart has no boundary or no part, or a part's header breaks the grammar, or there are more
    /// than 16, or more than 4 within each other, or what is deflated breaks off; `messageTooLarge` when that is more than 64 KiB
    package func bodyParts() throws(SIPError) -> [BodyPart] {
        let type = try contentType()
        let isDeflated = ContentCoding.isDeflated(try tokens(of: .contentEncoding))
        let whole = BodyPart(
            type: type,
            disposition: try value(.contentDisposition),
            isPlain: isDeflated != nil,
            bytes: isDeflated == true ? try ContentCoding.inflate(bodyBytes)[...] : bodyBytes
        )
        var parts: [BodyPart] = []
        try BodyPart.add(whole, to: &parts, depth: 0)
        return parts
    }
}

extension BodyPart {
    fileprivate static func add(_ part: BodyPart, to parts: inout [BodyPart], depth: Int) throws(SIPError) {
        guard let type = part.type, type.type.isNamed("multipart") else {
            guard parts.count < MessageLimits.partCount else {
                throw SIPError(.badRequest, "The body has more than \(MessageLimits.partCount) parts. Send fewer.")
            }
            return parts.append(part)
        }
        guard depth < MessageLimits.partDepth else {
            throw SIPError(.badRequest, "The body has parts within parts, too many. Send them side by side.")
        }
        guard let boundary = type.parameters.value("boundary"), 1...70 ~= boundary.count else {
            throw SIPError(.badRequest, "Content-Type names no boundary of 1 to 70 characters. Name it.")
        }
        let contents = pieces(of: part.bytes, boundary: [0x2D, 0x2D] + boundary)
        guard !contents.isEmpty else {
            throw SIPError(.badRequest, "The boundary of Content-Type is not in the body. Put it before each part.")
        }
        for content in contents { try add(read(content), to: &parts, depth: depth + 1) }
    }

    /// What stands between the delimiters, to which the line ends before them belong.
    ///
    /// Without a last one, the last part goes to the end.
    private static func pieces(of body: Bytes, boundary: [UInt8]) -> [Bytes] {
        var pieces: [Bytes] = []
        var start: Int?
        var line = body.startIndex
        while line < body.endIndex {
            let next = body[line...].firstIndex(of: .lineFeed).map { $0 + 1 } ?? body.endIndex
            if let isLast = delimiter(body[line..<next], boundary) {
                if let start { pieces.append(body[start..<max(start, withoutLineEnd(line, in: body, from: start))]) }
                guard !isLast, pieces.count <= MessageLimits.partCount else { return pieces }
                start = next
            }
            line = next
        }
        if let start { pieces.append(body[start...]) }
        return pieces
    }

    /// Whether a line is the last delimiter; nil when it is none.
    private static func delimiter(_ line: Bytes, _ boundary: [UInt8]) -> Bool? {
        guard line.starts(with: boundary) else { return nil }
        var rest = line.dropFirst(boundary.count)
        let isLast = rest.starts(with: [0x2D, 0x2D])
        if isLast { rest = rest.dropFirst(2) }
        return rest.allSatisfy { $0.isBlank || $0 == .carriageReturn || $0 == .lineFeed } ? isLast : nil
    }

    /// Where what ends before `line` ends without its line end.
    private static func withoutLineEnd(_ line: Int, in body: Bytes, from start: Int) -> Int {
        var end = line
        if end > start, body[end - 1] == .lineFeed { end -= 1 }
        if end > start, body[end - 1] == .carriageReturn { end -= 1 }
        return end
    }

    /// A part from its headers, which may be none, and its bytes.
    private static func read(_ piece: Bytes) throws(SIPError) -> BodyPart {
        var (type, disposition, isPlain): (MediaType?, ParameterizedValue?, Bool) = (nil, nil, true)
        var encodings: [String] = []
        var rest = piece
        while !rest.isEmpty {
            var field = takeLine(&rest)
            guard !field.isEmpty else { break }
            if rest.first?.isBlank ?? false {
                var lines = Array(field)
                while rest.first?.isBlank ?? false { lines += takeLine(&rest) }
                field = lines[...]
            }
            guard let colon = field.firstIndex(of: .colon) else {
                throw SIPError(.badRequest, "A part has the header \"\(field.excerpt)\". Write Name: value.")
            }
            let (name, value) = (field[..<colon].trimmed, field[(colon + 1)...].trimmed)
            if name.isNamed("content-type") || name.isNamed("c") {
                type = try MediaType(parsing: value)
            } else if name.isNamed("content-disposition") {
                disposition = try ParameterizedValue(parsing: value)
            } else if name.isNamed("content-encoding") || name.isNamed("e") {
                encodings += value.split(separator: .comma).map(\.trimmed.text)
            } else if name.isNamed("content-transfer-encoding") {
                // Such a part is what it says, but for base64 and quoted-printable (RFC 5621, section 3.3).
                isPlain = isPlain && !value.isNamed("base64") && !value.isNamed("quoted-printable")
            }
        }
        let isDeflated = ContentCoding.isDeflated(encodings)
        if isPlain, isDeflated == true { rest = try ContentCoding.inflate(rest)[...] }
        return BodyPart(type: type, disposition: disposition, isPlain: isPlain && isDeflated != nil, bytes: rest)
    }

    private static func takeLine(_ rest: inout Bytes) -> Bytes {
        let end = rest.firstIndex(of: .lineFeed) ?? rest.endIndex
        var line = rest[..<end]
        rest = rest[min(end + 1, rest.endIndex)...]
        if line.last == .carriageReturn { line.removeLast() }
        return line
    }
}
