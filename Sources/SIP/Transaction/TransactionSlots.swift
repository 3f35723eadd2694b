internal import CallBasics

/// Names a transaction; after its end the name stays unused.
package struct TransactionID: Hashable, Sendable {
    let slot: Int
    let serial: UInt64
}

/// A state machine with what it works on.
struct TransactionEntry: Sendable {
    /// One of the four state machines.
    enum Machine: Sendable {
        case inviteClient(InviteClient)
        case client(NonInviteClient)
        case inviteServer(InviteServer)
        case server(NonInviteServer)
    }

    var machine: Machine
    let serial: UInt64
    let flow: Flow
    /// What `send` sends.
    var kept: [UInt8] = []
    /// The request, until it has a final response.
    var request: SIPMessage?
    /// Whether the user does not know of it: a CANCEL.
    var isInternal = false
    var cancelReason: ReasonHeader?
    /// The To tag of our responses.
    var localTag: Bytes?
    var clientKey: ClientKey?
    var serverKey: ServerKey?
    var mergeKey: MergeKey?
    /// The address, without port, that it counts for until it is answered.
    var source: SocketAddress?

    init(_ machine: Machine, serial: UInt64, flow: Flow, request: SIPMessage?) {
        (self.machine, self.serial, self.flow, self.request) = (machine, serial, flow, request)
    }

    func id(_ slot: Int) -> TransactionID { TransactionID(slot: slot, serial: serial) }
}

extension TransactionEntry.Machine {
    var deadline: MediaTime? {
        switch self {
        case .inviteClient(let machine): machine.deadline
        case .client(let machine): machine.deadline
        case .inviteServer(let machine): machine.deadline
        case .server(let machine): machine.deadline
        }
    }

    var isTerminated: Bool {
        switch self {
        case .inviteClient(let machine): machine.state == .terminated
        case .client(let machine): machine.state == .terminated
        case .inviteServer(let machine): machine.state == .terminated
        case .server(let machine): machine.state == .terminated
        }
    }

    /// Whether it has a 2xx to an INVITE, which its user repeats and acknowledges.
    var isAccepted: Bool {
        switch self {
        case .inviteClient(let machine): machine.state == .accepted
        case .inviteServer(let machine): machine.state == .accepted
        case .client, .server: false
        }
    }

    /// Whether the request is not needed any more: nothing is made from it.
    var isAnswered: Bool {
        switch self {
        case .inviteClient(let machine): machine.state != .calling && machine.state != .proceeding
        case .client: true
        case .inviteServer(let machine): machine.state != .proceeding
        case .server(let machine): machine.state == .completed || machine.state == .terminated
        }
    }

    mutating func handleTimeout(at now: MediaTime) -> [TransactionAction] {
        change {
            $0.handleTimeout(at: now)
        } _: {
            $0.handleTimeout(at: now)
        } _: {
            $0.handleTimeout(at: now)
        } _: {
            $0.handleTimeout(at: now)
        }
    }

    mutating func handleTransportError() -> [TransactionAction] {
        change {
            $0.handleTransportError()
        } _: {
            $0.handleTransportError()
        } _: {
            $0.handleTransportError()
        } _: {
            $0.handleTransportError()
        }
    }

    /// A response came; a server knows none.
    mutating func receive(status: Int, at now: MediaTime) -> [TransactionAction] {
        change {
            $0.receive(status: status, at: now)
        } _: {
            $0.receive(status: status, at: now)
        } _: { _ in
            []
        } _: { _ in
            []
        }
    }

    /// The request came again.
    mutating func receiveRepeat() -> [TransactionAction] {
        change { _ in
            []
        } _: { _ in
            []
        } _: {
            $0.receiveRepeat()
        } _: {
            $0.receiveRepeat()
        }
    }

    /// The user answers.
    mutating func respond(status: Int, at now: MediaTime) -> [TransactionAction] {
        change { _ in
            []
        } _: { _ in
            []
        } _: {
            $0.respond(status: status, at: now)
        } _: {
            $0.respond(status: status, at: now)
        }
    }

    private mutating func change(
        _ inviteClient: (inout InviteClient) -> [TransactionAction],
        _ client: (inout NonInviteClient) -> [TransactionAction],
        _ inviteServer: (inout InviteServer) -> [TransactionAction],
        _ server: (inout NonInviteServer) -> [TransactionAction]
    ) -> [TransactionAction] {
        let actions: [TransactionAction]
        switch self {
        case .inviteClient(var machine):
            actions = inviteClient(&machine)
            self = .inviteClient(machine)
        case .client(var machine):
            actions = client(&machine)
            self = .client(machine)
        case .inviteServer(var machine):
            actions = inviteServer(&machine)
            self = .inviteServer(machine)
        case .server(var machine):
            actions = server(&machine)
            self = .server(machine)
        }
        return actions
    }
}

/// The entries by number; numbers of those that left are given again.
struct TransactionSlots: Sendable {
    private var entries: [TransactionEntry?] = []
    private var freed: [Int] = []
    private var nextSerial: UInt64 = 0

    var count: Int { entries.count - freed.count }
    var indices: Range<Int> { entries.indices }

    subscript(slot: Int) -> TransactionEntry? { entries[slot] }

    /// Where the entry of a name stands; nil when it has left.
    func slot(of id: TransactionID) -> Int? {
        entries.indices.contains(id.slot) && entries[id.slot]?.serial == id.serial ? id.slot : nil
    }

    /// A slot for a new entry, with its serial number.
    mutating func reserve() -> (slot: Int, serial: UInt64) {
        nextSerial += 1
        if let slot = freed.popLast() { return (slot, nextSerial) }
        entries.append(nil)
        return (entries.count - 1, nextSerial)
    }

    /// Takes an entry out to be changed; then it is put back, or its slot is freed.
    mutating func take(_ slot: Int) -> TransactionEntry? {
        guard entries.indices.contains(slot) else { return nil }
        var entry: TransactionEntry?
        swap(&entry, &entries[slot])
        return entry
    }

    mutating func put(_ entry: TransactionEntry, in slot: Int) { entries[slot] = entry }

    /// Frees a slot; after the last of many the memory of all is given back.
    ///
    /// - Returns: Whether it was.
    mutating func free(_ slot: Int) -> Bool {
        entries[slot] = nil
        freed.append(slot)
        guard count == 0, entries.count > Self.keptCapacity else { return false }
        (entries, freed) = ([], [])
        return true
    }

    /// So many slots stay also while nobody has one.
    private static let keptCapacity = 64
}
