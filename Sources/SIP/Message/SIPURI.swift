public import CallBasics

/// An address of a user or a server: sip, sips or tel; of other schemes the text.
///
///     sip:user:password@host:port;name=value;name?header=value&header=value
///     tel:+1-201-555-0123;phone-context=example.com
///
/// It keeps the text as it came. `==` compares that text; whether two mean the same says `isEquivalent(to:)`.
/// Source: RFC 3261, section 19.1; RFC 3966; RFC 5954
public struct SIPURI: Hashable, Sendable, CustomStringConvertible {
    /// How the rest is to be read.
    public enum Scheme: Hashable, Sendable {
        case sip, sips, tel, other
    }

    /// The scheme; without case.
    public let scheme: Scheme
    /// The port, when one is written.
    public let port: UInt16?
    package private(set) var bytes: Bytes
    /// Offsets in `bytes`, in the order of the text; an end that equals its start says that the part is not there.
    private let userStart: UInt16
    private let userEnd: UInt16
    private let passwordEnd: UInt16
    private let hostStart: UInt16
    private let hostEnd: UInt16
    private let parametersStart: UInt16
    private let parametersEnd: UInt16

    /// Reads the text of a URI.
    ///
    /// Throws: `badRequest` when the grammar is broken, `uriTooLong` above 16 KiB
    public init(_ text: String) throws(SIPError) {
        try self.init(parsing: Bytes(text))
    }

