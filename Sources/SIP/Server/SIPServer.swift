package import CallBasics

/// A registrar and proxy of one domain, for tests and demonstrations: users register at it, and reach each other through it.
///
///     REGISTER ──► digest ──► LocationTable
///     requests ──► digest ──► targets ──► one branch each ──► the best answer goes back
///     within calls ──► by the Record-Route that it signed ──► where the Request-URI says
///
/// It carries nothing for strangers: a request has to be for one of its users, from one, or of a call that was let in. It
/// keeps no message for later, and owns no clock, socket, thread or random source.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3261, sections 10 and 16; RFC 5393; RFC 5658
package struct SIPServer: SIPElement {
    package let configuration: ServerConfiguration
    let timers: TransactionTimers
    var transactions: TransactionTable
    var flows: FlowTable
    var resolver: Resolver
    var closed = ClosedTargets()
    var generator: SecretGenerator
    /// Signs the ways of calls, and marks those that a request has gone.
    let key: [UInt8]
    var locals: Set<SocketAddress> = []
    var registrarDigest: DigestServer
    var proxyDigest: DigestServer
    var locations = LocationTable()
    var bindingOrder: UInt64 = 0
    var forwards = SlotTable<ForwardID, Forward>()
    var branches = SlotTable<BranchID, Branch>()
    var forwardOfTransaction: [TransactionID: ForwardID] = [:]
    var branchOfTransaction: [TransactionID: BranchID] = [:]
    var branchOfLookup: [Resolver.LookupID: BranchID] = [:]
    /// ACKs that wait for names.
    var waitingAckCount = 0
    /// The ways of calls that wait for a phone of a user to wake.
    var parkedOfUser: [String: [BranchID]] = [:]
    var texts = TextStore()
    var script: [ServerRule]
    var delayed = SlotTable<DelayedID, DelayedMessage>()
    private var outputs = OutputQueue<ElementOutput<ServerEvent>>()
    /// Requests that came, repeats and ACKs not among them, and INVITEs and MESSAGEs of them.
    package internal(set) var requestCount = 0
    package internal(set) var callCount = 0
    package internal(set) var messageCount = 0

    /// The seed should not be guessed by others.
    package init(
        _ configuration: ServerConfiguration,
        seed: UInt64,
        timers: TransactionTimers = TransactionTimers(),
        transactionLimits: TransactionTable.Limits = TransactionTable.Limits()
    ) {
        var generator = SecretGenerator(seed: seed)
        (self.configuration, self.timers, script) = (configuration, timers, configuration.script)
        transactions = TransactionTable(
            seed: generator.next(),
            role: .proxy,
            timers: timers,
            limits: transactionLimits
        )
        flows = FlowTable(seed: generator.next())
        resolver = Resolver(seed: generator.next())
        key = generator.makeKey()
        var digest = DigestServer.Configuration(realm: configuration.domain)
        digest.algorithms = configuration.algorithms
        registrarDigest = DigestServer(digest, key: generator.makeKey())
        digest.kind = .proxy
        proxyDigest = DigestServer(digest, key: generator.makeKey())
        self.generator = generator
    }

    package var deadline: MediaTime? {
        let inner = earlier(transactions.deadline, flows.deadline)
        let own = earlier(earlier(branches.deadline, delayed.deadline), earlier(locations.deadline, texts.deadline))
        return earlier(inner, own)
    }

    /// How many entries each table has.
    package var counts: ServerCounts {
        var counts = ServerCounts()
        (counts.transactions, counts.flows, counts.lookups) = (transactions.counts, flows.counts, resolver.counts)
        (counts.bindings, counts.forwards, counts.branches) = (locations.count, forwards.count, branches.count)
        counts.names = forwardOfTransaction.count + branchOfTransaction.count + branchOfLookup.count
        (counts.delayed, counts.outputs) = (delayed.count, outputs.count)
        (counts.parked, counts.texts) = (parkedOfUser.values.reduce(0) { $0 + $1.count }, texts.count)
        return counts
    }

    package mutating func poll() -> ElementOutput<ServerEvent>? { outputs.poll() }

    mutating func tell(_ event: ServerEvent) { outputs.append(.event(event)) }

    package mutating func setLocalAddresses(
        _ addresses: [SocketAddress],
        of transport: Flow.Transport,
        at now: MediaTime
    ) {
        locals.formUnion(addresses)
        flows.setLocalAddresses(addresses, of: transport)
        settle(at: now)
    }

    package mutating func accept(
        _ transport: Flow.Transport,
        local: SocketAddress,
        remote: SocketAddress,
        at now: MediaTime
    ) -> Flow? {
        flows.accept(transport, local: local, remote: remote, at: now)
    }

    package mutating func handle(_ input: ElementInput, at now: MediaTime) {
        switch input {
        case .opened(let flow): flows.handleOpened(flow, at: now)
        case .failed(let flow): flows.handleFailed(flow, at: now)
        case .bytes(let bytes, let flow): flows.receive(bytes, on: flow, at: now)
        case .datagram(let bytes, let local, let remote):
            flows.receive(datagram: bytes, local: local, remote: remote, at: now)
        case .answer(let answer, let question): resolver.receive(answer, to: question, at: now)
        case .timeout: handleTimeout(at: now)
        }
        settle(at: now)
    }

    private mutating func handleTimeout(at now: MediaTime) {
        transactions.handleTimeout(at: now)
        flows.handleTimeout(at: now)
        settle(at: now)
        while let id = branches.due(at: now) { handleTimeout(of: id, at: now) }
        while let binding = locations.removeExpired(at: now) {
            tell(.binding(user: binding.user, contact: binding.contact.uri.withoutPush, seconds: 0))
        }
        texts.removeExpired(at: now)
        while let id = delayed.due(at: now), let message = delayed.remove(id) {
            transactions.receive(message.message, on: message.flow, at: now)
        }
    }

    /// Carries what one part says to the others, until none has anything to say.
    mutating func settle(at now: MediaTime) {
        while true {
            if let output = transactions.poll() {
                handle(output, at: now)
            } else if let output = flows.poll() {
                handle(output, at: now)
            } else if let output = resolver.poll() {
                handle(output, at: now)
            } else {
                return
            }
        }
    }

    mutating func handle(_ output: TransactionTable.Output, at now: MediaTime) {
        switch output {
        case .send(let bytes, let flow): send(bytes, on: flow, at: now)
        case .request(let request, let transaction, let flow): receive(request, transaction, on: flow, at: now)
        case .acknowledgement(let ack, _, let flow): receiveAck(ack, on: flow, at: now)
        case .cancelled(let transaction, let cancel):
            takeBack(transaction, reason: try? cancel.value(.reason), at: now)
        case .response(let response, let transaction, let flow):
            if let id = branchOfTransaction[transaction] { receive(response, of: id, on: flow, at: now) }
        case .failure(let transaction, let failure):
            if let id = branchOfTransaction[transaction] { fail(id, failure, at: now) }
            // Nobody waits for an answer any more.
            takeBack(transaction, at: now)
        }
    }

    /// Sends by a flow; when it carries nothing, the transactions on it end.
    mutating func send(_ bytes: [UInt8], on flow: Flow, at now: MediaTime) {
        if !flows.send(bytes, on: flow, at: now) { transactions.handleTransportError(on: flow, at: now) }
    }

    private mutating func handle(_ output: FlowTable.Output, at now: MediaTime) {
        switch output {
        case .open(let flow, let name): outputs.append(.open(flow, tlsName: name))
        case .send(let bytes, let flow): outputs.append(.send(bytes, flow))
        case .close(let flow): outputs.append(.close(flow))
        case .message(let message, let flow):
            if !isHeldBack(message, on: flow, at: now) { transactions.receive(message, on: flow, at: now) }
        case .died(let flow, _, _): transactions.handleTransportError(on: flow, at: now)
        }
    }

    private mutating func handle(_ output: Resolver.Output, at now: MediaTime) {
        switch output {
        case .ask(let question): outputs.append(.ask(question))
        case .resolved(let lookup, let resolution):
            if let id = branchOfLookup.removeValue(forKey: lookup) { resolved(id, resolution, at: now) }
        case .failed(let lookup, _):
            if let id = branchOfLookup.removeValue(forKey: lookup) { end(id, status: 404, at: now) }
        }
    }

    // MARK: What is its own

    /// Whether a URI is of the domain, or of one of its own addresses.
    func isOwn(_ uri: SIPURI) -> Bool {
        guard uri.scheme == .sip || uri.scheme == .sips else { return false }
        if isSameHost(uri.hostBytes, Bytes(configuration.domain)) {
            return uri.port == nil || locals.contains { $0.port == uri.port }
        }
        return isOwn(uri.hostBytes, uri.port)
    }

    /// Whether whoever has an address says to be of the domain, whatever the port and a final dot.
    func claimsDomain(_ uri: SIPURI) -> Bool {
        let host = uri.hostBytes
        let isDomain = isSameHost(host.last == UInt8(ascii: ".") ? host.dropLast() : host, Bytes(configuration.domain))
        // At a number others may have other ports.
        return isOwn(uri) || isDomain && HostAddress(Bytes(configuration.domain)) == nil
    }

    /// Whether an address is one that it listens on.
    func isOwn(_ host: Bytes, _ port: UInt16?) -> Bool {
        locals.contains { $0.port == port ?? 5060 && isSameHost(host, $0.sentBy) }
    }

    /// The user of an address of the domain; nil when there is none of that name.
    func user(of uri: SIPURI) -> ServerUser? {
        guard let name = uri.user else { return nil }
        guard let users = configuration.users else { return ServerUser(nil) }
        return users[name]
    }
}

extension SecretGenerator {
    /// 16 bytes that nobody guesses.
    mutating func makeKey() -> [UInt8] {
        (0..<2).flatMap { _ in withUnsafeBytes(of: next()) { Array($0) } }
    }
}
