/// An address with a display name and parameters: From, To, Contact, Route, Record-Route, Refer-To and their like.
///
///     "Display name" <sip:user@example.com;uri-parameter>;header-parameter
///     sip:user@example.com;header-parameter
///
/// Without angle brackets all parameters are the header's, and commas or question marks in the URI an error. A display
/// name that should have been quoted is taken as it is, and written with quotes.
/// Source: RFC 3261, section 20.10, 20.20, 20.34 and 20.39
package struct NameAddress: HeaderValue {
    /// Without quotes; nil when there is none.
    package var displayName: Bytes?
    package var uri: SIPURI
    package var parameters: ParameterList

    package init(_ uri: SIPURI, displayName: String? = nil) {
        self.uri = uri
        self.displayName = displayName.map { Bytes($0) }
        parameters = ParameterList()
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        scanner.skipBlanks()
        var name: Bytes?
        if scanner.next == .quote {
            guard let quoted = scanner.takeQuotedString() else { throw Self.invalid(value, "Close the quotes.") }
            scanner.skipBlanks()
            guard scanner.next == .less else { throw Self.invalid(value, "Put the URI in angle brackets.") }
            name = quoted.unquoted
        } else if let start = scanner.rest.firstIndex(of: .less) {
            let unquoted = scanner.rest[..<start].trimmed
            guard !unquoted.contains(.quote) else { throw Self.invalid(value, "Put the whole name in quotes.") }
            name = unquoted.isEmpty ? nil : unquoted
            scanner = FieldScanner(scanner.rest[start...])
        }
        displayName = name
        if scanner.take(.less) {
            guard let text = scanner.take(while: { $0 != .greater }), scanner.take(.greater) else {
                throw Self.invalid(value, "Close the angle brackets.")
            }
            uri = try SIPURI(parsing: text.trimmed)
        } else {
            guard let text = scanner.take(while: { $0 != .semicolon && !$0.isBlank }), !text.contains(.comma),
                !text.contains(.questionMark)
            else { throw Self.invalid(value, "Put the URI in angle brackets.") }
            uri = try SIPURI(parsing: text)
        }
        parameters = try ParameterList(parsing: &scanner)
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw Self.invalid(value, "Write \"Name\" <sip:user@host>;parameters.") }
    }

    package var tag: Bytes? {
        get { parameters.value("tag") }
        set { if let newValue { parameters.set("tag", to: newValue) } else { parameters.remove("tag") } }
    }

    /// The seconds that a Contact's binding lasts; nil when there is no such parameter.
    ///
    /// Throws: `badRequest` when it is no number of 32 bits
    package func expires() throws(SIPError) -> UInt32? {
        guard let value = parameters.value("expires") else { return nil }
        guard let seconds = value.decimal(UInt32.self) else {
            throw SIP.invalid("the parameter expires", value, "It is a number of seconds below 2^32.")
        }
        return seconds
    }

    /// The preference of a Contact in thousandths, 1000 when it is not told or not understood.
    package var preference: Int {
        guard let value = parameters.value("q") else { return 1000 }
        let parts = value.split(separator: 0x2E, maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts[0].decimal(Int.self), whole <= 1 else { return 1000 }
        guard whole == 0, parts.count == 2, parts[1].count <= 3 else { return whole * 1000 }
        return (parts[1] + Array(repeating: 0x30, count: 3 - parts[1].count)).decimal() ?? 0
    }

    package func serialize(into bytes: inout [UInt8]) {
        if let displayName {
            bytes += displayName.quoted
            bytes.append(.space)
        }
        bytes.append(.less)
        bytes += uri.bytes
        bytes.append(.greater)
        parameters.serialize(into: &bytes)
    }

    private static func invalid(_ value: Bytes, _ remedy: StaticString) -> SIPError {
        SIP.invalid("an address", value, remedy)
    }
}
