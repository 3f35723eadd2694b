internal import CallBasics

/// How many messages wait in a mailbox: what a NOTIFY of the package `message-summary` brings.
///
///     Messages-Waiting: yes
///     Message-Account: sip:alice@vmail.example.com
///     Voice-Message: 2/8 (0/2)
///
/// Source: RFC 3842, section 5
package struct MessageSummary: Hashable, Sendable {
    /// New and old messages, and how many of each are urgent.
    package struct Counts: Hashable, Sendable {
        package var new: UInt32
        package var old: UInt32
        package var urgentNew: UInt32
        package var urgentOld: UInt32
    }

    /// The type of its bodies.
    package static let contentType = "application/simple-message-summary"
    /// Lines beyond these are passed over.
    private static let lineCount = 64

    /// Whether there are new messages of any kind.
    package private(set) var isWaiting: Bool
    /// Whose mailbox it is, as it came; nil when it is not told.
    package private(set) var account: String?
    /// By kind in lower case, such as `voice-message`.
    package private(set) var counts: [String: Counts] = [:]

    /// Reads a body.
    ///
    /// Throws: `badRequest` when it does not begin with Messages-Waiting
    package init(parsing body: Bytes) throws(SIPError) {
        guard body.count <= MessageLimits.byteCount else { throw Self.invalid(body) }
        var lines = body.split(separator: .lineFeed, maxSplits: Self.lineCount).map { line in
            (line.last == .carriageReturn ? line.dropLast() : line).trimmed
        }[...]
        guard let first = lines.popFirst().flatMap(Self.field), first.name.isNamed("Messages-Waiting"),
            first.value.isNamed("yes") || first.value.isNamed("no")
        else { throw Self.invalid(body) }
        isWaiting = first.value.isNamed("yes")
        // An empty line, which splitting leaves out, separates what else is told of single messages.
        for line in lines.prefix(Self.lineCount - 1) {
            guard let field = Self.field(line) else { continue }
            if field.name.isNamed("Message-Account") {
                account = field.value.text
            } else if let counts = Counts(parsing: field.value) {
                let kind = String(decoding: field.name.map(\.lowercase), as: UTF8.self)
                if self.counts[kind] == nil { self.counts[kind] = counts }
            }
        }
    }

    private static func field(_ line: Bytes) -> (name: Bytes, value: Bytes)? {
        guard let colon = line.firstIndex(of: .colon) else { return nil }
        let name = line[..<colon].trimmed
        return name.isToken ? (name, line[(colon + 1)...].trimmed) : nil
    }

    private static func invalid(_ body: Bytes) -> SIPError {
        SIP.invalid("a message summary", body, "Begin with Messages-Waiting: yes or no.")
    }
}

extension MessageSummary.Counts {
    /// Reads `new/old`, perhaps with `(urgent new/urgent old)`; nil when it is none.
    fileprivate init?(parsing value: Bytes) {
        var scanner = FieldScanner(value)
        guard let all = scanner.takePair() else { return nil }
        (new, old, urgentNew, urgentOld) = (all.0, all.1, 0, 0)
        scanner.skipBlanks()
        if scanner.take(0x28) {
            scanner.skipBlanks()
            guard let urgent = scanner.takePair() else { return nil }
            (urgentNew, urgentOld) = urgent
            scanner.skipBlanks()
            guard scanner.take(0x29) else { return nil }
            scanner.skipBlanks()
        }
        guard scanner.isAtEnd else { return nil }
    }
}

extension FieldScanner {
    /// Takes two numbers with a slash between them.
    fileprivate mutating func takePair() -> (UInt32, UInt32)? {
        guard let one: UInt32 = take(while: \.isDigit)?.decimal(), takeSeparator(.slash),
            let other: UInt32 = take(while: \.isDigit)?.decimal()
        else { return nil }
        return (one, other)
    }
}
