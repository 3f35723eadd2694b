internal import CallBasics

/// Finds the pieces of a message: one walk over its head.
struct MessageIndex {
    private(set) var fields: [HeaderField] = []
    private(set) var startText = ByteRange.none
    private(set) var headEnd = 0
    private(set) var defect: SIPError?

    private var lineCount = 0

    /// Reads the head at the front of `storage`; one that ends without an empty line has a defect.
    ///
    /// Lines that are folded are moved together where they stand.
    /// Throws: `notAMessage` when there is no start line of SIP; a fault behind it is a `defect`
    static func read(_ storage: inout [UInt8]) throws(SIPError) -> (MessageIndex, SIPMessage.StartLine) {
        var index = MessageIndex()
        index.fields.reserveCapacity(24)
        let start = storage.firstIndex { $0 != .carriageReturn && $0 != .lineFeed } ?? storage.count
        let line = Line(in: storage.span, at: start)
        let startLine = try index.readStartLine(storage[line.content])
        index.readFields(&storage, from: line.end)
        return (index, startLine)
    }

    private mutating func note(_ what: @autoclosure () -> String) {
        if defect == nil { defect = SIPError(.badRequest, what()) }
    }

    // MARK: The start line

    private mutating func readStartLine(_ line: Bytes) throws(SIPError) -> SIPMessage.StartLine {
        guard let first = line.firstIndex(of: .space) else { throw Self.notAMessage(line) }
        if line.prefix(4).isNamed("SIP/") {
            let rest = line[(first + 1)...]
            let code = rest.prefix(3)
            guard code.count == 3, let status: Int = code.decimal(), 100...699 ~= status else {
                throw Self.notAMessage(line)
            }
            let phrase = rest.dropFirst(3)
            guard phrase.isEmpty || phrase.first == .space else { throw Self.notAMessage(line) }
            readVersion(line[..<first])
            if phrase.contains(where: { $0 == 0 || $0 == .carriageReturn }) { noteCharacters(phrase) }
            startText = ByteRange((phrase.isEmpty ? phrase : phrase.dropFirst()).indices)
            return .response(status)
        }
        // Blanks behind the version are taken, as the RFC suggests for what is otherwise understood.
        let request = line.trimmed
        guard let method = SIPMethod(parsing: line[..<first]), let last = request.lastIndex(where: \.isBlank),
            last > first,
            request[(last + 1)...].prefix(4).isNamed("SIP/")
        else { throw Self.notAMessage(line) }
        readVersion(request[(last + 1)...])
        let uri = request[(first + 1)..<last]
        if uri.isEmpty || uri.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
            note("There is a blank in the Request-URI \"\(uri.excerpt)\". Escape it.")
        }
        startText = ByteRange(uri.indices)
        return .request(method)
    }

    private static func notAMessage(_ line: Bytes) -> SIPError {
        SIPError(.notAMessage, "\"\(line.excerpt)\" is no start line of SIP.")
    }

    private mutating func readVersion(_ version: Bytes) {
        guard !version.isNamed("SIP/2.0"), defect == nil else { return }
        defect = SIPError(.unsupportedVersion, "\"\(version.excerpt)\" is not spoken here. Send SIP/2.0.")
    }

    private mutating func noteCharacters(_ value: Bytes) {
        note("There is a NUL or a CR without LF in \"\(value.excerpt)\". Take it out.")
    }

    // MARK: Headers

    /// Reads the headers from `position` on, with the empty line behind them.
    private mutating func readFields(_ storage: inout [UInt8], from position: Int) {
        var position = position
        while true {
            var line = Line(in: storage.span, at: position)
            position = line.end
            guard !line.content.isEmpty else {
                if line.content.upperBound == position {
                    note("The empty line behind the headers is missing. Send it.")
                }
                headEnd = position
                return
            }
            lineCount += 1
            if position < storage.count, storage[position].isBlank {
                let end = join(line.content, &position, &storage)
                line = Line(in: storage.span.extracting(first: end), at: line.content.lowerBound)
            }
            readField(line, storage)
        }
    }

    /// Moves what is folded into a line, and stands at `position`, behind it, with one space between; answers where that ends.
    ///
    /// Source: RFC 3261, section 7.3.1
    private mutating func join(_ line: Range<Int>, _ position: inout Int, _ storage: inout [UInt8]) -> Int {
        var end = line.upperBound
        while position < storage.count, storage[position].isBlank {
            lineCount += 1
            while end > line.lowerBound, storage[end - 1].isBlank { end -= 1 }
            storage[end] = .space
            end += 1
            let next = Line(in: storage.span, at: position)
            var source = next.content.lowerBound
            while source < next.content.upperBound, storage[source].isBlank { source += 1 }
            while source < next.content.upperBound {
                storage[end] = storage[source]
                end += 1
                source += 1
            }
            position = next.end
        }
        return end
    }

    private mutating func readField(_ line: Line, _ storage: [UInt8]) {
        guard lineCount <= MessageLimits.lineCount else {
            return note("There are more than \(MessageLimits.lineCount) header lines. Send fewer.")
        }
        guard let name = line.name, !storage[line.content.lowerBound].isBlank else {
            return note("\"\(storage[line.content].excerpt)\" is no header. Write a name, a colon and a value.")
        }
        let value = line.value(in: storage.span)
        if line.hasControl, storage[value].wouldEndLine { noteCharacters(storage[value]) }
        guard value.count <= MessageLimits.valueByteCount else {
            return note("A header has \(value.count) bytes. At most \(MessageLimits.valueByteCount) are taken.")
        }
        append(HeaderName(storage.span, name), name, value, line, storage)
    }

    private mutating func append(
        _ name: HeaderName,
        _ nameRange: Range<Int>,
        _ value: Range<Int>,
        _ line: Line,
        _ storage: [UInt8]
    ) {
        func field(_ value: Range<Int>) -> HeaderField {
            HeaderField(name: name, nameRange: ByteRange(nameRange), valueRange: ByteRange(value))
        }
        guard fields.count < MessageLimits.fieldCount else { return noteFieldCount() }
        // Where a value ends nobody can say when quotes are not closed: it stays whole, and is refused when it is read.
        guard line.hasComma, name.isSplit, let values = storage[value].listValues() else {
            return fields.append(field(value))
        }
        guard values.count <= MessageLimits.listCount else {
            return note("A header has \(values.count) values. At most \(MessageLimits.listCount) are taken.")
        }
        guard fields.count + values.count <= MessageLimits.fieldCount else { return noteFieldCount() }
        // What stood in quotes may stand outside in a value alone.
        if line.hasControl, let value = values.first(where: \.wouldEndLine) { noteCharacters(value) }
        fields += values.map { field($0.indices) }
    }

    private mutating func noteFieldCount() {
        note("There are more than \(MessageLimits.fieldCount) headers and values. Send fewer.")
    }
}

