internal import CallBasics

extension SIPMessage {
    /// Sets a header to one value, where it first stood, or at the end.
    ///
    /// Throws: `invalidCharacter` when the value would end its line; nothing has changed then
    package mutating func set(_ name: HeaderName, to value: Bytes) throws(SIPError) {
        try Self.check(name, value)
        let place = fields.firstIndex { $0.name == name } ?? fields.endIndex
        removeFields { $0.name == name }
        insert(name, value: value, at: place)
    }

    package mutating func set(_ name: HeaderName, to value: some HeaderValue) throws(SIPError) {
        try set(name, to: value.bytes)
    }

    /// Adds a value behind those of the same header, or at the end.
    ///
    /// Throws: `invalidCharacter` when the value would end its line
    package mutating func append(_ name: HeaderName, _ value: Bytes) throws(SIPError) {
        try Self.check(name, value)
        let place = fields.lastIndex { $0.name == name }.map { $0 + 1 } ?? fields.endIndex
        insert(name, value: value, at: place)
    }

    package mutating func append(_ name: HeaderName, _ value: some HeaderValue) throws(SIPError) {
        try append(name, value.bytes)
    }

    /// Adds a value before those of the same header; a Via, or a header that is not there, comes first of all.
    ///
    /// Throws: `invalidCharacter` when the value would end its line
    package mutating func prepend(_ name: HeaderName, _ value: some HeaderValue) throws(SIPError) {
        let bytes = value.bytes
        try Self.check(name, bytes)
        insert(name, value: bytes, at: fields.firstIndex { $0.name == name } ?? 0)
    }

    /// Replaces the first value, such as the topmost Via; adds it when there is none.
    ///
    /// Throws: `invalidCharacter` when the value would end its line
    package mutating func replaceFirst(_ name: HeaderName, by value: some HeaderValue) throws(SIPError) {
        let bytes = value.bytes
        try Self.check(name, bytes)
        removeFirst(name, replacement: bytes)
    }

    /// Takes the first value away, if there is one.
    package mutating func removeFirst(_ name: HeaderName) { removeFirst(name, replacement: nil) }

    package mutating func remove(_ name: HeaderName) { removeFields { $0.name == name } }

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

    private mutating func removeFirst(_ name: HeaderName, replacement: Bytes?) {
        let place = fields.firstIndex { $0.name == name }
        if let replacement { insert(name, value: replacement, at: place ?? fields.endIndex) }
        guard let place else { return }
        removeField(at: replacement == nil ? place : place + 1)
    }

    private static func check(_ name: HeaderName, _ value: Bytes) throws(SIPError) {
        try checkLine(value)
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
        for name in [HeaderName.via, .from, .to, .callID, .cSeq] {
            for value in values(of: name) { try response.append(name, value) }
        }
        if status > 100, var to = try? to(), to.tag == nil {
            to.tag = tag
            try response.set(.to, to: to)
        }
        return response
    }
}
