internal import CallBasics

/// The way from a URI to its targets, walked anew from its start with each fact that was learnt.
///
///     address ─────────────────────────────────────────► targets
///     name, port ──────────────────────► A, AAAA ──────► targets
///     name ─► NAPTR ─► SRV ────────────► A, AAAA ──────► targets
///              └─ no ─► SRV of each transport ─ no ─► A, AAAA of the name
///
/// The records for further transports follow behind those of the first, so that a request has somewhere to go when the
/// first one fails. It takes few steps, and each asks for a bounded number of names.
/// Source: RFC 3263, section 4
struct TargetSearch: Sendable {
    enum Step: Sendable {
        case ask([DNSQuestion])
        case found(Resolution)
        case failed(ResolutionError)
    }

    /// A server whose addresses are to be learnt.
    private struct Hop {
        var transport: Flow.Transport
        var name: DNSName
        var port: UInt16?
    }

    /// How many pointers, servers, addresses of a server and targets a URI has at most.
    static let (pointerCount, hopCount, addressCount, targetCount) = (4, 16, 8, 64)

    private let plan: TargetPlan
    /// What weights are drawn by; kept, so that each walk draws the same.
    private let generator: SeededGenerator
    private var facts: [DNSQuestion: KnownFact] = [:]

    init(_ plan: TargetPlan, seed: UInt64) { (self.plan, generator) = (plan, SeededGenerator(seed: seed)) }

    func knows(_ question: DNSQuestion) -> Bool { facts[question] != nil }

    mutating func learn(_ known: KnownFact, about question: DNSQuestion) { facts[question] = known }

    /// What is to be asked next, or what the facts lead to.
    func step() -> Step {
        guard case .name(let name) = plan.host else { return addressStep() }
        if plan.port != nil { return hopStep(fallback(name) { _ in false }) }
        switch services(of: name) {
        case .unknown(let questions): return .ask(questions)
        case .known(let services): return serviceStep(services, name)
        }
    }

    /// A value, or what has to be asked before it is known.
    private enum Partial<Value> {
        case known(Value)
        case unknown([DNSQuestion])
    }

    private func addressStep() -> Step {
        guard case .address(let address) = plan.host, let transport = plan.fallback(without: { _ in false }) else {
            return .failed(ResolutionError(.noTransport, "No transport may be used. Allow one."))
        }
        return .found(Resolution(targets: [plan.target(transport, address, port: plan.port)]))
    }

    /// Which SRV records lead on, by transport.
    private func services(of name: DNSName) -> Partial<[(transport: Flow.Transport, name: DNSName)]> {
        let byTransport = plan.transports.compactMap { transport in
            name.below(transport.serviceLabels).map { (transport: transport, name: $0) }
        }
        guard plan.named == nil, plan.usesPointers else { return .known(byTransport) }
        let question = DNSQuestion(name, .naptr)
        guard let known = facts[question] else { return .unknown([question]) }
        // Where pointers cannot be asked for, the names that they would lead to most often still can.
        guard case .values(let values) = known.fact else { return .known(byTransport) }
        let pointers = values.compactMap { value -> PointerRecord? in
            if case .pointer(let record) = value { record } else { nil }
        }
        let usable = pointers.sorted { ($0.order, $0.preference) < ($1.order, $1.preference) }.compactMap { pointer in
            pointer.transport.map { (transport: $0, name: pointer.replacement) }
        }
        .filter { plan.transports.contains($0.transport) && !$0.name.isRoot }
        return .known(usable.isEmpty ? byTransport : Array(usable.prefix(Self.pointerCount)))
    }

