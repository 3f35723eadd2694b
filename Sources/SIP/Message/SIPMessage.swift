public import CallBasics

/// A request or a response: its bytes, and where each header stands in them.
///
///     INVITE sip:bob@example.com SIP/2.0        start line
///     Via: SIP/2.0/UDP 192.0.2.1;branch=...     headers, one `HeaderField` for each value
///
///     v=0 ...                                   body
///
/// Headers that are not known keep their bytes and their place; known ones are read when they are asked for. What is
/// written reads the same, in the strict form: long names, lines ended by CR LF, a line for each Via, Route and
/// Contact, and a Content-Length at the end.
/// Thread: control; it allocates.
/// Source: RFC 3261, section 7
public struct SIPMessage: Sendable {
    enum StartLine: Hashable, Sendable {
        case request(SIPMethod)
        case response(Int)
    }

    /// All that the ranges point into; what edits add stands at the end.
    private(set) var storage: [UInt8]
    private(set) var fields: [HeaderField]
    private let startLine: StartLine
    /// The Request-URI or the reason phrase.
    private var startText: ByteRange
    private var bodyRange: ByteRange
    /// The first thing that is wrong with the start line, the form of the headers or the body's length.
    package private(set) var defect: SIPError?
    /// What `validated` has read, until it is edited.
    private(set) var typed: TypedHeaders?
    /// How many bytes of the datagram lay behind the message, and were left out.
    package private(set) var restByteCount = 0
    /// Whether the body came deflated; it is inflated.
    package var wasDeflated = false

    /// A request without headers.
    package init(_ method: SIPMethod, to uri: SIPURI) {
        storage = []
        storage.reserveCapacity(Self.newByteCount)
        storage += uri.bytes
        startLine = .request(method)
        (fields, startText, bodyRange) = ([], ByteRange(0..<storage.count), .none)
        fields.reserveCapacity(Self.newFieldCount)
    }

    /// A response without headers; a status code beyond 100 to 699 is a mistake of the caller.
    ///
    /// Throws: `invalidCharacter` when the phrase would end its line
    package init(status: Int, reason: String) throws(SIPError) {
        precondition(100...699 ~= status)
        storage = []
        storage.reserveCapacity(Self.newByteCount)
        storage += reason.utf8
        try Self.checkLine(storage[...])
        startLine = .response(status)
        (fields, startText, bodyRange) = ([], ByteRange(0..<storage.count), .none)
        fields.reserveCapacity(Self.newFieldCount)
    }

    /// What most messages that are made need, with a session description.
    private static let (newByteCount, newFieldCount) = (1024, 18)

    init(parts: MessageIndex, storage: [UInt8], startLine: StartLine) {
        self.storage = storage
        self.startLine = startLine
        fields = parts.fields
        startText = parts.startText
        bodyRange = ByteRange(parts.headEnd..<storage.count)
        defect = parts.defect
    }

    /// The method of a request; nil for a response.
    public var method: SIPMethod? { if case .request(let method) = startLine { method } else { nil } }
    /// The status code of a response; nil for a request.
    public var statusCode: Int? { if case .response(let code) = startLine { code } else { nil } }
    /// The words behind the status code, for people; empty for a request.
    public var reasonPhrase: String { statusCode == nil ? "" : storage[startText.range].text }
    /// The body's bytes.
    public var body: [UInt8] { Array(bodyBytes) }
    package var bodyBytes: Bytes { storage[bodyRange.range] }

    /// The URI that a request goes to.
    ///
    /// Throws: `badRequest` or `uriTooLong`, also when the message is a response
    public func requestURI() throws(SIPError) -> SIPURI {
        guard method != nil else { throw SIPError(.badRequest, "A response has no Request-URI. Ask a request for it.") }
        return try SIPURI(parsing: storage[startText.range])
    }

    /// The values of all headers of a name, long or compact, in their order and as they came.
    public func values(named name: String) -> [String] {
        let name = Bytes(name)
        let known = HeaderName(name)
        return fields.filter { $0.name == known && (known != .other || storage[$0.nameRange.range].isNamed(name)) }
            .map { storage[$0.valueRange.range].text }
    }

    /// The values of a known header, as they came.
    package func values(of name: HeaderName) -> [Bytes] {
        fields.filter { $0.name == name }.map { storage[$0.valueRange.range] }
    }

    /// The headers that mean nothing to SIP itself, in their order and as they came.
    package var extensionHeaders: [(name: String, value: String)] {
        fields.filter { $0.name == .other }
            .map { (storage[$0.nameRange.range].text, storage[$0.valueRange.range].text) }
    }

    package func first(_ name: HeaderName) -> Bytes? {
        fields.first { $0.name == name }.map { storage[$0.valueRange.range] }
    }

