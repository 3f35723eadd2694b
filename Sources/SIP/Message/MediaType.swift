/// The type of a body: Content-Type, and each value of Accept (RFC 3261, section 20.15).
package struct MediaType: HeaderValue {
    package var type: Bytes
    package var subtype: Bytes
    package var parameters: ParameterList

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let type = scanner.takeToken(), scanner.takeSeparator(.slash), let subtype = scanner.takeToken() else {
            throw invalid("Content-Type", value, "Write type/subtype.")
        }
        (self.type, self.subtype) = (type, subtype)
        parameters = try ParameterList(parsing: &scanner)
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw invalid("Content-Type", value, "Put a semicolon before each parameter.") }
    }

    /// Whether it is `type`/`subtype`, without case and whatever its parameters.
    package func isNamed(_ type: StaticString, _ subtype: StaticString) -> Bool {
        self.type.isNamed(type) && self.subtype.isNamed(subtype)
    }

    /// Whether it is `name`, written as type/subtype, without case and whatever its parameters.
    package func isNamed(_ name: Bytes) -> Bool {
        guard let slash = name.firstIndex(of: .slash) else { return false }
        return type.isNamed(name[..<slash]) && subtype.isNamed(name[(slash + 1)...])
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes += type
        bytes.append(.slash)
        bytes += subtype
        parameters.serialize(into: &bytes)
    }
}
