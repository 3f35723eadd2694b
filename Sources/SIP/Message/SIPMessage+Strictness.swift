extension SIPMessage {
    /// What a strict reader would not forgive in the message that stood in `bytes`, though it can be read.
    ///
    /// Each is said in a sentence, with its source.
    package func strictFaults(in bytes: [UInt8]) -> [String] {
        var faults: [String] = []
        func check(_ isSound: Bool, _ fault: String) {
            if !isSound { faults.append(fault) }
        }
        check(!Self.hasBareLineFeed(bytes), "A line ends with LF alone; CR LF ends lines (RFC 3261, section 7).")
        check(restByteCount == 0, "Bytes stand behind the body (RFC 3261, section 18.3).")
        check(count(of: .contentLength) == 1, "Content-Length is missing; streams need it (RFC 3261, section 20.14).")
        let via = try? topVia()
        check(
            via == nil || via?.hasUniqueBranch == true,
            "The branch does not begin with z9hG4bK (RFC 3261, section 8.1.1.7)."
        )
        check((try? from())??.tag != nil, "From has no tag (RFC 3261, section 8.1.1.3).")
        check(
            bodyBytes.isEmpty || first(.contentType) != nil,
            "The body has no Content-Type (RFC 3261, section 7.4.1)."
        )
        if let method {
            check(count(of: .maxForwards) == 1, "Max-Forwards is missing (RFC 3261, section 8.1.1.6).")
            let needsContact = method == .invite || method == .subscribe || method == .refer || method == .update
            check(!needsContact || count(of: .contact) == 1, "One Contact is needed (RFC 3261, section 8.1.1.8).")
        } else if let statusCode, statusCode > 100 {
            check((try? to())??.tag != nil, "To has no tag (RFC 3261, section 8.2.6.2).")
        }
        return faults
    }

    private static func hasBareLineFeed(_ bytes: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0] == .lineFeed && ($0 == 0 || bytes[$0 - 1] != .carriageReturn) }
    }

    /// The names and values of all headers, as they are written; what proves a password is left out.
    package var writtenHeaders: [(name: String, value: String)] {
        let lines = description.split(separator: "\r\n", omittingEmptySubsequences: false).dropFirst()
        return lines.prefix { !$0.isEmpty }.compactMap { line in
            line.firstIndex(of: ":").map { colon in
                (String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " }))
            }
        }
    }
}
