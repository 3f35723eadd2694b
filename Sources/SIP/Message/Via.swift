/// A station of a request's way, to which its answer goes back.
///
///     SIP/2.0/UDP host:port;branch=z9hG4bK...;rport
///
/// Source: RFC 3261, section 20.42; RFC 3581
package struct Via: HeaderValue {
    /// As it came; it is compared without case.
    package var transport: Bytes
    package var host: Bytes
    package var port: UInt16?
    package var parameters: ParameterList

    package init(transport: Bytes, host: Bytes, port: UInt16?, branch: Bytes) {
        (self.transport, self.host, self.port) = (transport, host, port)
        parameters = ParameterList(branch: branch)
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let name = scanner.takeToken(), name.isNamed("SIP"), scanner.takeSeparator(.slash),
            let version = scanner.takeToken(), version.isNamed("2.0"), scanner.takeSeparator(.slash),
            let transport = scanner.takeToken(), scanner.next?.isBlank == true
        else { throw Self.invalid(value) }
        scanner.skipBlanks()
        guard let host = scanner.takeHost() else { throw Self.invalid(value) }
        var port: UInt16?
        if scanner.takeSeparator(.colon) {
            port = scanner.take { $0.isDigit }.flatMap { $0.decimal() }
            guard port != nil else { throw Self.invalid(value) }
        }
        (self.transport, self.host, self.port) = (transport, host, port)
        parameters = try ParameterList(parsing: &scanner)
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw Self.invalid(value) }
    }

    package var branch: Bytes? { parameters.value("branch") }
    /// Whether the branch tells transactions apart alone; the cookie without more does not.
    package var hasUniqueBranch: Bool {
        guard let branch else { return false }
        return branch.count > 7 && branch.prefix(7).isNamed("z9hG4bK")
    }
    /// The address that the request came from, without brackets; nil when it is not told.
    package var received: Bytes? {
        guard let value = parameters.value("received") else { return nil }
        return value.first == .openBracket && value.last == .closeBracket ? value.dropFirst().dropLast() : value
    }
    /// Whether the sender asks to be answered at the port that it sends from.
    package var wantsResponsePort: Bool { parameters.contains("rport") }
    package var responsePort: UInt16? { parameters.value("rport").flatMap { $0.decimal() } }
    package var maddr: Bytes? { parameters.value("maddr") }

    /// Notes where the request came from, as a server does: the host where it says something new, the port when asked.
    ///
    /// What its sender wrote of that itself is taken away: it could name anybody.
    /// Source: RFC 3261, section 18.2.1; RFC 3581, section 4
    package mutating func note(sourceHost: Bytes, port: UInt16) {
        parameters.remove("received")
        if wantsResponsePort { parameters.set("rport", to: Bytes(decimal: port)) }
        if wantsResponsePort || !isSameHost(host, sourceHost) { parameters.set("received", to: sourceHost) }
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes += "SIP/2.0/".utf8
        bytes += transport
        bytes.append(.space)
        bytes += host
        if let port {
            bytes.append(.colon)
            bytes.append(decimal: port)
        }
        parameters.serialize(into: &bytes)
    }

    private static func invalid(_ value: Bytes) -> SIPError {
        SIP.invalid("Via", value, "Write SIP/2.0/UDP host:port;branch=z9hG4bK...")
    }
}
