package import CallBasics

extension TransactionTable {
    /// Sends a request by a flow, with a new Via before those it has, whose branch ends with `mark`.
    ///
    /// Throws: `badRequest` when it is a response, an ACK, or without From, To, Call-ID or a fitting CSeq
    package mutating func send(
        _ request: SIPMessage,
        on flow: Flow,
        marked mark: Bytes = [],
        at now: MediaTime
    ) throws(SIPError) -> TransactionID {
        guard let method = request.method, method != .ack else {
            throw SIPError(.badRequest, "Only a request other than ACK makes a transaction. Send others by the flow.")
        }
        var request = request
        let via = makeVia(on: flow, marked: mark)
        try request.prepend(.via, via)
        return open(try request.validated(), method, branch: via.branch ?? [], isInternal: false, on: flow, at: now)
    }

    /// Takes an INVITE back: at once, or once its provisional response came; after its final response it does nothing.
    package mutating func cancel(_ id: TransactionID, reason: ReasonHeader? = nil, at now: MediaTime) {
        guard let slot = slots.slot(of: id), let entry = slots[slot], case .inviteClient(var machine) = entry.machine
        else { return }
        var changed = entry
        let actions = machine.cancel(at: now)
        changed.machine = .inviteClient(machine)
        if changed.cancelReason == nil { changed.cancelReason = reason }
        finish(changed, in: slot, actions, at: now)
    }

    mutating func receiveResponse(_ received: SIPMessage, status: Int, at now: MediaTime) {
        guard let response = try? received.validated(), let slot = clientSlot(of: response),
            var entry = slots.take(slot)
        else { return drop() }
        let actions = entry.machine.receive(status: status, at: now)
        finish(entry, in: slot, actions, message: response, at: now)
    }

    private func clientSlot(of response: SIPMessage) -> Int? {
        guard let via = try? response.topVia(), let branch = via.branch, let method = (try? response.cSeq())?.method
        else { return nil }
        return clients[ClientKey(branch: branch, method: method)]
    }

    mutating func acknowledgement(of entry: TransactionEntry, to response: SIPMessage) -> [UInt8]? {
        do {
            return try entry.request?.acknowledgement(to: response).bytes
        } catch {
            drop()
            return nil
        }
    }

    /// The CANCEL has the branch of its INVITE, and a transaction that the user does not see.
    mutating func sendCancel(of request: SIPMessage, reason: ReasonHeader?, on flow: Flow, at now: MediaTime) {
        do {
            let cancel = try request.cancellation(reason: reason)
            guard let branch = try cancel.topVia()?.branch else { return drop() }
            _ = open(cancel, .cancel, branch: branch, isInternal: true, on: flow, at: now)
        } catch {
            drop()
        }
    }

    private mutating func open(
        _ request: SIPMessage,
        _ method: SIPMethod,
        branch: Bytes,
        isInternal: Bool,
        on flow: Flow,
        at now: MediaTime
    ) -> TransactionID {
        let (slot, serial) = slots.reserve()
        let isReliable = flow.transport.isReliable
        let machine: TransactionEntry.Machine =
            method == .invite
            ? .inviteClient(InviteClient(timers, isReliable: isReliable, at: now))
            : .client(NonInviteClient(timers, isReliable: isReliable, at: now))
        var entry = TransactionEntry(machine, serial: serial, flow: flow, request: request)
        entry.kept = request.bytes
        entry.isInternal = isInternal
        let key = ClientKey(branch: branch, method: method)
        entry.clientKey = key
        clients[key] = slot
        finish(entry, in: slot, [.send], at: now)
        return entry.id(slot)
    }
}