    /// How many headers there are, one for each value of those that are split.
    package var headerCount: Int { fields.count }

    package func count(of name: HeaderName) -> Int { fields.count { $0.name == name } }

    /// The Request-URI or the reason phrase as it came.
    var startBytes: Bytes { storage[startText.range] }

    /// The name of a field as it is written.
    func serializeName(of field: HeaderField, into bytes: inout [UInt8]) {
        guard field.name == .other else {
            field.name.canonical.withUTF8Buffer { bytes.append(contentsOf: $0) }
            return
        }
        bytes += storage[field.nameRange.range]
    }

    /// Replaces the Request-URI; of a response nothing.
    package mutating func setRequestURI(_ uri: SIPURI) {
        guard method != nil else { return }
        startText = store(uri.bytes)
        compactIfSparse()
    }

    package mutating func setBody(_ body: some Collection<UInt8>) {
        bodyRange = store(body)
        compactIfSparse()
    }

    /// Leaves out what comes behind the first `count` bytes of the body.
    mutating func cutBody(to count: Int) {
        restByteCount = max(bodyRange.range.count - count, 0)
        bodyRange = ByteRange(bodyRange.range.prefix(count))
    }

    /// The body of a message whose head came first.
    mutating func appendBody(_ body: Bytes) {
        bodyRange = store(body)
    }

    mutating func setDefect(_ error: SIPError) { if defect == nil { defect = error } }

    /// Puts a field before the one at `index`, which may be the end.
    mutating func insert(_ name: HeaderName, otherName: Bytes = [], value: Bytes, at index: Int) {
        noteEdit(of: name)
        let nameRange = otherName.isEmpty ? ByteRange.none : store(otherName)
        fields.insert(HeaderField(name: name, nameRange: nameRange, valueRange: store(value)), at: index)
        compactIfSparse()
    }

    /// Puts a value before the field at `index`, which may be the end.
    ///
    /// Throws: `invalidCharacter` when the value would end its line; nothing has changed then
    mutating func insert(_ name: HeaderName, _ value: some HeaderValue, at index: Int) throws(SIPError) {
        try Self.checkName(name)
        let start = storage.count
        value.serialize(into: &storage)
        let range = start..<storage.count
        do {
            try Self.checkLine(storage[range])
        } catch {
            storage.removeLast(range.count)
            throw error
        }
        noteEdit(of: name)
        fields.insert(HeaderField(name: name, nameRange: .none, valueRange: ByteRange(range)), at: index)
        compactIfSparse()
    }

    mutating func removeFields(named name: HeaderName) {
        noteEdit(of: name)
        fields.removeAll { $0.name == name }
        compactIfSparse()
    }

    mutating func removeField(at index: Int) {
        noteEdit(of: fields[index].name)
        fields.remove(at: index)
        compactIfSparse()
    }

    /// Keeps what was read, so that it is not read again.
    mutating func keep(_ headers: TypedHeaders) { typed = headers }

    private mutating func noteEdit(of name: HeaderName) {
        if name == .from || name == .to || name == .cSeq { typed = nil }
    }

    private mutating func store(_ bytes: some Collection<UInt8>) -> ByteRange {
        let start = storage.count
        storage += bytes
        return ByteRange(start..<storage.count)
    }

    /// What edits may leave behind, besides as much as the message itself.
    private static let sparseByteCount = 4096

    /// Gives back what edits left behind, once that is more than the message itself.
    private mutating func compactIfSparse() {
        guard storage.count > Self.sparseByteCount else { return }
        let needed = fields.reduce(startText.range.count + bodyRange.range.count) {
            $0 + $1.nameRange.range.count + $1.valueRange.range.count
        }
        guard storage.count > 2 * needed + Self.sparseByteCount else { return }
        let old = storage
        typed = nil
        storage = []
        storage.reserveCapacity(needed)
        startText = store(old[startText.range])
        var former = (old: ByteRange.none, new: ByteRange.none)
        fields = fields.map { field in
            if field.nameRange != former.old {
                former = (field.nameRange, store(old[field.nameRange.range]))
            }
            let nameRange = former.new
            return HeaderField(name: field.name, nameRange: nameRange, valueRange: store(old[field.valueRange.range]))
        }
        bodyRange = store(old[bodyRange.range])
    }

    /// Refuses what would end the line that it is written to.
    ///
    /// Throws: `invalidCharacter`
    static func checkLine(_ bytes: Bytes) throws(SIPError) {
        guard !bytes.wouldEndLine else {
            throw SIPError(
                .invalidCharacter,
                "\"\(bytes.excerpt)\" holds CR, LF or NUL, which would end its header. Take them out."
            )
        }
    }
}