    private func serviceStep(_ services: [(transport: Flow.Transport, name: DNSName)], _ name: DNSName) -> Step {
        let missing = services.map { DNSQuestion($0.name, .srv) }.filter { facts[$0] == nil }
        guard missing.isEmpty else { return .ask(missing) }
        var generator = self.generator
        var hops: [Hop] = []
        var denied: Set<Flow.Transport> = []
        for service in services {
            let records = self.records(of: service.name)
            let there = records.filter { !$0.target.isRoot && $0.port > 0 }
            if there.isEmpty, !records.isEmpty { denied.insert(service.transport) }
            hops += there.ordered(by: &generator).map {
                Hop(transport: service.transport, name: $0.target, port: $0.port)
            }
        }
        return hopStep(hops.isEmpty ? fallback(name) { denied.contains($0) } : hops)
    }

    private func records(of name: DNSName) -> [ServiceRecord] {
        guard case .values(let values)? = facts[DNSQuestion(name, .srv)]?.fact else { return [] }
        return values.compactMap { if case .service(let record) = $0 { record } else { nil } }
    }

    private func fallback(_ name: DNSName, _ isDenied: (Flow.Transport) -> Bool) -> [Hop] {
        plan.fallback(without: isDenied).map { [Hop(transport: $0, name: name, port: plan.port)] } ?? []
    }

    /// A and AAAA of all servers are asked for at once.
    private func hopStep(_ hops: [Hop]) -> Step {
        let hops = hops.prefix(Self.hopCount)
        guard !hops.isEmpty else {
            return .failed(
                ResolutionError(
                    .noService,
                    "The names of \(plan.domain) say that it has no such service. Call another."
                )
            )
        }
        let questions = hops.flatMap { self.questions(for: $0.name) }
        let missing = questions.filter { facts[$0] == nil }.uniqued()
        guard missing.isEmpty else { return .ask(missing) }
        let targets = hops.flatMap { hop in
            addresses(of: hop.name).map { plan.target(hop.transport, $0, port: hop.port) }
        }
        guard !targets.isEmpty else { return .failed(failure(hops.map(\.name))) }
        return .found(
            Resolution(
                targets: Array(targets.uniqued().prefix(Self.targetCount)),
                expires: facts.values.compactMap(\.expiryOfValues).min(),
                isStale: facts.values.contains(where: \.isStale)
            )
        )
    }

    private func questions(for name: DNSName) -> [DNSQuestion] {
        plan.families.map { DNSQuestion(name, $0 == .ipv4 ? .a : .aaaa) }
    }

    /// The addresses of a server, families in turn, so that a family that leads nowhere holds up nobody for long.
    ///
    /// Source: RFC 7984, section 4; RFC 8305, section 4
    private func addresses(of name: DNSName) -> [SocketAddress] {
        let families = questions(for: name).map { question -> [SocketAddress] in
            guard case .values(let values)? = facts[question]?.fact else { return [] }
            return values.compactMap { if case .address(let address) = $0 { address } else { nil } }
        }
        let longest = families.map(\.count).max() ?? 0
        return Array(
            (0..<longest).flatMap { index in families.compactMap { index < $0.count ? $0[index] : nil } }
                .prefix(Self.addressCount)
        )
    }

    private func failure(_ names: [DNSName]) -> ResolutionError {
        if facts.values.contains(where: { $0.fact == .unknown }) {
            return ResolutionError(
                .namesFailed,
                "Nobody told the addresses of \(plan.domain). Look at the network and its name servers."
            )
        }
        let isMissing = names.allSatisfy { name in
            questions(for: name).contains { facts[$0]?.fact == .noSuchName }
        }
        let way = "\(names[0])" == "\(plan.domain)" ? "" : ", to which \(plan.domain) leads"
        return isMissing
            ? ResolutionError(.noSuchName, "There is no host \(names[0])\(way). Correct it.")
            : ResolutionError(.noAddress, "No server of \(plan.domain) has an address that may be used. Add one.")
    }
}

extension Array where Element: Hashable {
    /// The elements, each where it first stands.
    fileprivate func uniqued() -> [Element] {
        var seen: Set<Element> = []
        return filter { seen.insert($0).inserted }
    }
}
