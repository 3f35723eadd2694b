internal import CallBasics

extension SIPMessage {
    /// Sets a header to one value, where it first stood, or at the end.
    ///
    /// Throws: `invalidCharacter` when the value would end its line; nothing has changed then
    package mutating func set(_ name: HeaderName, to value: Bytes) throws(SIPError) {
        try Self.check(name, value)
        let place = fields.firstIndex { $0.name == name } ?? fields.endIndex
        removeFields(named: name)
        insert(name, value: value, at: place)
    }

    package mutating func set(_ name: HeaderName, to value: some HeaderValue) throws(SIPError) {
        guard fields.contains(where: { $0.name == name }) else { return try append(name, value) }
        try set(name, to: value.bytes)
    }

    /// Adds a value behind those of the same header, or at the end.
    ///
    /// Throws: `invalidCharacter` when the value would end its line
    package mutating func append(_ name: HeaderName, _ value: Bytes) throws(SIPError) {
        try Self.check(name, value)
        insert(name, value: value, at: end(of: name))
    }

    package mutating func append(_ name: HeaderName, _ value: some HeaderValue) throws(SIPError) {
        try insert(name, value, at: end(of: name))
    }

    /// Where a further value of a header comes.
    private func end(of name: HeaderName) -> Int {
        fields.lastIndex { $0.name == name }.map { $0 + 1 } ?? fields.endIndex
    }

    /// Adds all values that another message has of some headers, which this one has none of.
    ///
    /// Throws: `invalidCharacter` when a value would end its line
    mutating func append(_ names: HeaderName..., of other: SIPMessage) throws(SIPError) {
        for name in names {
            for field in other.fields where field.name == name {
                let value = other.storage[field.valueRange.range]
                try Self.check(name, value)
                insert(name, value: value, at: fields.endIndex)
            }
        }
    }

    /// Adds a value before those of the same header; a Via, or a header that is not there, comes first of all.
    ///
    /// Throws: `invalidCharacter` when the value would end its line
    package mutating func prepend(_ name: HeaderName, _ value: some HeaderValue) throws(SIPError) {
        try insert(name, value, at: fields.firstIndex { $0.name == name } ?? 0)
    }

    /// Replaces the first value, such as the topmost Via; adds it when there is none.
    ///
    /// Throws: `invalidCharacter` when the value would end its line
    package mutating func replaceFirst(_ name: HeaderName, by value: some HeaderValue) throws(SIPError) {
        let place = fields.firstIndex { $0.name == name }
        try insert(name, value, at: place ?? fields.endIndex)
        if let place { removeField(at: place + 1) }
    }

    /// Takes the first value away, if there is one.
    package mutating func removeFirst(_ name: HeaderName) {
        if let place = fields.firstIndex(where: { $0.name == name }) { removeField(at: place) }
    }

    package mutating func remove(_ name: HeaderName) { removeFields(named: name) }

    /// Adds a header by its name, known or not.
    ///
    /// Throws: `invalidCharacter` when the name is no token, or the value would end its line; `badRequest` for
    /// Content-Length, which the message tells itself
    package mutating func append(named name: String, _ value: String) throws(SIPError) {
        let (name, value) = (Bytes(name), Bytes(value))
        guard name.isToken else {
            throw SIPError(
                .invalidCharacter,
                "\"\(name.excerpt)\" is no name of a header. Use letters, digits and hyphens."
            )
        }
        let known = HeaderName(name)
        guard known == .other else { return try append(known, value) }
        try Self.check(known, value)
        insert(known, otherName: name, value: value, at: fields.endIndex)
    }

    private static func check(_ name: HeaderName, _ value: Bytes) throws(SIPError) {
        try checkLine(value)
        try checkName(name)
    }

    static func checkName(_ name: HeaderName) throws(SIPError) {
        guard name != .contentLength else {
            throw SIPError(.badRequest, "Content-Length is written from the body. Set the body.")
        }
    }
}

extension SIPMessage {
    /// The answer to this request with what every answer takes over from it: Via, From, To, Call-ID and CSeq.
    ///
    /// `tag` is put to a To that has none, but in a 100.
    /// Throws: `invalidCharacter` when what is taken over, or the phrase, would end its line
    /// Source: RFC 3261, section 8.2.6
    package func response(status: Int, reason: String, tag: Bytes) throws(SIPError) -> SIPMessage {
        var response = try SIPMessage(status: status, reason: reason)
        try response.append(.via, .from, .to, .callID, .cSeq, of: self)
        if status > 100, var to = try? to(), to.tag == nil {
            to.tag = tag
            try response.set(.to, to: to)
        }
        return response
    }
}
