internal import CallBasics

extension SIPMessage {
    /// The message, once it holds what every message must; what it throws says which answer the request deserves.
    ///
    /// In this order: version, form, headers that must be there and those that may be there once, the syntax of what is
    /// used, the Request-URI's scheme. Max-Forwards and Route are the business of whoever forwards.
    /// Source: RFC 3261, section 8.2 and 16.3; RFC 4475
    package func validated() throws(SIPError) -> SIPMessage {
        if let defect { throw defect }
        try checkCounts()
        let (via, viaRange) = try checkVias()
        let (from, to) = (try required(.from), try required(.to))
        try check(.route, as: NameAddress.self)
        try check(.recordRoute, as: NameAddress.self)
        let cSeq = try checkCallIDAndCSeq()
        try checkContacts()
        _ = try contentType()
        if method != nil {
            try checkNumbers()
            try checkRequestURI()
        }
        var message = self
        message.keep(TypedHeaders(topVia: via, at: viaRange, from: from, to: to, cSeq: cSeq))
        return message
    }

    /// Whether an answer may be understood: there is a Via, be it well-formed or not, and it is no ACK.
    package var isAnswerable: Bool {
        guard let method, method != .ack else { return false }
        return first(.via) != nil
    }

    private func checkCounts() throws(SIPError) {
        var seen = HeaderNameSet()
        for field in fields {
            guard seen.insert(field.name) || !field.name.isSingle else {
                throw SIPError(.badRequest, "\(field.name.canonical) is there twice. Send it once.")
            }
        }
        for name in [HeaderName.via, .from, .to, .callID, .cSeq] where !seen.contains(name) {
            throw Self.missing(name)
        }
    }

    private func required(_ name: HeaderName) throws(SIPError) -> NameAddress {
        guard let address: NameAddress = try value(name) else { throw Self.missing(name) }
        return address
    }

    private static func missing(_ name: HeaderName) -> SIPError {
        SIPError(.badRequest, "\(name.canonical) is missing. Send it.")
    }

    /// Reads all Vias, and gives the topmost.
    private func checkVias() throws(SIPError) -> (Via, ByteRange) {
        var top: (Via, ByteRange)?
        for field in fields where field.name == .via {
            let via = try Via(parsing: storage[field.valueRange.range])
            if top == nil { top = (via, field.valueRange) }
        }
        guard let top else { throw Self.missing(.via) }
        return top
    }

    /// Reads all values of a header.
    private func check<Value: HeaderValue>(_ name: HeaderName, as _: Value.Type) throws(SIPError) {
        for field in fields where field.name == name { _ = try Value(parsing: storage[field.valueRange.range]) }
    }

    private func checkCallIDAndCSeq() throws(SIPError) -> CSeq {
        guard let callID, !callID.isEmpty, callID.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw SIPError(.badRequest, "The Call-ID is empty or has a blank in it. Send one word.")
        }
        guard let cSeq = try cSeq() else { throw Self.missing(.cSeq) }
        if let method, cSeq.method != method {
            throw SIPError(.badRequest, "The CSeq names \(cSeq.method), the request is \(method). Send the same.")
        }
        return cSeq
    }

    private func checkContacts() throws(SIPError) {
        for contact in try contacts() where method != nil { _ = try contact.expires() }
    }

    private func checkNumbers() throws(SIPError) {
        if let hops = try value(.maxForwards, as: WholeNumber.self), hops.value > 255 {
            throw SIPError(.badRequest, "Max-Forwards is \(hops.value). It is at most 255.")
        }
        _ = try value(.expires, as: WholeNumber.self)
    }

    private func checkRequestURI() throws(SIPError) {
        let uri = try requestURI()
        guard uri.scheme != .other else {
            throw SIPError(.unsupportedScheme, "The scheme of \"\(uri.bytes.excerpt)\" is none of sip, sips and tel.")
        }
        guard uri.headers.isEmpty else {
            throw SIPError(.badRequest, "The Request-URI \"\(uri.bytes.excerpt)\" has headers. Leave them out.")
        }
    }
}

/// Headers that a message has: a bit for each.
private struct HeaderNameSet {
    private var bits: UInt128 = 0

    func contains(_ name: HeaderName) -> Bool { bits & 1 << name.rawValue != 0 }

    /// Adds a name; false when it was there.
    mutating func insert(_ name: HeaderName) -> Bool {
        defer { bits |= 1 << name.rawValue }
        return !contains(name)
    }
}
