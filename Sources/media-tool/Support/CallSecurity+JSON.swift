import CallCore
import MediaEngine
import MediaTransport

extension CallSecurity {
    /// The keying, the suite, what the other side's certificate is known by, where it was found, and packets by what was wrong with them.
    var json: JSONValue {
        .object([
            ("keying", .string(SRTPWish(encryption).rawValue)), ("suite", .string(suite)),
            ("fingerprint", JSONValue(fingerprint)),
            (
                "path",
                path.map { .object([("kind", .string($0.kind)), ("address", .string("\($0.address)"))]) } ?? .null
            ),
            ("withheld", .integer(counts.withheld)), ("unsent", .integer(counts.unsent)),
            (
                "refused",
                .object([
                    ("early", .integer(counts.early)), ("malformed", .integer(counts.malformed)),
                    ("unauthentic", .integer(counts.unauthentic)), ("replayed", .integer(counts.replayed)),
                    ("otherKey", .integer(counts.otherKey)),
                    ("unprovenChecks", .integer(counts.unprovenChecks)),
                ])
            ),
        ])
    }

    /// The same for people; what was refused only where something was.
    var text: String {
        let refused = [
            (counts.early, "before its key"), (counts.malformed, "no RTP"), (counts.unauthentic, "not authentic"),
            (counts.replayed, "repeated"), (counts.otherKey, "of another key"),
            (counts.unprovenChecks, "checks without the password"),
        ]
        let reasons = refused.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        let keying = SRTPWish(encryption).rawValue.uppercased()
        let way = path.map { " The other side was found at \($0.address) (\($0.kind))." } ?? ""
        return "Secured by SRTP with keys by \(keying), \(suite)." + way
            + (reasons.isEmpty ? "" : " Refused: \(reasons).")
    }
}

extension CallReport {
    /// The report as JSON and as a table, with how the sound was secured.
    func shown(_ security: CallSecurity?) -> (json: JSONValue, text: String) {
        guard case .object(let members) = json else { return (json, table) }
        let text = table + (security.map { $0.text + "\n" } ?? "")
        return (.object(members + [("srtp", security?.json ?? .null)]), text)
    }
}
