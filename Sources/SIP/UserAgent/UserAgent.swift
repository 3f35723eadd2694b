package import CallBasics

/// A user agent: it calls and is called, registers, asks and tells; bytes, answers about names, time and wishes go in.
///
///     sockets, names, time ──handle, accept──►           ──poll──► open, send, close, ask
///     user ──call, answer, hold, hangUp, send──►         ──poll──► event, to the user
///
/// After each call, `poll` until it is nil. It owns no clock, socket, thread or random source: the same seed and the same
/// calls give the same bytes.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3261
package struct UserAgent: SIPElement {
    package typealias Output = ElementOutput<AgentEvent>

    package let configuration: AgentConfiguration
    let timers: TransactionTimers
    var transactions: TransactionTable
    var flows: FlowTable
    var resolver: Resolver
    var closed = ClosedTargets()
    var generator: SecretGenerator
    var errands = SlotTable<ErrandID, Errand>()
    var errandOfTransaction: [TransactionID: ErrandID] = [:]
    var errandOfLookup: [Resolver.LookupID: ErrandID] = [:]
    var calls = SlotTable<CallHandle, Call>()
    var callOfDialog: [DialogID: CallHandle] = [:]
    var callOfTransaction: [TransactionID: CallHandle] = [:]
    var endedDialogs = EndedDialogs()
    /// How many calls of an address ring.
    private var ringing: [SocketAddress: Int] = [:]
    var accounts = SlotTable<AccountHandle, Account>()
    var subscriptions = SlotTable<SubscriptionHandle, Subscription>()
    var subscriptionOfKey: [ByteKey: SubscriptionHandle] = [:]
    var rooms = SlotTable<RoomHandle, Room>()
    var roomOfKey: [ByteKey: RoomHandle] = [:]
    /// Whether there is a network.
    var isReachable = true
    /// When calls end for which the network has not come back.
    var networkDeadline: MediaTime?
    private var outputs = OutputQueue<Output>()
    /// Messages that came and left, repeats among them.
    package private(set) var receivedCount = 0
    package private(set) var sentCount = 0
    /// Own 2xx that were sent once more because their ACK did not come.
    var answerRepeatCount = 0

    /// The seed should not be guessed by others.
    package init(
        _ configuration: AgentConfiguration,
        seed: UInt64,
        timers: TransactionTimers = TransactionTimers(),
        flowTimers: FlowTimers = FlowTimers(),
        limits: FlowLimits = FlowLimits(),
        transactionLimits: TransactionTable.Limits = TransactionTable.Limits()
    ) {
        var generator = SecretGenerator(seed: seed)
        (self.configuration, self.timers) = (configuration, timers)
        transactions = TransactionTable(seed: generator.next(), timers: timers, limits: transactionLimits)
        flows = FlowTable(seed: generator.next(), timers: flowTimers, limits: limits)
        resolver = Resolver(seed: generator.next())
        self.generator = generator
    }

    /// When `handleTimeout` is to be called; nil when nothing waits for time.
    package var deadline: MediaTime? {
        let inner = earlier(transactions.deadline, flows.deadline)
        let own = earlier(earlier(errands.deadline, calls.deadline), earlier(accounts.deadline, subscriptions.deadline))
        return earlier(earlier(inner, own), networkDeadline)
    }

    /// How many entries each table has.
    package var counts: AgentCounts {
        var counts = AgentCounts()
        (counts.transactions, counts.flows, counts.lookups) = (transactions.counts, flows.counts, resolver.counts)
        (counts.errands, counts.calls, counts.accounts) = (errands.count, calls.count, accounts.count)
        (counts.subscriptions, counts.rooms) = (subscriptions.count, rooms.count)
        (counts.dialogs, counts.sources) = (callOfDialog.count, ringing.count)
        counts.names =
            errandOfTransaction.count + errandOfLookup.count + callOfTransaction.count
            + subscriptionOfKey.count + roomOfKey.count
        counts.outputs = outputs.count
        return counts
    }

    /// Messages that were sent once more because time went by.
    package var repeatCount: Int { transactions.repeatCount + answerRepeatCount }

    /// Requests that wait for their final response; an INVITE that was answered does not.
    package var openRequestCount: Int { errands.names.count { errands[$0]?.acknowledgements.isEmpty == true } }

    /// The Call-ID of a call; nil when it has ended.
    package func callID(of handle: CallHandle) -> String? { calls[handle]?.callID.text }

    /// The own address that the other side of a call knows; nil before it was reached, and once the call has ended.
    package func localAddress(of handle: CallHandle) -> SocketAddress? {
        calls[handle].flatMap { ($0.invite?.flow ?? $0.dialog?.flow)?.local }
    }

    /// The next thing to do; nil when all is done.
    package mutating func poll() -> Output? { outputs.poll() }

    /// Tells an event; what happens to the call of a room, its room tells.
    mutating func tell(_ event: AgentEvent) {
        if let handle = event.call, calls[handle]?.room != nil { return }
        outputs.append(.event(event))
    }

    // MARK: Sockets, names, time

    /// Says which own addresses others can be told for a transport.
    package mutating func setLocalAddresses(
        _ addresses: [SocketAddress],
        of transport: Flow.Transport,
        at now: MediaTime
    ) {
        flows.setLocalAddresses(addresses, of: transport)
        noteMoved()
        settle(at: now)
        // What could not leave from the address of before does not wait for its time.
        for handle in accounts.names where accounts[handle]?.registration?.isToBeTriedAgain ?? false {
            refresh(handle, at: now)
        }
    }

    /// Takes a connection that somebody made to an own address; nil when there are too many: close it.
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
        case .timeout: return handleTimeout(at: now)
        }
        settle(at: now)
    }

    /// No connection is trusted any more, and accounts register anew.
    package mutating func handleAbsence(at now: MediaTime) {
        flows.suspectAll(at: now)
        noteMoved()
        for handle in accounts.names { refresh(handle, at: now) }
        settle(at: now)
    }

    private mutating func handleTimeout(at now: MediaTime) {
        transactions.handleTimeout(at: now)
        flows.handleTimeout(at: now)
        settle(at: now)
        while let id = errands.due(at: now) { handleTimeout(of: id, at: now) }
        while let handle = calls.due(at: now) { handleTimeout(of: handle, at: now) }
        while let handle = accounts.due(at: now) { handleTimeout(of: handle, at: now) }
        while let handle = subscriptions.due(at: now) { handleTimeout(of: handle, at: now) }
        handleNetworkTimeout(at: now)
        settle(at: now)
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

    private mutating func handle(_ output: TransactionTable.Output, at now: MediaTime) {
        switch output {
        case .send(let bytes, let flow): send(bytes, on: flow, at: now)
        case .request(let request, let transaction, let flow): receive(request, transaction, on: flow, at: now)
        case .acknowledgement(let ack, _, let flow): receiveAck(ack, on: flow, at: now)
        case .cancelled(let transaction, let cancel): receiveCancel(cancel, of: transaction, at: now)
        case .response(let response, let transaction, let flow):
            guard let id = errandOfTransaction[transaction] else { return }
            receive(response, of: id, on: flow, at: now)
        case .failure(let transaction, let failure):
            if let id = errandOfTransaction[transaction] { fail(id, failure, at: now) }
            if let handle = callOfTransaction[transaction] { handleLostAnswer(of: handle, at: now) }
        }
    }

    /// Sends by a flow; when it carries nothing, the transactions on it end.
    mutating func send(_ bytes: [UInt8], on flow: Flow, at now: MediaTime) {
        if !flows.send(bytes, on: flow, at: now) { transactions.handleTransportError(on: flow, at: now) }
    }

    private mutating func handle(_ output: FlowTable.Output, at now: MediaTime) {
        switch output {
        case .open(let flow, let name): outputs.append(.open(flow, tlsName: name))
        case .send(let bytes, let flow):
            sentCount += 1
            outputs.append(.send(bytes, flow))
        case .close(let flow): outputs.append(.close(flow))
        case .message(let message, let flow):
            receivedCount += 1
            transactions.receive(message, on: flow, at: now)
        case .died(let flow, let end, let isProven):
            transactions.handleTransportError(on: flow, at: now)
            handleDeath(of: flow, end, isProven: isProven, at: now)
        }
    }

    private mutating func handle(_ output: Resolver.Output, at now: MediaTime) {
        switch output {
        case .ask(let question): outputs.append(.ask(question))
        case .resolved(let lookup, let resolution):
            guard let id = errandOfLookup.removeValue(forKey: lookup) else { return }
            resolved(id, resolution, at: now)
        case .failed(let lookup, let error):
            guard let id = errandOfLookup.removeValue(forKey: lookup) else { return }
            end(id, .unresolved(error), at: now)
        }
    }

    // MARK: Small things

    func mayRing(_ flow: Flow) -> Bool {
        calls.count < configuration.callCount
            && ringing[flow.remote.with(port: 0), default: 0] < configuration.ringingPerSource
    }

    /// Notes that a call of an address rings, or does not any more.
    mutating func noteRinging(_ flow: Flow, by change: Int) {
        let source = flow.remote.with(port: 0)
        let count = ringing[source, default: 0] + change
        ringing[source] = count == 0 ? nil : count
    }

    /// A word that no other message has: 128 pseudo-random bits.
    mutating func makeWord() -> Bytes {
        var word: [UInt8] = []
        word.reserveCapacity(32)
        word.append(hexadecimal: generator.next())
        word.append(hexadecimal: generator.next())
        return word[...]
    }

    /// A tag; two of one stack do not meet.
    mutating func makeTag() -> Bytes { generator.next().hexadecimal }

    /// The own Contact on a flow; a `sips:` URI where it is to be reached by TLS alone (RFC 3261, section 8.1.1.8).
    func contact(
        on flow: Flow,
        at publicAddress: SocketAddress? = nil,
        user: Bytes?,
        isSecure: @autoclosure () -> Bool = false
    ) -> NameAddress? {
        let address = configuration.advertised ?? publicAddress ?? flow.local
        let isSecure = flow.transport == .tls && isSecure()
        var text = Array((isSecure ? "<sips:" : "<sip:").utf8)
        if let user { text += user + [0x40] }
        text += address.sentBy
        text.append(.colon)
        text.append(decimal: address.port)
        // "sips" says it already (RFC 5630, section 3.1.4).
        if flow.transport != .udp, !isSecure {
            text += ";transport=\(flow.transport == .tcp ? "tcp" : "tls")".utf8
        }
        text.append(.greater)
        return try? NameAddress(parsing: text[...])
    }
}

/// How many entries each table of a user agent has; all are 0 when all is over, but accounts, rooms that this side is a member of, and
/// answers of names that are kept.
package struct AgentCounts: Hashable, Sendable {
    package var transactions = TransactionCounts()
    package var flows = FlowCounts()
    package var lookups = ResolverCounts()
    /// Requests on their way, and INVITEs whose 2xx may come again.
    package var errands = 0
    package var calls = 0
    package var accounts = 0
    package var subscriptions = 0
    package var rooms = 0
    package var dialogs = 0
    /// Addresses whose calls ring.
    package var sources = 0
    /// Names of transactions and lookups that somebody waits for.
    package var names = 0
    /// What was not polled.
    package var outputs = 0
}
