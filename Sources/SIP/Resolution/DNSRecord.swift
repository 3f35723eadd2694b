package import CallBasics

/// What is asked of the names.
package struct DNSQuestion: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case a, aaaa, srv, naptr
    }

    package var name: DNSName
    package var kind: Kind

    package init(_ name: DNSName, _ kind: Kind) { (self.name, self.kind) = (name, kind) }
}

/// One record of an answer.
package struct DNSRecord: Hashable, Sendable {
    package enum Value: Hashable, Sendable {
        /// Of an A or AAAA record; its port says nothing.
        case address(SocketAddress)
        case service(ServiceRecord)
        case pointer(PointerRecord)
        /// A CNAME: the name that has the records.
        case alias(DNSName)

        /// Whether it answers a question of a kind; an IPv4 address within an AAAA record does not.
        func fits(_ kind: DNSQuestion.Kind) -> Bool {
            switch self {
            case .address(let address): kind == (address.isIPv4 ? .a : .aaaa) && !address.isUnspecified
            case .service: kind == .srv
            case .pointer: kind == .naptr
            case .alias: false
            }
        }
    }

    /// Whose record it is.
    package var owner: DNSName
    package var timeToLiveSeconds: UInt32
    package var value: Value

    package init(_ owner: DNSName, seconds: UInt32, _ value: Value) {
        (self.owner, timeToLiveSeconds, self.value) = (owner, seconds, value)
    }
}

/// An SRV record: a server of a service.
///
/// Source: RFC 2782
package struct ServiceRecord: Hashable, Sendable {
    /// Those with the lowest are tried first.
    package var priority: UInt16
    /// Its share of the requests among those of one priority.
    package var weight: UInt16
    package var port: UInt16
    package var target: DNSName

    package init(priority: UInt16, weight: UInt16, port: UInt16, target: DNSName) {
        (self.priority, self.weight, self.port, self.target) = (priority, weight, port, target)
    }
}

/// A NAPTR record, as far as it leads to SRV records.
///
/// Source: RFC 3403, section 4.1; RFC 3263, section 4.1
package struct PointerRecord: Hashable, Sendable {
    package var order: UInt16
    package var preference: UInt16
    package var flags: String
    package var service: String
    package var replacement: DNSName

    package init(order: UInt16, preference: UInt16, flags: String, service: String, replacement: DNSName) {
        (self.order, self.preference, self.flags) = (order, preference, flags)
        (self.service, self.replacement) = (service, replacement)
    }

    /// What it leads to; nil when that is no SRV record, or no transport that is known.
    var transport: Flow.Transport? {
        guard flags.lowercased() == "s" else { return nil }
        switch service.lowercased() {
        case "sip+d2u": return .udp
        case "sip+d2t": return .tcp
        case "sips+d2t": return .tls
        default: return nil
        }
    }
}

/// What came of a question.
package enum DNSAnswer: Hashable, Sendable {
    /// The records of the answer section, as they came: wrong, foreign and far too many ones do no harm.
    case records([DNSRecord])
    /// There is no such name; for how long that holds, when the server says it.
    case noSuchName(Duration?)
    /// The name has no record of that kind; for how long that holds, when the server says it.
    case noData(Duration?)
    /// The server could not answer.
    case failure
    /// Nobody answered.
    case timeout
}
