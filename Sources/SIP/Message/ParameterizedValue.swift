/// A word with parameters: Event, Subscription-State, Reason, Content-Disposition, Session-Expires and their like.
///
///     word;name=value
package struct ParameterizedValue: HeaderValue {
    package var word: Bytes
    package var parameters: ParameterList

    package init(_ word: String) {
        self.word = Bytes(word)
        parameters = ParameterList()
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let word = scanner.takeToken() else {
            throw invalid("a header with a word", value, "Write a word and its parameters.")
        }
        self.word = word
        parameters = try ParameterList(parsing: &scanner)
        scanner.skipBlanks()
        guard scanner.isAtEnd else {
            throw invalid("a header with a word", value, "Put a semicolon before each parameter.")
        }
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes += word
        parameters.serialize(into: &bytes)
    }

    /// The number of a parameter; nil when it is not there or no number.
    func number(_ name: StaticString) -> UInt32? { parameters.value(name).flatMap { $0.decimal() } }
}

/// Which package of events is meant, and which subscription to it (RFC 6665, section 8.4).
package struct EventHeader: HeaderValue {
    package var value: ParameterizedValue

    package init(parsing value: Bytes) throws(SIPError) { self.value = try ParameterizedValue(parsing: value) }

    package var package: Bytes { value.word }
    package var id: Bytes? { value.parameters.value("id") }

    package func serialize(into bytes: inout [UInt8]) { value.serialize(into: &bytes) }
}

/// How a subscription stands (RFC 6665, section 8.4).
package struct SubscriptionState: HeaderValue {
    package var value: ParameterizedValue

    package init(parsing value: Bytes) throws(SIPError) { self.value = try ParameterizedValue(parsing: value) }

    package var state: Bytes { value.word }
    package var isTerminated: Bool { state.isNamed("terminated") }
    package var reason: Bytes? { value.parameters.value("reason") }
    package var expires: UInt32? { value.number("expires") }
    package var retryAfter: UInt32? { value.number("retry-after") }

    package func serialize(into bytes: inout [UInt8]) { value.serialize(into: &bytes) }
}

/// Why a request is sent: a protocol, its code and a text (RFC 3326).
package struct ReasonHeader: HeaderValue {
    package var value: ParameterizedValue

    package init(parsing value: Bytes) throws(SIPError) { self.value = try ParameterizedValue(parsing: value) }

    package var protocolName: Bytes { value.word }
    package var cause: UInt32? { value.number("cause") }
    package var text: Bytes? { value.parameters.value("text") }

    package func serialize(into bytes: inout [UInt8]) { value.serialize(into: &bytes) }
}

/// How long a session lasts without a refresh, or at least: Session-Expires and Min-SE (RFC 4028, section 4 and 5).
package struct SessionInterval: HeaderValue {
    /// Who refreshes the session.
    package enum Refresher: Hashable, Sendable { case uac, uas }

    package var seconds: UInt32
    package var parameters: ParameterList

    package init(seconds: UInt32, refresher: Refresher? = nil) {
        self.seconds = seconds
        parameters = ParameterList()
        if let refresher { parameters.set("refresher", to: Bytes(refresher == .uac ? "uac" : "uas")) }
    }

    package init(parsing value: Bytes) throws(SIPError) {
        let general = try ParameterizedValue(parsing: value)
        guard let seconds: UInt32 = general.word.decimal() else {
            throw invalid("Session-Expires or Min-SE", value, "Write a number of seconds below 2^32.")
        }
        (self.seconds, parameters) = (seconds, general.parameters)
    }

    package var refresher: Refresher? {
        guard let value = parameters.value("refresher") else { return nil }
        return value.isNamed("uac") ? .uac : value.isNamed("uas") ? .uas : nil
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes.append(decimal: seconds)
        parameters.serialize(into: &bytes)
    }
}

/// When to try again, with a comment and for how long (RFC 3261, section 20.33).
package struct RetryAfter: HeaderValue {
    package var seconds: UInt32
    /// In its parentheses; nil when there is none.
    package var comment: Bytes?
    package var parameters: ParameterList

    package init(seconds: UInt32) {
        self.seconds = seconds
        parameters = ParameterList()
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let seconds: UInt32 = scanner.take(while: { $0.isDigit })?.decimal() else { throw Self.invalid(value) }
        self.seconds = seconds
        scanner.skipBlanks()
        if scanner.next == 0x28 {
            let start = scanner.rest
            guard let end = start.lastIndex(of: 0x29) else { throw Self.invalid(value) }
            comment = start[...end]
            scanner = FieldScanner(start[(end + 1)...])
        }
        parameters = try ParameterList(parsing: &scanner)
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw Self.invalid(value) }
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes.append(decimal: seconds)
        if let comment {
            bytes.append(.space)
            bytes += comment
        }
        parameters.serialize(into: &bytes)
    }

    private static func invalid(_ value: Bytes) -> SIPError {
        SIP.invalid("Retry-After", value, "Write a number of seconds below 2^32.")
    }
}

/// A dialog named from outside: Replaces (RFC 3891) and Target-Dialog (RFC 4538).
///
///     call-id;to-tag=...;from-tag=...;early-only
package struct DialogReference: HeaderValue {
    package var callID: Bytes
    package var parameters: ParameterList

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let callID = scanner.take(while: { $0 != .semicolon && !$0.isBlank }) else {
            throw invalid("Replaces", value, "Write the Call-ID first.")
        }
        self.callID = callID
        parameters = try ParameterList(parsing: &scanner)
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw invalid("Replaces", value, "Put a semicolon before each parameter.") }
    }

    /// The tag of whoever receives the request; Target-Dialog calls it local-tag.
    package var localTag: Bytes? { parameters.value("to-tag") ?? parameters.value("local-tag") }
    /// The other side's tag.
    package var remoteTag: Bytes? { parameters.value("from-tag") ?? parameters.value("remote-tag") }
    package var isEarlyOnly: Bool { parameters.contains("early-only") }

    package func serialize(into bytes: inout [UInt8]) {
        bytes += callID
        parameters.serialize(into: &bytes)
    }
}
