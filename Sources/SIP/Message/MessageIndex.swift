internal import CallBasics

/// Finds the pieces of a message: one walk over its head, which moves folded lines together where they stand.
struct MessageIndex {
    private(set) var fields: [HeaderField] = []
    private(set) var startText = ByteRange.none
    private(set) var headEnd = 0
    private(set) var defect: SIPError?

    private var lineCount = 0

    /// Reads the head at the front of `storage`; one that ends without an empty line has a defect.
    ///
    /// Throws: `notAMessage` when there is no start line of SIP; a fault behind it is a `defect`
    static func read(_ storage: inout [UInt8]) throws(SIPError) -> (MessageIndex, SIPMessage.StartLine) {
        var index = MessageIndex()
        index.fields.reserveCapacity(24)
        var position = storage.firstIndex { $0 != .carriageReturn && $0 != .lineFeed } ?? storage.count
        let start = index.takeLine(&position, storage)
        let startLine = try index.readStartLine(storage[start])
        while true {
            let line = index.takeLine(&position, storage)
            if line.isEmpty {
                if line.upperBound == position { index.note("The empty line behind the headers is missing. Send it.") }
                break
            }
            index.readField(line, &position, &storage)
        }
        index.headEnd = position
        return (index, startLine)
    }

    private mutating func note(_ what: String) {
        if defect == nil { defect = SIPError(.badRequest, what) }
    }

    /// The line at `position` without its end, behind which `position` then stands.
    private func takeLine(_ position: inout Int, _ storage: [UInt8]) -> Range<Int> {
        let start = position
        var end = position
        while end < storage.count, storage[end] != .lineFeed { end += 1 }
        position = min(end + 1, storage.count)
        // What ends without a line feed keeps its last byte.
        if end < storage.count, end > start, storage[end - 1] == .carriageReturn { end -= 1 }
        return start..<end
    }

    private mutating func readStartLine(_ line: Bytes) throws(SIPError) -> SIPMessage.StartLine {
        let notAMessage = SIPError(.notAMessage, "\"\(line.excerpt)\" is no start line of SIP.")
        guard let first = line.firstIndex(of: .space) else { throw notAMessage }
        if line.prefix(4).isNamed("SIP/") {
            let rest = line[(first + 1)...]
            let code = rest.prefix(3)
            guard code.count == 3, let status: Int = code.decimal(), 100...699 ~= status else { throw notAMessage }
            let phrase = rest.dropFirst(3)
            guard phrase.isEmpty || phrase.first == .space else { throw notAMessage }
            readVersion(line[..<first])
            checkCharacters(phrase)
            startText = ByteRange((phrase.isEmpty ? phrase : phrase.dropFirst()).indices)
            return .response(status)
        }
        // Blanks behind the version are taken, as the RFC suggests for what is otherwise understood.
        let request = line.trimmed
        guard let method = SIPMethod(parsing: line[..<first]), let last = request.lastIndex(where: \.isBlank),
            last > first,
            request[(last + 1)...].prefix(4).isNamed("SIP/")
        else { throw notAMessage }
        readVersion(request[(last + 1)...])
        let uri = request[(first + 1)..<last]
        if uri.isEmpty || uri.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
            note("There is a blank in the Request-URI \"\(uri.excerpt)\". Escape it.")
        }
        startText = ByteRange(uri.indices)
        return .request(method)
    }

    private mutating func readVersion(_ version: Bytes) {
        guard !version.isNamed("SIP/2.0"), defect == nil else { return }
        defect = SIPError(.unsupportedVersion, "\"\(version.excerpt)\" is not spoken here. Send SIP/2.0.")
    }

    private mutating func checkCharacters(_ value: Bytes) {
        if value.contains(where: { $0 == 0 || $0 == .carriageReturn }) {
            note("There is a NUL or a CR without LF in \"\(value.excerpt)\". Take it out.")
        }
    }

    /// Reads one header with the lines that are folded into it.
    private mutating func readField(_ first: Range<Int>, _ position: inout Int, _ storage: inout [UInt8]) {
        lineCount += 1
        var end = first.upperBound
        while position < storage.count, storage[position].isBlank {
            lineCount += 1
            let next = takeLine(&position, storage)
            end = Self.join(first.lowerBound..<end, next, &storage)
        }
        let line = storage[first.lowerBound..<end]
        guard lineCount <= MessageLimits.lineCount else {
            return note("There are more than \(MessageLimits.lineCount) header lines. Send fewer.")
        }
        guard let colon = line.firstIndex(of: .colon), line[..<colon].trimmed.isToken,
            line.first.map(\.isBlank) == false
        else { return note("\"\(line.excerpt)\" is no header. Write a name, a colon and a value.") }
        let value = line[(colon + 1)...].trimmed
        checkCharacters(value)
        guard value.count <= MessageLimits.valueByteCount else {
            return note("A header has \(value.count) bytes. At most \(MessageLimits.valueByteCount) are taken.")
        }
        let nameBytes = line[..<colon].trimmed
        append(HeaderName(nameBytes), nameBytes.indices, value)
    }

    private mutating func append(_ name: HeaderName, _ nameRange: Range<Int>, _ value: Bytes) {
        func field(_ value: Bytes) -> HeaderField {
            HeaderField(name: name, nameRange: ByteRange(nameRange), valueRange: ByteRange(value.indices))
        }
        guard fields.count < MessageLimits.fieldCount else { return noteFieldCount() }
        // Where a value ends nobody can say when quotes are not closed: it stays whole, and is refused when it is read.
        guard name.isSplit, value.contains(.comma), let values = value.listValues() else {
            return fields.append(field(value))
        }
        guard values.count <= MessageLimits.listCount else {
            return note("A header has \(values.count) values. At most \(MessageLimits.listCount) are taken.")
        }
        guard fields.count + values.count <= MessageLimits.fieldCount else { return noteFieldCount() }
        fields += values.map(field)
    }

    private mutating func noteFieldCount() {
        note("There are more than \(MessageLimits.fieldCount) headers and values. Send fewer.")
    }

    /// Moves a folded line behind the one that it continues, with one space between them; returns their end.
    private static func join(_ line: Range<Int>, _ next: Range<Int>, _ storage: inout [UInt8]) -> Int {
        var end = line.upperBound
        while end > line.lowerBound, storage[end - 1].isBlank { end -= 1 }
        storage[end] = .space
        end += 1
        var source = next.lowerBound
        while source < next.upperBound, storage[source].isBlank { source += 1 }
        while source < next.upperBound {
            storage[end] = storage[source]
            end += 1
            source += 1
        }
        return end
    }
}
