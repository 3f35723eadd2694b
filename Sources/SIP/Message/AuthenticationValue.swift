/// A challenge or credentials: the four authentication headers, each line one value.
///
///     Digest realm="example.com", nonce="...", algorithm=SHA-256, qop="auth"
///
/// Values are read with or without quotes; what is written has them as it was given.
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
        guard let scheme = scanner.takeToken(), scanner.next?.isBlank == true else { throw Self.invalid(value) }
        self.scheme = scheme
        parameters = []
        scanner.skipBlanks()
        repeat {
            guard parameters.count < MessageLimits.parameterCount, let name = scanner.takeToken(),
                scanner.takeSeparator(.equals),
                let text = scanner.next == .quote
                    ? scanner.takeQuotedString() : scanner.take(while: { !$0.isBlank && $0 != .comma && $0 != .quote })
            else { throw Self.invalid(value) }
            parameters.append(Parameter(name: name, value: text))
        } while scanner.takeSeparator(.comma)
        guard scanner.isAtEnd else { throw Self.invalid(value) }
    }

    package var isDigest: Bool { scheme.isNamed("Digest") }

    /// The first value of a name, without quotes; nil when there is none.
    package subscript(_ name: StaticString) -> Bytes? {
        parameters.first { $0.name.isNamed(name) }?.value.unquoted
    }

    /// Appends a parameter; a quoted one may hold any text, a bare one is written as it is.
    package mutating func append(_ name: String, _ value: Bytes, isQuoted: Bool) {
        parameters.append(Parameter(name: Bytes(name), value: isQuoted ? value.quoted : value))
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes += scheme
        for (offset, parameter) in parameters.enumerated() {
            bytes += (offset == 0 ? " " : ", ").utf8
            bytes += parameter.name
            bytes.append(.equals)
            bytes += parameter.value
        }
    }

    private static func invalid(_ value: Bytes) -> SIPError {
        SIP.invalid(
            "an authentication header",
            value,
            "Write a scheme and at most 32 name=value, with commas between them."
        )
    }
}
