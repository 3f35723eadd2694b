package import CallBasics

/// All transactions of a stack: messages and time go in, messages to send and messages for the user come out.
///
///     flow ──receive──►              ──poll──► send, to a flow
///     user ──request, respond──►     ──poll──► request, response, failure, to the user
///     time ──handleTimeout──►        ──deadline──► when to call it next
///
/// After each call, `poll` until it is nil. A transaction that ends leaves every table in the same step. Requests that
/// break a rule, that came another way before, or that are too many are answered here; they make no transaction.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3261, section 17; RFC 6026; RFC 4320
package struct TransactionTable: Sendable {
    /// What is refused, so that no one takes all memory.
    package struct Limits: Hashable, Sendable {
        /// Transactions without an answer that requests of one address may have at once, as soon as those of all take an eighth of
        /// the room: a trunk may have many, and leaves room for others.
        package var perSource = 1024
        /// Transactions that received requests may have at once; when there are more, those that were answered first, and wait for
        /// repeats only, make room.
        package var received = 65_536
        /// When a request that is refused may come again.
        package var retryAfterSeconds: UInt32 = 10

        package init() {}
    }

    /// What `poll` gives.
    package enum Output: Sendable {
        /// Bytes that leave by a flow.
        case send([UInt8], Flow)
        /// A new request; answer it by `respond`.
        case request(SIPMessage, TransactionID, Flow)
        /// The ACK to a 2xx; with the transaction when its branch is that of the INVITE, as RFC 2543 had it.
        case acknowledgement(SIPMessage, TransactionID?, Flow)
        /// An INVITE was taken back; that of a user agent has been answered 487.
        case cancelled(TransactionID, SIPMessage)
        /// A response to a request of the user.
        case response(SIPMessage, TransactionID, Flow)
        case failure(TransactionID, TransactionFailure)
    }

    /// Whose transactions they are.
    package enum Role: Hashable, Sendable {
        /// Of a user agent: it answers an INVITE that is taken back, and takes a request once that comes two ways.
        case agent
        /// Of a proxy: both is done where its requests go.
        case proxy
    }

    package let limits: Limits
    let role: Role
    let timers: TransactionTimers
    var slots = TransactionSlots()
    var clients: [ClientKey: Int] = [:]
    var servers: [ServerKey: Int] = [:]
    var merged: [MergeKey: Int] = [:]
    /// How many transactions without an answer an address has, and all.
    private var sources: [SocketAddress: Int] = [:]
    private var unansweredCount = 0
    private var answered = AnsweredQueue()
    private var deadlines = DeadlineQueue()
    private var generator: SecretGenerator
    /// What makes the tags of answers without a transaction, the same for each repeat.
    let tagSeed: UInt64
    private var outputs = OutputQueue<Output>()
    /// Messages that were sent once more because time went by.
    package private(set) var repeatCount = 0
    /// Messages that nothing could be done with: faulty or unexpected responses, requests that cannot be answered.
    package private(set) var droppedCount = 0

    /// The same seed and the same calls give the same bytes; it should not be guessed by others.
    package init(
        seed: UInt64,
        role: Role = .agent,
        timers: TransactionTimers = TransactionTimers(),
        limits: Limits = Limits()
    ) {
        (self.role, self.timers, self.limits) = (role, timers, limits)
        generator = SecretGenerator(seed: seed)
        tagSeed = generator.next()
    }

    /// When `handleTimeout` is to be called; nil when nothing waits for time.
    package var deadline: MediaTime? { deadlines.first?.time }

    /// How many entries each table has.
    package var counts: TransactionCounts {
        var counts = TransactionCounts()
        counts.transactions = slots.count
        counts.clients = clients.count
        counts.servers = servers.count
        counts.merged = merged.count
        counts.sources = sources.count
        counts.answered = answered.count
        counts.deadlines = deadlines.count
        counts.outputs = outputs.count
        return counts
    }

    /// The next thing to do; nil when all is done.
    package mutating func poll() -> Output? { outputs.poll() }

    /// Does what is due; before `deadline` that is nothing.
    package mutating func handleTimeout(at now: MediaTime) {
        while let first = deadlines.first, first.time <= now {
            guard var entry = slots.take(first.slot) else { return }
            let actions = entry.machine.handleTimeout(at: now)
            if actions.contains(.send) { repeatCount += 1 }
            finish(entry, in: first.slot, actions, at: now)
        }
    }

    /// A flow does not carry messages any more; its transactions end, but for calls that were accepted.
    ///
    /// It looks at all transactions.
    package mutating func handleTransportError(on flow: Flow, at now: MediaTime) {
        for slot in slots.indices {
            guard var entry = slots.take(slot) else { continue }
            let actions = entry.flow == flow ? entry.machine.handleTransportError() : []
            finish(entry, in: slot, actions, at: now)
        }
    }

    /// A Via for a request by a flow, with a branch of its own, such as the ACK to a 2xx needs; `mark` stands at its end.
    package mutating func makeVia(on flow: Flow, marked mark: Bytes = []) -> Via {
        Via(
            transport: flow.transport.nameBytes,
            host: flow.local.sentBy,
            port: flow.local.port,
            branch: makeBranch(mark)
        )
    }

    private mutating func makeBranch(_ mark: Bytes) -> Bytes {
        var branch = Array("z9hG4bK".utf8)
        branch.reserveCapacity(branch.count + 32 + mark.count)
        branch.append(hexadecimal: generator.next())
        branch.append(hexadecimal: generator.next())
        branch += mark
        return branch[...]
    }

    /// A word that no other message has: 128 pseudo-random bits.
    mutating func makeWord() -> String {
        String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
    }

    mutating func add(_ output: Output) { outputs.append(output) }
    mutating func drop() { droppedCount += 1 }

    /// Does what the machine asks for, and puts the entry back, or takes it out of every table when it ended.
    ///
    /// `message` is what came or what the user answers.
    mutating func finish(
        _ changed: TransactionEntry,
        in slot: Int,
        _ actions: [TransactionAction],
        message: SIPMessage? = nil,
        at now: MediaTime
    ) {
        var entry = changed
        var isCancelSent = false
        for action in actions {
            switch action {
            case .send: break
            case .sendNew: entry.kept = message?.bytes ?? []
            case .sendTrying: entry.kept = answer(to: entry, status: 100)
            case .sendAck: entry.kept = message.flatMap { acknowledgement(of: entry, to: $0) } ?? []
            case .sendCancel: isCancelSent = true
            case .deliver: deliver(message, of: entry, in: slot)
            case .fail(let failure):
                if !entry.isInternal { add(.failure(entry.id(slot), failure)) }
            }
            switch action {
            case .send, .sendNew, .sendTrying, .sendAck:
                if !entry.kept.isEmpty { add(.send(entry.kept, entry.flow)) }
            case .sendCancel, .deliver, .fail: break
            }
        }
        let request = entry.request
        if entry.machine.isAnswered { settle(&entry, slot) }
        if entry.machine.isTerminated {
            leave(entry, slot)
        } else {
            deadlines.set(slot, to: entry.machine.deadline)
            slots.put(entry, in: slot)
        }
        if isCancelSent, let request { sendCancel(of: request, reason: entry.cancelReason, on: entry.flow, at: now) }
    }

    private mutating func deliver(_ message: SIPMessage?, of entry: TransactionEntry, in slot: Int) {
        guard !entry.isInternal, let message else { return }
        if message.statusCode != nil {
            add(.response(message, entry.id(slot), entry.flow))
        } else {
            add(.acknowledgement(message, entry.id(slot), entry.flow))
        }
    }

    /// Gives back what an entry does not need once it has its answer.
    private mutating func settle(_ entry: inout TransactionEntry, _ slot: Int) {
        entry.request = nil
        if entry.machine.isAccepted { entry.kept = [] }
        guard entry.source != nil else { return }
        release(&entry)
        answered.append(entry.id(slot), limit: 2 * limits.received) { slots.slot(of: $0) != nil }
    }

    private mutating func leave(_ left: TransactionEntry, _ slot: Int) {
        var entry = left
        release(&entry)
        deadlines.set(slot, to: nil)
        if let key = entry.clientKey { clients[key] = nil }
        if let key = entry.serverKey { servers[key] = nil }
        if let key = entry.mergeKey { merged[key] = nil }
        // What is empty keeps its room otherwise.
        if slots.free(slot) {
            (clients, servers, merged, sources, deadlines) = ([:], [:], [:], [:], DeadlineQueue())
        }
        answered.dropEnded { slots.slot(of: $0) != nil }
    }

    // MARK: Limits

    /// Counts a transaction for the address that its request came from.
    mutating func count(_ entry: inout TransactionEntry, for source: SocketAddress) {
        entry.source = source
        sources[source, default: 0] += 1
        unansweredCount += 1
    }

    private mutating func release(_ entry: inout TransactionEntry) {
        guard let source = entry.source else { return }
        entry.source = nil
        unansweredCount -= 1
        let count = sources[source, default: 1] - 1
        sources[source] = count == 0 ? nil : count
    }

    /// Whether a request that came by a flow may have a transaction; one that was answered long ago makes room for it.
    mutating func makeRoom(for flow: Flow) -> Bool {
        guard
            unansweredCount < limits.received / 8
                || sources[flow.remote.with(port: 0), default: 0] < limits.perSource
        else { return false }
        while servers.count >= limits.received {
            guard let oldest = answered.popFirst() else { return false }
            if let slot = slots.slot(of: oldest), let entry = slots[slot] { leave(entry, slot) }
        }
        return true
    }
}

/// How many entries each table of a stack's transactions has; all are 0 when all is over.
public struct TransactionCounts: Hashable, Sendable {
    /// Transactions that run, of either side.
    public internal(set) var transactions = 0
    /// Requests sent, by their branch.
    public internal(set) var clients = 0
    /// Requests received, by their branch.
    public internal(set) var servers = 0
    /// Requests received that may come another way, too.
    public internal(set) var merged = 0
    /// Addresses whose requests wait for an answer.
    public internal(set) var sources = 0
    /// Requests that were answered, and may come again.
    public internal(set) var answered = 0
    /// Transactions that wait for a time.
    public internal(set) var deadlines = 0
    /// What was not polled.
    public internal(set) var outputs = 0
}
