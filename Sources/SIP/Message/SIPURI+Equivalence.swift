internal import CallBasics

extension SIPURI {
    /// The URI of somebody who can be called: `sip:` or `sips:`.
    ///
    /// Throws: as `init(_:)`, and `unsupportedScheme`
    package init(callable text: String) throws(SIPError) {
        let uri = try SIPURI(text)
        guard uri.scheme == .sip || uri.scheme == .sips else {
            throw SIPError(.unsupportedScheme, "It is no sip: or sips: URI. Give one such as sip:alice@example.org.")
        }
        self = uri
    }

    /// Whether both mean the same.
    ///
    /// Scheme, host and names are compared without case, addresses in binary form, the user with case. A port that is
    /// left out is not 5060. Most parameters that only one of them has are passed over, so that two URIs which are
    /// equivalent to a third need not be so to each other.
    /// Source: RFC 3261, section 19.1.4; RFC 3966, section 4 and 5
    public func isEquivalent(to other: SIPURI) -> Bool {
        guard scheme == other.scheme else { return false }
        switch scheme {
        case .other: return bytes == other.bytes
        case .tel:
            return Self.digits(userBytes) == Self.digits(other.userBytes)
                && hasAllParameters(of: other) && other.hasAllParameters(of: self)
        case .sip, .sips:
            return userInfo == other.userInfo && isSameHost(hostBytes, other.hostBytes) && port == other.port
                && fitsParameters(of: other) && other.fitsParameters(of: self)
                && headers.count == other.headers.count && hasAllHeaders(of: other) && other.hasAllHeaders(of: self)
        }
    }

    /// User and password, with escapes undone; an escaped character that is reserved stays apart from the bare one.
    private var userInfo: [[UInt16]] {
        [(userBytes ?? []).comparable, passwordBytes.comparable]
    }

    private static func digits(_ number: Bytes?) -> [UInt8] {
        (number ?? []).filter { !$0.isVisualSeparator }.map(\.lowercase)
    }

    /// What both have is equal, and nothing is missing in `other` that must be in both or in neither.
    private func fitsParameters(of other: SIPURI) -> Bool {
        parameters.allSatisfy { parameter in
            let twins = other.parameters.filter { $0.name.isSameText(as: parameter.name) }
            guard !twins.isEmpty else { return !parameter.name.isNeededInBoth }
            return twins.contains { ($0.value ?? []).isSameText(as: parameter.value ?? []) }
        }
    }

    private func hasAllParameters(of other: SIPURI) -> Bool {
        other.parameters.allSatisfy { parameter in
            parameters.contains {
                $0.name.isNamed(parameter.name) && ($0.value ?? []).isSameText(as: parameter.value ?? [])
            }
        }
    }

    private func hasAllHeaders(of other: SIPURI) -> Bool {
        other.headers.allSatisfy { header in
            headers.contains { $0.name.isSameText(as: header.name) && $0.value.comparable == header.value.comparable }
        }
    }
}

extension Bytes {
    /// Whether each percent sign has two hexadecimal digits behind it.
    var hasValidEscapes: Bool {
        indices.allSatisfy { index in
            self[index] != .percent
                || index + 2 < endIndex && self[index + 1].hexadecimalValue != nil
                    && self[index + 2].hexadecimalValue != nil
        }
    }

    /// The bytes with all escapes undone.
    var unescaped: [UInt8] { comparable.map { UInt8(truncatingIfNeeded: $0) } }

    /// The bytes with escapes undone; those that were escaped and are reserved stay apart from the bare ones.
    fileprivate var comparable: [UInt16] {
        var plain: [UInt16] = []
        plain.reserveCapacity(count)
        var index = startIndex
        while index < endIndex {
            if self[index] == .percent, index + 2 < endIndex, let high = self[index + 1].hexadecimalValue,
                let low = self[index + 2].hexadecimalValue
            {
                let byte = high << 4 | low
                plain.append(UInt16(byte) | (byte.isReserved ? 0x100 : 0))
                index += 3
            } else {
                plain.append(UInt16(self[index]))
                index += 1
            }
        }
        return plain
    }

    fileprivate func isSameText(as other: Bytes) -> Bool {
        func folded(_ unit: UInt16) -> UInt16 { 0x41...0x5A ~= unit ? unit | 0x20 : unit }
        return comparable.map(folded) == other.comparable.map(folded)
    }

    /// Whether a parameter that only one URI has makes them differ; RFC 8599 adds those for push.
    fileprivate var isNeededInBoth: Bool {
        isNamed("user") || isNamed("ttl") || isNamed("method") || isNamed("maddr") || isNamed("transport")
            || prefix(3).isNamed("pn-")
    }
}

extension UInt8 {
    /// A character with a meaning of its own in a URI: `;/?:@&=+$,`.
    fileprivate var isReserved: Bool {
        switch self {
        case .semicolon, .slash, .questionMark, .colon, .at, 0x26, .equals, 0x2B, 0x24, .comma: true
        default: false
        }
    }
}
