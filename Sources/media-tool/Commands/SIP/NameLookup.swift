internal import CallBasics
import MediaEngine
import SIP
import SIPTransport

/// The way from a URI to its targets, with the records that lead there.
struct NameLookup {
    /// Who knows names.
    enum Names {
        case servers(DNSClient)
        case file(ZoneFile)

        func answer(to question: DNSQuestion) async -> DNSAnswer {
            switch self {
            case .servers(let client): await client.ask(question)
            case .file(let zone): zone.answer(to: question)
            }
        }
    }

    private var resolver: Resolver
    private(set) var records: [DNSRecord] = []

    init(seed: UInt64) { resolver = Resolver(seed: seed) }

    /// The targets of `uri`.
    ///
    /// - Throws: `ToolFailure` when there is none.
    mutating func resolve(_ uri: SIPURI, by names: Names) async throws -> Resolution {
        _ = resolver.resolve(uri, ResolutionWishes(), at: MonotonicClock.current)
        while true {
            var questions: [DNSQuestion] = []
            while let output = resolver.poll() {
                switch output {
                case .ask(let question): questions.append(question)
                case .resolved(_, let resolution): return resolution
                case .failed(_, let error): throw ToolFailure(error.message)
                }
            }
            let answers = await withTaskGroup(of: (DNSQuestion, DNSAnswer).self) { group in
                for question in questions { group.addTask { (question, await names.answer(to: question)) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for question in questions {
                guard let answer = answers.first(where: { $0.0 == question })?.1 else { continue }
                if case .records(let found) = answer { note(found) }
                resolver.receive(answer, to: question, at: MonotonicClock.current)
            }
        }
    }

    private mutating func note(_ found: [DNSRecord]) {
        for record in found where !records.contains(record) { records.append(record) }
    }

    // MARK: What is told

    /// What led to a target.
    private struct Origin {
        /// "literal" when it was in the URI; else the first kind of record on the way.
        var kind = "literal"
        var service: ServiceRecord?
        /// How long all records on the way hold.
        var seconds: UInt32?
    }

    private func origin(of target: Target) -> Origin {
        guard let host = records.first(where: { $0.value == .address(target.address.with(port: 0)) }) else {
            return Origin()
        }
        let aliases = records.filter { $0.value == .alias(host.owner) }
        let names = aliases.map(\.owner) + [host.owner]
        let life = aliases.reduce(host.timeToLiveSeconds) { min($0, $1.timeToLiveSeconds) }
        for record in records where record.owner.description.hasPrefix(target.transport.serviceLabels) {
            guard case .service(let service) = record.value, service.port == target.address.port,
                names.contains(service.target)
            else { continue }
            let hasPointer = records.contains { other in
                if case .pointer(let pointer) = other.value { pointer.replacement == record.owner } else { false }
            }
            let kind = hasPointer ? "NAPTR" : "SRV"
            return Origin(kind: kind, service: service, seconds: min(life, record.timeToLiveSeconds))
        }
        return Origin(kind: target.address.isIPv4 ? "A" : "AAAA", seconds: life)
    }

    /// The result with the keys that scripts rely on.
    func json(_ uri: String, _ resolution: Resolution, _ milliseconds: Double) -> JSONValue {
        [
            "uri": .string(uri),
            "targets": .array(
                resolution.targets.map { target in
                    let origin = origin(of: target)
                    return [
                        "transport": .string(target.transport.text), "address": .string(target.address.host),
                        "port": .integer(Int(target.address.port)),
                        "priority": origin.service.map { .integer(Int($0.priority)) } ?? .null,
                        "weight": origin.service.map { .integer(Int($0.weight)) } ?? .null,
                        "ttl": origin.seconds.map { .integer(Int($0)) } ?? .null,
                        "from": .string(origin.kind), "tlsName": JSONValue(target.tlsName),
                    ]
                }
            ),
            "records": JSONValue(records.map(\.text)),
            "ms": .number((milliseconds * 10).rounded() / 10),
        ]
    }

    /// The targets as a table.
    func text(_ resolution: Resolution) -> String {
        let rows = resolution.targets.map { target in
            let origin = origin(of: target)
            let service = origin.service.map { "\($0.priority) / \($0.weight)" } ?? ""
            return [
                target.transport.text, "\(target.address)", service, origin.seconds.map { "\($0)" } ?? "", origin.kind,
                target.tlsName?.printable ?? "",
            ]
        }
        return Table.text([["TRANSPORT", "ADDRESS", "PRIORITY / WEIGHT", "TTL S", "FROM", "TLS NAME"]] + rows)
    }
}

extension Flow.Transport {
    fileprivate var text: String {
        switch self {
        case .udp: "udp"
        case .tcp: "tcp"
        case .tls: "tls"
        }
    }

    /// What its SRV records have before the domain.
    fileprivate var serviceLabels: String {
        switch self {
        case .udp: "_sip._udp."
        case .tcp: "_sip._tcp."
        case .tls: "_sips._tcp."
        }
    }
}

extension DNSRecord {
    /// The record as a zone file writes it.
    fileprivate var text: String {
        let value =
            switch value {
            case .address(let address): "\(address.isIPv4 ? "A" : "AAAA") \(address.host)"
            case .alias(let name): "CNAME \(name)"
            case .service(let service): "SRV \(service.priority) \(service.weight) \(service.port) \(service.target)"
            case .pointer(let pointer):
                "NAPTR \(pointer.order) \(pointer.preference) \"\(pointer.flags)\" \"\(pointer.service)\" \"\" \(pointer.replacement)"
            }
        return "\(owner) \(timeToLiveSeconds) \(value)"
    }
}