/// One line of a head: where it and its name stand, and what is in it.
private struct Line {
    /// The line without its end.
    let content: Range<Int>
    /// Where the next line begins.
    let end: Int
    /// The token before the first colon, without the blanks behind it; nil when there is none.
    private(set) var name: Range<Int>?
    private(set) var hasComma = false
    /// Whether there is a NUL, or a CR without LF, behind the name.
    private(set) var hasControl = false
    private var valueStart = 0

    init(in bytes: Span<UInt8>, at start: Int) {
        var index = start
        while index < bytes.count, bytes[index].isToken { index += 1 }
        let nameEnd = index
        while index < bytes.count, bytes[index].isBlank { index += 1 }
        if index < bytes.count, bytes[index] == .colon, nameEnd > start {
            name = start..<nameEnd
            index += 1
        }
        valueStart = index
        var returnCount = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == .lineFeed { break }
            index += 1
            if byte > .comma { continue }
            switch byte {
            case .comma: hasComma = true
            case .carriageReturn: returnCount += 1
            case 0: hasControl = true
            default: break
            }
        }
        // What ends without a line feed keeps its last byte.
        let hasFeed = index < bytes.count
        let hasReturn = hasFeed && index > start && bytes[index - 1] == .carriageReturn
        if returnCount > (hasReturn ? 1 : 0) { hasControl = true }
        content = start..<(hasReturn ? index - 1 : index)
        end = hasFeed ? index + 1 : index
    }

    /// What stands behind the colon, without blanks around it.
    func value(in bytes: Span<UInt8>) -> Range<Int> {
        var (start, end) = (valueStart, content.upperBound)
        while start < end, bytes[start].isBlank { start += 1 }
        while start < end, bytes[end - 1].isBlank { end -= 1 }
        return start..<end
    }
}
