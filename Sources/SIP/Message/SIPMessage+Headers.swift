extension SIPMessage {
    /// The first value of a header; nil when there is none.
    ///
    /// Throws: `badRequest` when it breaks the grammar
    package func value<Value: HeaderValue>(_ name: HeaderName, as _: Value.Type = Value.self) throws(SIPError) -> Value?
    {
        guard let value = first(name) else { return nil }
        return try Value(parsing: value)
    }

    /// All values of a header; those of a line stand between commas.
    ///
    /// It is not for the authentication headers, whose commas stand within one value.
    /// Throws: `badRequest` when one breaks the grammar, or a line has more than 64
    package func list<Value: HeaderValue>(_ name: HeaderName, as _: Value.Type = Value.self) throws(SIPError) -> [Value]
    {
        var list: [Value] = []
        for field in fields where field.name == name {
            let line = storage[field.valueRange.range]
            for value in try Self.pieces(of: line, isSplit: name.isSplit) { list.append(try Value(parsing: value)) }
        }
        return list
    }

    /// The words of a header that lists them: Allow, Supported, Require and their like; empty ones are passed over.
    ///
    /// Throws: `badRequest` when one is no token, or a line has more than 64
    package func tokens(of name: HeaderName) throws(SIPError) -> [String] {
        var tokens: [String] = []
        for field in fields where field.name == name {
            let line = storage[field.valueRange.range]
            for value in try Self.pieces(of: line, isSplit: false) where !value.isEmpty {
                guard value.isToken else {
                    throw invalid("a list of words", line, "Write tokens with commas between them.")
                }
                tokens.append(value.text)
            }
        }
        return tokens
    }

    /// Whether a header that lists words has one of them, in whatever case.
    func lists(_ word: StaticString, in name: HeaderName) -> Bool {
        fields.contains { field in
            guard field.name == name else { return false }
            return storage[field.valueRange.range].split(separator: .comma).contains { $0.trimmed.isNamed(word) }
        }
    }

    package func topVia() throws(SIPError) -> Via? {
        guard let typed, fields.first(where: { $0.name == .via })?.valueRange == typed.viaRange else {
            return try value(.via)
        }
        return typed.topVia
    }
    package func from() throws(SIPError) -> NameAddress? { if let typed { typed.from } else { try value(.from) } }
    package func to() throws(SIPError) -> NameAddress? { if let typed { typed.to } else { try value(.to) } }
    package func cSeq() throws(SIPError) -> CSeq? { if let typed { typed.cSeq } else { try value(.cSeq) } }
    package func contentType() throws(SIPError) -> MediaType? { try value(.contentType) }
    package var callID: Bytes? { first(.callID) }

    /// The methods that Allow names.
    package func allowedMethods() throws(SIPError) -> [SIPMethod] {
        try tokens(of: .allow).compactMap { SIPMethod($0) }
    }

    /// Whether a Contact is the asterisk that means all bindings.
    package var hasWildcardContact: Bool {
        fields.contains { $0.name == .contact && storage[$0.valueRange.range].isAsterisk }
    }

    /// The Contacts but for an asterisk.
    package func contacts() throws(SIPError) -> [NameAddress] {
        var contacts: [NameAddress] = []
        for field in fields where field.name == .contact {
            let value = storage[field.valueRange.range]
            if !value.isAsterisk { contacts.append(try NameAddress(parsing: value)) }
        }
        return contacts
    }

    /// The challenges or credentials of a header, each line one.
    package func authentication(_ name: HeaderName) throws(SIPError) -> [AuthenticationValue] {
        var list: [AuthenticationValue] = []
        for value in values(of: name) { list.append(try AuthenticationValue(parsing: value)) }
        return list
    }

    /// The first Contact but for an asterisk; nil when there is none.
    ///
    /// Throws: `badRequest` when it breaks the grammar
    func firstContact() throws(SIPError) -> NameAddress? {
        for field in fields where field.name == .contact {
            let value = storage[field.valueRange.range]
            if !value.isAsterisk { return try NameAddress(parsing: value) }
        }
        return nil
    }

    private static func pieces(of line: Bytes, isSplit: Bool) throws(SIPError) -> [Bytes] {
        guard !isSplit, line.contains(.comma) else { return [line] }
        guard let values = line.listValues(), values.count <= MessageLimits.listCount else {
            throw invalid("a list", line, "Close quotes and brackets, and send at most 64 values.")
        }
        return values
    }
}

extension Bytes {
    fileprivate var isAsterisk: Bool { count == 1 && first == 0x2A }
}
