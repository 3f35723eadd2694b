internal import CallBasics

/// A challenge or credentials: the four authentication headers, each line one value.
///
///     Digest realm="example.com", nonce="...", algorithm=SHA-256, qop="auth"
///
/// Values are read with or without quotes; what is written has them as it was given. What proves a password is in no
/// description, nor in an error.
/// Source: RFC 3261, section 25.1 (challenge, credentials); RFC 7616, section 3.3 and 3.4
package struct AuthenticationValue: HeaderValue {
    /// A name and its value, with quotes when it has some.
    package struct Parameter: Hashable, Sendable {
        package var name: Bytes
        package var value: Bytes
    }

    package var scheme: Bytes
    package var parameters: [Parameter]

    package init(scheme: String) {
        self.scheme = Bytes(scheme)
        parameters = []
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let scheme = scanner.takeToken(), scanner.next?.isBlank == true else { throw Self.invalid }
        self.scheme = scheme
        scanner.skipBlanks()
        parameters = try Self.parameters(&scanner)
    }

    /// Reads Authentication-Info, which has no scheme.
    package init(parsingInfo value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        scheme = []
        parameters = try Self.parameters(&scanner)
    }

    private static func parameters(_ scanner: inout FieldScanner) throws(SIPError) -> [Parameter] {
        var parameters: [Parameter] = []
        repeat {
            guard parameters.count < MessageLimits.parameterCount, let name = scanner.takeToken(),
                scanner.takeSeparator(.equals),
                let text = scanner.next == .quote
                    ? scanner.takeQuotedString() : scanner.take(while: { !$0.isBlank && $0 != .comma && $0 != .quote })
            else { throw invalid }
            parameters.append(Parameter(name: name, value: text))
        } while scanner.takeSeparator(.comma)
        guard scanner.isAtEnd else { throw invalid }
        return parameters
    }

    package var isDigest: Bool { scheme.isNamed("Digest") }

    /// The first value of a name, without quotes; nil when there is none.
    package subscript(_ name: StaticString) -> Bytes? { rawValue(name)?.unquoted }

    /// The first value of a name, as it came; nil when there is none.
    package func rawValue(_ name: StaticString) -> Bytes? { parameters.first { $0.name.isNamed(name) }?.value }

    /// Appends a parameter; a quoted one may hold any text, a bare one is written as it is.
    package mutating func append(_ name: String, _ value: Bytes, isQuoted: Bool) {
        parameters.append(Parameter(name: Bytes(name), value: isQuoted ? value.quoted : value))
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes += scheme
        for (offset, parameter) in parameters.enumerated() {
            bytes += (offset > 0 ? ", " : scheme.isEmpty ? "" : " ").utf8
            bytes += parameter.name
            bytes.append(.equals)
            bytes += parameter.value
        }
    }

    private static var invalid: SIPError {
        SIPError(
            .badRequest,
            "An authentication header cannot be read. Write a scheme and at most 32 name=value, with commas between them."
        )
    }
}

extension AuthenticationValue: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String {
        "\(scheme.excerpt) \(parameters.map(\.description).joined(separator: ", "))"
    }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension AuthenticationValue.Parameter: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What is not known to be harmless is not shown.
    package var description: String {
        "\(name.excerpt)=\(Self.harmless.contains(name.text.lowercased()) ? value.excerpt : Secret("").description)"
    }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }

    private static let harmless: Set<String> = [
        "username", "realm", "nonce", "uri", "algorithm", "qop", "nc", "cnonce", "opaque", "stale", "userhash",
        "nextnonce", "domain", "charset",
    ]
}