    package init(parsing bytes: Bytes) throws(SIPError) {
        guard bytes.count <= MessageLimits.valueByteCount else {
            throw SIPError(
                .uriTooLong,
                "A URI has \(bytes.count) bytes. At most \(MessageLimits.valueByteCount) are taken."
            )
        }
        func refused(_ what: String) -> SIPError {
            SIPError(.badRequest, "\(what) in the URI \"\(bytes.excerpt)\". Write it like sip:user@example.com.")
        }
        var scanner = FieldScanner(bytes)
        guard let name = scanner.take(while: { $0.isAlphanumeric || $0 == 0x2B || $0 == 0x2D || $0 == 0x2E }),
            !name[name.startIndex].isDigit, scanner.take(.colon)
        else { throw refused("No scheme is") }
        guard scanner.rest.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != .less && $0 != .greater && $0 != .quote })
        else {
            throw refused("A character that has to be escaped is")
        }
        guard !scanner.isAtEnd else { throw refused("Nothing follows the scheme") }
        func offset(_ index: Int) -> UInt16 { UInt16(index - bytes.startIndex) }
        self.bytes = bytes
        scheme = name.isNamed("sip") ? .sip : name.isNamed("sips") ? .sips : name.isNamed("tel") ? .tel : .other
        let start = offset(scanner.index)
        var port: UInt16?
        var (userEnd, passwordEnd, hostStart, hostEnd) = (start, start, start, start)
        var (parametersStart, parametersEnd) = (offset(bytes.endIndex), offset(bytes.endIndex))
        switch scheme {
        case .other: break
        case .tel:
            guard let number = scanner.take(while: { $0.isTelephoneDigit }),
                number.contains(where: { $0.isAlphanumeric })
            else { throw refused("No number is") }
            userEnd = offset(scanner.index)
            (passwordEnd, hostStart, hostEnd, parametersStart) = (userEnd, userEnd, userEnd, userEnd)
            _ = try ParameterList(parsing: &scanner)
            guard scanner.isAtEnd else { throw refused("A character that does not belong there is") }
        case .sip, .sips:
            if let end = scanner.rest.firstIndex(of: .at) {
                let colon = scanner.rest[..<end].firstIndex(of: .colon) ?? end
                guard colon > scanner.index else { throw refused("No user is before the @") }
                guard scanner.rest[..<end].hasValidEscapes else {
                    throw refused("A percent sign without two digits is")
                }
                (userEnd, passwordEnd) = (offset(colon), offset(end))
                scanner = FieldScanner(bytes[(end + 1)...])
            }
            hostStart = offset(scanner.index)
            guard scanner.takeHost() != nil else { throw refused("No host is") }
            hostEnd = offset(scanner.index)
            if scanner.take(.colon) {
                port = scanner.take { $0.isDigit }.flatMap { $0.decimal() }
                guard port != nil else { throw refused("No port from 0 to 65535 is behind the colon") }
            }
            parametersStart = offset(scanner.index)
            let parameters = try ParameterList(parsing: &scanner)
            guard parameters.bytes.hasValidEscapes, !parameters.contains(where: { $0.value?.first == .quote }) else {
                throw refused("A parameter that is not escaped is")
            }
            parametersEnd = offset(scanner.index)
            if !scanner.isAtEnd {
                guard scanner.take(.questionMark), !scanner.isAtEnd, scanner.rest.hasValidEscapes,
                    scanner.rest.split(separator: 0x26, omittingEmptySubsequences: false).allSatisfy({
                        ($0.firstIndex(of: .equals) ?? $0.startIndex) > $0.startIndex
                    })
                else { throw refused("A character that does not belong there is") }
                guard scanner.rest.count(where: { $0 == 0x26 }) < MessageLimits.parameterCount else {
                    throw refused("More than \(MessageLimits.parameterCount) headers are")
                }
            }
        }
        self.port = port
        (userStart, self.userEnd, self.passwordEnd) = (start, userEnd, passwordEnd)
        (self.hostStart, self.hostEnd) = (hostStart, hostEnd)
        (self.parametersStart, self.parametersEnd) = (parametersStart, parametersEnd)
    }

    /// The user, or the number of a tel URI, without escapes; nil when there is none.
    public var user: String? { userBytes.map { String(decoding: $0.unescaped, as: UTF8.self) } }

    /// The host as it is written, an IPv6 address in its brackets; empty where the scheme has none.
    public var host: String { hostBytes.text }

    /// The value of a parameter without escapes, empty when it has none; nil when the parameter is not there.
    public func parameter(_ name: String) -> String? {
        let name = Bytes(name)
        guard let found = parameters.first(where: { $0.name.isNamed(name) }) else { return nil }
        return String(decoding: (found.value ?? []).unescaped, as: UTF8.self)
    }

    /// Whether what is sent there goes by TLS alone (RFC 3261, section 26.2.2; RFC 5630).
    package var goesByTLS: Bool { scheme == .sips || parameter("transport")?.lowercased() == "tls" }

    /// The text as it came.
    public var description: String { bytes.text }

    package var userBytes: Bytes? { userEnd > userStart ? piece(userStart, userEnd) : nil }
    package var hostBytes: Bytes { piece(hostStart, hostEnd) }
    package var parameters: ParameterList {
        var scanner = FieldScanner(piece(parametersStart, parametersEnd))
        return (try? ParameterList(parsing: &scanner)) ?? ParameterList()
    }

    /// Names and values behind the question mark, as they came.
    package var headers: [(name: Bytes, value: Bytes)] {
        guard scheme == .sip || scheme == .sips else { return [] }
        return bytes[(bytes.startIndex + Int(parametersEnd))...].dropFirst().split(separator: 0x26).map { header in
            let end = header.firstIndex(of: .equals) ?? header.startIndex
            return (header[..<end], header[(end + 1)...])
        }
    }

    /// Whether a route by this URI is loose (RFC 3261, section 16.12).
    package var isLooseRoute: Bool { parameters.contains("lr") }

    /// The same URI in memory of its own, for what outlives its message.
    package var detached: SIPURI {
        var uri = self
        uri.bytes = bytes.detached
        return uri
    }

    /// The URI as a Request-URI has it (RFC 3261, section 19.1.1).
    var withoutHeaders: SIPURI {
        guard !headers.isEmpty, let uri = try? SIPURI(parsing: piece(0, parametersEnd)) else { return self }
        return uri
    }

    /// The same without headers and without a parameter.
    func without(_ name: StaticString) -> SIPURI {
        var shorter = parameters
        shorter.remove(name)
        guard let uri = try? SIPURI(parsing: piece(0, parametersStart) + shorter.bytes) else { return self }
        return uri
    }

    var passwordBytes: Bytes { piece(userEnd, passwordEnd) }

    private func piece(_ start: UInt16, _ end: UInt16) -> Bytes {
        bytes[(bytes.startIndex + Int(start))..<(bytes.startIndex + Int(end))]
    }
}

extension UInt8 {
    /// A digit of a telephone number, with what separates them for the eye (RFC 3966, section 3).
    fileprivate var isTelephoneDigit: Bool {
        switch self {
        case 0x2B, 0x2A, 0x23, 0x2D, 0x2E, 0x28, 0x29: true
        default: hexadecimalValue != nil
        }
    }

    var isVisualSeparator: Bool { self == 0x2D || self == 0x2E || self == 0x28 || self == 0x29 }
}
