package import CallBasics

/// All flows of a stack: connections, and the UDP sockets; bytes and time go in, messages and what sockets do come out.
///
///     sockets ──opened, failed, closed, accept, receive──►   ──poll──► open, send, close, to the sockets
///     user ──flow, send, keep──►                             ──poll──► message, died, to the user
///     time ──handleTimeout──►                                ──deadline──► when to call it next
///
/// After each call, `poll` until it is nil. There is one connection to a target, however many ask for it at once; what
/// is sent before it is open waits. A flow that ends leaves every table in the same step.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3261, section 18; RFC 5626
package struct FlowTable: Sendable {
    /// What `poll` gives.
    package enum Output: Sendable {
        /// A connection is to be made to the flow's remote address, with TLS to a server of that name.
        case open(Flow, tlsName: String?)
        case send([UInt8], Flow)
        /// The connection is to be closed, once what was sent has left.
        case close(Flow)
        case message(SIPMessage, Flow)
        /// It carries nothing any more: its transactions end, and who was registered by it registers anew.
        ///
        /// `isProven` says that a ping by it was answered.
        case died(Flow, FlowEnd, isProven: Bool)
    }

    package let limits: FlowLimits
    package let timers: FlowTimers
    var connections: [Connection?] = []
    private var freed: [Int] = []
    var slots: [Flow: Int] = [:]
    var targets: [Target: Int] = [:]
    var refusals: [Target: MediaTime] = [:]
    private var sources: [SocketAddress: Int] = [:]
    private(set) var acceptedCount = 0
    private(set) var openedCount = 0
    private var waitingByteCount = 0
    private var deadlines = DeadlineQueue()
    var generator: SeededGenerator
    private var locals: [Flow.Transport: [SocketAddress]] = [:]
    private var lastNumber: UInt64 = 0
    private var outputs = OutputQueue<Output>()
    /// Datagrams that are no messages, and bytes and connections that were refused.
    package internal(set) var droppedCount = 0

    /// The same seed and the same calls draw the same times.
    package init(seed: UInt64, timers: FlowTimers = FlowTimers(), limits: FlowLimits = FlowLimits()) {
        (self.timers, self.limits) = (timers, limits)
        generator = SeededGenerator(seed: seed)
    }

    /// When `handleTimeout` is to be called; nil when nothing waits for time.
    package var deadline: MediaTime? { deadlines.first?.time }

    /// How many entries each table has.
    package var counts: FlowCounts {
        var counts = FlowCounts()
        counts.flows = slots.count
        counts.targets = targets.count
        counts.sources = sources.count
        (counts.accepted, counts.opened) = (acceptedCount, openedCount)
        counts.kept = connections.count { $0?.keepAlive != nil }
        counts.deadlines = deadlines.count
        counts.waitingBytes = waitingByteCount
        counts.refusals = refusals.count
        counts.outputs = outputs.count
        return counts
    }

    /// Says which own addresses others can be told for a transport; without one of a family it has no flows of it.
    ///
    /// Flows of an address that is gone die: UDP flows that are kept, and connections of its host. A wildcard address is a
    /// mistake of the caller.
    package mutating func setLocalAddresses(_ addresses: [SocketAddress], of transport: Flow.Transport) {
        precondition(!addresses.contains(where: \.isUnspecified))
        locals[transport] = addresses
        let hosts = Set(addresses.map { $0.with(port: 0) })
        for (flow, slot) in slots.sorted(by: { $0.value < $1.value }) where flow.transport == transport {
            let isThere =
                transport == .udp ? addresses.contains(flow.local) : hosts.contains(flow.local.with(port: 0))
            if !isThere { end(slot, .addressGone, isClosed: transport == .udp) }
        }
    }

    /// What there is an own address of.
    var transports: [Flow.Transport] { Flow.Transport.allCases.filter { locals[$0]?.isEmpty == false } }

    /// The own address that a remote one is talked to from.
    func localAddress(of transport: Flow.Transport, to remote: SocketAddress) -> SocketAddress? {
        let fitting = (locals[transport] ?? []).filter { $0.isIPv4 == remote.isIPv4 }
        return fitting.first { $0.isLinkLocal == remote.isLinkLocal } ?? fitting.first
    }

    func isLocal(_ address: SocketAddress, of transport: Flow.Transport) -> Bool {
        locals[transport]?.contains(address) ?? false
    }

    /// The next thing to do; nil when all is done.
    package mutating func poll() -> Output? { outputs.poll() }

    /// Does what is due; before `deadline` that is nothing.
    package mutating func handleTimeout(at now: MediaTime) {
        refusals = refusals.filter { now < $0.value }
        while let first = deadlines.first, first.time <= now {
            guard var connection = connections[first.slot] else { return }
            if let end = connection.end, end.time <= now {
                self.end(first.slot, end.cause, isClosed: false, at: now)
                continue
            }
            if let bytes = connection.ping(&generator, at: now) { add(.send(bytes, connection.flow)) }
            put(connection, in: first.slot)
        }
    }

    mutating func add(_ output: Output) { outputs.append(output) }

    /// A number that no other connection has.
    mutating func makeNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    func hasRoom(for source: SocketAddress) -> Bool {
        acceptedCount < limits.accepted && sources[source.with(port: 0), default: 0] < limits.perSource
    }

    mutating func insert(_ connection: Connection) {
        let slot = freed.popLast() ?? connections.count
        if slot == connections.count { connections.append(nil) }
        slots[connection.flow] = slot
        if let target = connection.target {
            targets[target] = slot
            openedCount += 1
        } else if connection.isAccepted {
            sources[connection.flow.remote.with(port: 0), default: 0] += 1
            acceptedCount += 1
        }
        put(connection, in: slot)
    }

    /// Takes a connection out to be changed; then it is put back, or it ends.
    mutating func take(_ slot: Int) -> Connection? {
        let connection = connections[slot]
        connections[slot] = nil
        waitingByteCount -= connection?.waitingByteCount ?? 0
        return connection
    }

    /// Puts a changed connection back; while it is not usable it does not serve its target.
    mutating func put(_ connection: Connection, in slot: Int) {
        if let target = connection.target {
            if !connection.isUsable, targets[target] == slot { targets[target] = nil }
            if connection.isUsable, connection.servesTarget, targets[target] == nil { targets[target] = slot }
        }
        waitingByteCount += connection.waitingByteCount - (connections[slot]?.waitingByteCount ?? 0)
        connections[slot] = connection
        deadlines.set(slot, to: connection.deadline)
    }

    /// Whether parts of messages take more memory than is given to them.
    var isOverloaded: Bool { waitingByteCount > limits.waitingBytes }

    /// Takes a connection out of every table; `isClosed` says that the sockets know already.
    mutating func end(_ slot: Int, _ cause: FlowEnd?, isClosed: Bool, at now: MediaTime? = nil) {
        guard let connection = take(slot) else { return }
        freed.append(slot)
        deadlines.set(slot, to: nil)
        slots[connection.flow] = nil
        if let target = connection.target {
            if targets[target] == slot { targets[target] = nil }
            openedCount -= 1
        } else if connection.isAccepted {
            let source = connection.flow.remote.with(port: 0)
            let count = sources[source, default: 1] - 1
            sources[source] = count == 0 ? nil : count
            acceptedCount -= 1
        }
        if let now, connection.state == .opening { noteRefusal(connection.datagramTargets, at: now) }
        if !isClosed { add(.close(connection.flow)) }
        if let cause { add(.died(connection.flow, cause, isProven: connection.isProven)) }
    }
}
