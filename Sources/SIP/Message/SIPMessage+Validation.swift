internal import CallBasics

extension SIPMessage {
    /// Checks what every message must hold; what it throws says which answer the request deserves.
    ///
    /// In this order: version, form, headers that must be there and those that may be there once, the syntax of what is
    /// used, the Request-URI's scheme. Max-Forwards and Route are the business of whoever forwards.
    /// Source: RFC 3261, section 8.2 and 16.3; RFC 4475
    package func validate() throws(SIPError) {
        if let defect { throw defect }
        try checkCounts()
        _ = try list(.via, as: Via.self)
        for name in [HeaderName.from, .to] { _ = try value(name, as: NameAddress.self) }
        for name in [HeaderName.route, .recordRoute] { _ = try list(name, as: NameAddress.self) }
        try checkCallIDAndCSeq()
        try checkContacts()
        _ = try contentType()
        guard method != nil else { return }
        try checkNumbers()
        try checkRequestURI()
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
            throw SIPError(.badRequest, "\(name.canonical) is missing. Send it.")
        }
    }

    private func checkCallIDAndCSeq() throws(SIPError) {
        guard let callID, !callID.isEmpty, callID.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw SIPError(.badRequest, "The Call-ID is empty or has a blank in it. Send one word.")
        }
        guard let method, let cSeq = try cSeq(), cSeq.method != method else { return _ = try cSeq() }
        throw SIPError(.badRequest, "The CSeq names \(cSeq.method), the request is \(method). Send the same.")
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
