package import CallBasics
package import SIP

/// Records out of a file, in place of name servers: for tests, and for networks without any.
///
///     _sip._tcp.example.org  SRV    10 60 5060 a.example.org
///     a.example.org          A      192.0.2.7
///     a.example.org          AAAA   2001:db8::7
///     www.example.org        CNAME  a.example.org
///     example.org            NAPTR  10 50 "s" "SIP+D2T" "" _sip._tcp.example.org
///
/// A number before the type is the time to live in seconds, 60 where there is none. What stands behind `#` or `;` is for people.
package struct ZoneFile: Hashable, Sendable {
    private let records: [DNSRecord]

    /// Reads the records in `text`.
    ///
    /// Throws: `badLine` with its number
    package init(parsing text: String) throws(ZoneFileError) {
        var records: [DNSRecord] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let words = line.prefix { $0 != "#" && $0 != ";" }.split(whereSeparator: \.isWhitespace).map(String.init)
            guard !words.isEmpty else { continue }
            guard let record = Self.record(words) else {
                throw ZoneFileError(
                    .badLine,
                    "Line \(index + 1) of the hosts is no record. Write NAME [SECONDS] A, AAAA, SRV, NAPTR or CNAME and its fields."
                )
            }
            records.append(record)
        }
        self.records = records
    }

    /// What a name server with these records answers.
    package func answer(to question: DNSQuestion) -> DNSAnswer {
        var names: Set<DNSName> = [question.name]
        var isGrowing = true
        while isGrowing {
            isGrowing = false
            for record in records where names.contains(record.owner) {
                if case .alias(let name) = record.value, names.insert(name).inserted { isGrowing = true }
            }
        }
        let found = records.filter { names.contains($0.owner) && $0.value.answers(question.kind) }
        guard found.allSatisfy(\.value.isAlias) else { return .records(found) }
        return records.contains { $0.owner == question.name } ? .noData(nil) : .noSuchName(nil)
    }

    private static func record(_ words: [String]) -> DNSRecord? {
        var words = words[...]
        guard let owner = DNSName(words.removeFirst()) else { return nil }
        var seconds: UInt32 = 60
        if let first = words.first, let number = UInt32(first) {
            seconds = number
            words.removeFirst()
        }
        guard let type = words.popFirst(), let value = value(type.uppercased(), Array(words)) else { return nil }
        return DNSRecord(owner, seconds: seconds, value)
    }

    private static func value(_ type: String, _ fields: [String]) -> DNSRecord.Value? {
        switch (type, fields.count) {
        case ("A", 1), ("AAAA", 1):
            guard let address = SocketAddress(host: fields[0], port: 0), address.isIPv4 == (type == "A") else {
                return nil
            }
            return .address(address)
        case ("CNAME", 1): return DNSName(fields[0]).map { .alias($0) }
        case ("SRV", 4):
            guard let priority = UInt16(fields[0]), let weight = UInt16(fields[1]), let port = UInt16(fields[2]),
                let target = DNSName(fields[3])
            else { return nil }
            return .service(ServiceRecord(priority: priority, weight: weight, port: port, target: target))
        case ("NAPTR", 6):
            let texts = fields[2...4].map { $0.filter { $0 != "\"" } }
            guard let order = UInt16(fields[0]), let preference = UInt16(fields[1]),
                let replacement = DNSName(fields[5])
            else { return nil }
            return .pointer(
                PointerRecord(
                    order: order,
                    preference: preference,
                    flags: texts[0],
                    service: texts[1],
                    replacement: replacement
                )
            )
        default: return nil
        }
    }
}

/// Why a file of records cannot be read.
package typealias ZoneFileError = Failure<ZoneFileFault>

/// What is wrong with a file of records.
package enum ZoneFileFault: Hashable, Sendable {
    case badLine
}

extension DNSRecord.Value {
    fileprivate var isAlias: Bool { if case .alias = self { true } else { false } }

    /// Whether it belongs into an answer to a question of that kind.
    fileprivate func answers(_ kind: DNSQuestion.Kind) -> Bool {
        switch self {
        case .address(let address): kind == (address.isIPv4 ? .a : .aaaa)
        case .service: kind == .srv
        case .pointer: kind == .naptr
        case .alias: true
        }
    }
}
