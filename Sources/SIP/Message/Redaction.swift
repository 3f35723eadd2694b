internal import CallBasics

/// Blots out what nobody else may know in a message: the proofs of credentials, passwords in URIs, the tokens of push services, the keys of
/// sound.
///
/// Each octet of a secret becomes an x, so that all lengths stay true. Any bytes are read: what is no message else is blotted
/// out, too.
/// Source: RFC 3261, sections 19.1.1 and 22.4; RFC 8599; RFC 4568; RFC 8839
package enum Redaction {
    /// The message without its secrets.
    package static func redacted(_ message: [UInt8]) -> [UInt8] {
        var bytes = message
        var start = 0
        /// Whether the line goes on with credentials of the line before.
        var field = Field.plain
        while start < bytes.count {
            let end = bytes[start...].firstIndex { $0 == lineFeed || $0 == carriageReturn } ?? bytes.count
            blotLine(start..<end, &field, in: &bytes)
            start = end + 1
        }
        return bytes
    }

    private enum Field {
        case plain
        /// Parameters of Digest: some of them may be shown.
        case digest
        /// Of another scheme, nothing of which may be.
        case secret
    }

    private static let (lineFeed, carriageReturn): (UInt8, UInt8) = (0x0A, 0x0D)
    private static let credentialHeaders = ["authorization", "proxy-authorization", "authentication-info"]
    /// What proves nothing by itself.
    private static let shownParameters = [
        "username", "realm", "nonce", "uri", "algorithm", "qop", "nc", "cnonce", "opaque", "nextnonce",
    ]
    private static let pushParameters = ["pn-prid=", "pn-param=", "pn-tok="].map { Array($0.utf8) }
    private static let keyLines = ["a=ice-pwd:", "k="].map { Array($0.utf8) }
    private static let schemes = ["sip:", "sips:"].map { Array($0.utf8) }
    private static let cryptoLine = Array("a=crypto:".utf8)
    private static let inlineKey = Array("inline:".utf8)

    private static func blotLine(_ line: Range<Int>, _ field: inout Field, in bytes: inout [UInt8]) {
        guard let first = line.first else {
            // The end of a line of CR and LF, or of the head.
            return
        }
        if bytes[first] == 0x20 || bytes[first] == 0x09 {
            blotCredentials(line, field, in: &bytes)
        } else {
            field = begin(line, in: &bytes)
        }
        for name in pushParameters { blot(behind: name, in: line, &bytes) { !isEndOfParameter($0) } }
        for scheme in schemes { blotPassword(behind: scheme, in: line, &bytes) }
        for name in keyLines where bytes[line].starts(with: name) {
            blotAll(line.lowerBound + name.count..<line.upperBound, in: &bytes)
        }
        if bytes[line].starts(with: cryptoLine) {
            blot(behind: inlineKey, in: line, &bytes) { $0 != 0x20 && $0 != UInt8(ascii: "|") }
        }
    }

    /// Reads the name of a header; what are credentials is blotted out.
    private static func begin(_ line: Range<Int>, in bytes: inout [UInt8]) -> Field {
        guard let colon = bytes[line].firstIndex(of: UInt8(ascii: ":")) else { return .plain }
        let name = String(decoding: bytes[line.lowerBound..<colon], as: UTF8.self).lowercased()
        guard credentialHeaders.contains(name.filter { $0 != " " && $0 != "\t" }) else { return .plain }
        var value = colon + 1..<line.upperBound
        while let octet = value.first, bytes[octet] == 0x20 || bytes[octet] == 0x09 { value.removeFirst() }
        let scheme = bytes[value].prefix { $0 != 0x20 && $0 != 0x09 }
        var field = Field.secret
        if name.hasPrefix("authentication") {
            // It has no scheme.
            field = .digest
        } else if String(decoding: scheme, as: UTF8.self).lowercased() == "digest" {
            field = .digest
            value = scheme.endIndex..<value.upperBound
        } else if scheme.endIndex < value.upperBound {
            value = scheme.endIndex..<value.upperBound
        }
        blotCredentials(value, field, in: &bytes)
        return field
    }

    private static func blotCredentials(_ value: Range<Int>, _ field: Field, in bytes: inout [UInt8]) {
        switch field {
        case .plain: return
        case .secret: blotAll(value, in: &bytes)
        case .digest:
            var rest = value
            while !rest.isEmpty {
                let end = endOfParameter(rest, in: bytes)
                blotParameter(rest.lowerBound..<end, in: &bytes)
                rest = min(end + 1, rest.upperBound)..<rest.upperBound
            }
        }
    }

    /// The comma behind the first parameter, but for those within quotes.
    private static func endOfParameter(_ range: Range<Int>, in bytes: [UInt8]) -> Int {
        var (isQuoted, isEscaped) = (false, false)
        for index in range {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, bytes[index] == UInt8(ascii: "\\") {
                isEscaped = true
            } else if bytes[index] == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if bytes[index] == UInt8(ascii: ","), !isQuoted {
                return index
            }
        }
        return range.upperBound
    }

    private static func blotParameter(_ parameter: Range<Int>, in bytes: inout [UInt8]) {
        guard let equals = bytes[parameter].firstIndex(of: UInt8(ascii: "=")) else {
            return blotAll(parameter, in: &bytes)
        }
        let name = String(decoding: bytes[parameter.lowerBound..<equals], as: UTF8.self).lowercased()
        guard !shownParameters.contains(name.filter { $0 != " " && $0 != "\t" }) else { return }
        blotAll(equals + 1..<parameter.upperBound, in: &bytes)
    }

    /// Blots out what stands behind `name`, wherever that is in the line, in whatever case.
    private static func blot(
        behind name: [UInt8],
        in line: Range<Int>,
        _ bytes: inout [UInt8],
        while isSecret: (UInt8) -> Bool
    ) {
        for start in places(behind: name, in: line, bytes) {
            let end = bytes[start..<line.upperBound].firstIndex { !isSecret($0) } ?? line.upperBound
            blotAll(start..<end, in: &bytes)
        }
    }

    /// Where something stands behind `name`, in whatever case.
    private static func places(behind name: [UInt8], in line: Range<Int>, _ bytes: [UInt8]) -> [Int] {
        guard line.count > name.count else { return [] }
        return (line.lowerBound...(line.upperBound - name.count)).filter { start in
            zip(name, bytes[start...]).allSatisfy { $0 == $1 | ($1 &- 0x41 < 26 ? 0x20 : 0) }
        }.map { $0 + name.count }
    }

    /// Blots out the password of each URI of a scheme in the line (RFC 3261, section 19.1.1).
    private static func blotPassword(behind scheme: [UInt8], in line: Range<Int>, _ bytes: inout [UInt8]) {
        for start in places(behind: scheme, in: line, bytes) {
            let userInfo = bytes[start..<line.upperBound].prefix { !isEndOfUserInfo($0) }
            guard userInfo.endIndex < line.upperBound, bytes[userInfo.endIndex] == UInt8(ascii: "@"),
                let colon = userInfo.firstIndex(of: UInt8(ascii: ":"))
            else { continue }
            blotAll(colon + 1..<userInfo.endIndex, in: &bytes)
        }
    }

    private static func isEndOfUserInfo(_ octet: UInt8) -> Bool { octet <= 0x20 || "@<>\"".utf8.contains(octet) }

    private static func isEndOfParameter(_ octet: UInt8) -> Bool { octet <= 0x20 || ";>?,&\"".utf8.contains(octet) }

    /// Quotes and blanks stay, so that what is left can be read.
    private static func blotAll(_ range: Range<Int>, in bytes: inout [UInt8]) {
        var isEscaped = false
        for index in range {
            let octet = bytes[index]
            if octet > 0x20, octet != UInt8(ascii: "\"") || isEscaped { bytes[index] = UInt8(ascii: "x") }
            isEscaped = octet == UInt8(ascii: "\\") && !isEscaped
        }
    }
}
