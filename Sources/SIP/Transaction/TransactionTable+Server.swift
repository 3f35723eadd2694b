package import CallBasics

extension TransactionTable {
    /// Takes a message that came by a flow.
    package mutating func receive(_ message: SIPMessage, on flow: Flow, at now: MediaTime) {
        if let status = message.statusCode { return receiveResponse(message, status: status, at: now) }
        guard let method = message.method else { return }
        do {
            try receiveRequest(try message.validated(), method, on: flow, at: now)
        } catch {
            guard let status = error.code.statusCode else { return drop() }
            answerAlone(message, status: status, on: flow)
        }
    }

    /// Answers a request; false when the response must not or need not be sent any more.
    ///
    /// A second 2xx to an INVITE is sent as it is, a repeat of the first one or not.
    @discardableResult
    package mutating func respond(_ response: SIPMessage, to id: TransactionID, at now: MediaTime) -> Bool {
        guard let status = response.statusCode, let slot = slots.slot(of: id), var entry = slots.take(slot) else {
            return false
        }
        let actions = entry.machine.respond(status: status, at: now)
        if status > 100, !actions.isEmpty { entry.localTag = Self.toTag(of: response) ?? entry.localTag }
        finish(entry, in: slot, actions, message: response, at: now)
        return !actions.isEmpty
    }

    private mutating func receiveRequest(_ message: SIPMessage, _ method: SIPMethod, on flow: Flow, at now: MediaTime)
        throws(SIPError)
    {
        guard var via = try message.topVia() else { return drop() }
        let key = try ServerKey(message, via: via, method: method)
        via.note(sourceHost: flow.remote.hostBytes, port: flow.remote.port)
        var request = message
        try request.replaceFirst(.via, by: via)
        if method == .ack { return receiveAck(request, key, on: flow, at: now) }
        if let slot = servers[key] {
            guard var entry = slots.take(slot) else { return }
            let actions = entry.machine.receiveRepeat()
            return finish(entry, in: slot, actions, at: now)
        }
        if method == .cancel {
            let inviteKey = try ServerKey(message, via: try message.topVia() ?? via, method: .invite)
            return receiveCancel(request, key, of: servers[inviteKey], on: flow, at: now)
        }
        let mergeKey = role == .agent ? try MergeKey(request) : nil
        if let mergeKey, merged[mergeKey] != nil { return answerAlone(message, status: 482, on: flow) }
        guard makeRoom(for: flow) else { return answerAlone(message, status: 503, on: flow) }
        let isInvite = method == .invite
        let slot = open(request, key, mergeKey, isInvite: isInvite, on: flow, at: now)
        guard let entry = slots.take(slot) else { return }
        finish(entry, in: slot, isInvite ? [.sendTrying] : [], at: now)
        add(.request(request, entry.id(slot), flow))
    }

    private mutating func receiveAck(_ ack: SIPMessage, _ key: ServerKey, on flow: Flow, at now: MediaTime) {
        guard let slot = servers[key], let entry = slots[slot], case .inviteServer(var machine) = entry.machine,
            !key.isLegacy || entry.localTag == nil || entry.localTag == Self.toTag(of: ack)
        else { return add(.acknowledgement(ack, nil, flow)) }
        var changed = entry
        let actions = machine.receiveAck(at: now)
        changed.machine = .inviteServer(machine)
        finish(changed, in: slot, actions, message: ack, at: now)
    }

    /// Answers a CANCEL by 200 when there is such an INVITE, else by 481; an INVITE of an agent without final response by 487.
    ///
    /// A CANCEL that fits is taken past the limits: each INVITE has one at most.
    private mutating func receiveCancel(
        _ cancel: SIPMessage,
        _ key: ServerKey,
        of invite: Int?,
        on flow: Flow,
        at now: MediaTime
    ) {
        guard invite != nil || makeRoom(for: flow) else { return answerAlone(cancel, status: 503, on: flow) }
        var entry = invite.flatMap { slots[$0] }
        let tag = entry?.localTag ?? Bytes(makeWord())
        if role == .agent { entry?.localTag = tag }
        let slot = open(cancel, key, nil, isInvite: false, on: flow, at: now)
        if let own = slots[slot],
            let response = makeAnswer(to: cancel, status: invite == nil ? 481 : 200, tag: tag)
        {
            respond(response, to: own.id(slot), at: now)
        }
        guard let invite, let entry else { return }
        slots.put(entry, in: invite)
        guard let request = entry.request else { return }
        if role == .agent {
            guard let response = makeAnswer(to: request, status: 487, tag: tag),
                respond(response, to: entry.id(invite), at: now)
            else { return }
        }
        add(.cancelled(entry.id(invite), cancel))
    }

    private mutating func open(
        _ request: SIPMessage,
        _ key: ServerKey,
        _ mergeKey: MergeKey?,
        isInvite: Bool,
        on flow: Flow,
        at now: MediaTime
    ) -> Int {
        let (slot, serial) = slots.reserve()
        let isReliable = flow.transport.isReliable
        let machine: TransactionEntry.Machine =
            isInvite
            ? .inviteServer(InviteServer(timers, isReliable: isReliable))
            : .server(NonInviteServer(timers, isReliable: isReliable, at: now))
        var entry = TransactionEntry(machine, serial: serial, flow: flow, request: request)
        (entry.serverKey, entry.mergeKey) = (key, mergeKey)
        servers[key] = slot
        if let mergeKey { merged[mergeKey] = slot }
        count(&entry, for: flow.remote.with(port: 0))
        slots.put(entry, in: slot)
        return slot
    }

    /// The bytes of a 100, or nothing when the request is not there any more.
    mutating func answer(to entry: TransactionEntry, status: Int) -> [UInt8] {
        entry.request.flatMap { makeAnswer(to: $0, status: status, tag: entry.localTag ?? []) }?.bytes ?? []
    }

    /// Answers without a transaction, a repeat by the same bytes, an ACK not at all.
    private mutating func answerAlone(_ message: SIPMessage, status: Int, on flow: Flow) {
        guard message.isAnswerable else { return drop() }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in (message.first(.via) ?? []) + (message.callID ?? []) {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        var words = SeededGenerator(seed: hash ^ tagSeed)
        do {
            var request = message
            // One that is not well-formed goes back as it came; the answer leaves by the flow anyway.
            if var via = try? message.topVia() {
                via.note(sourceHost: flow.remote.hostBytes, port: flow.remote.port)
                try request.replaceFirst(.via, by: via)
            }
            let tag = Bytes(String(words.next(), radix: 36))
            guard var response = makeAnswer(to: request, status: status, tag: tag) else { return }
            if status == 503 { try response.set(.retryAfter, to: RetryAfter(seconds: limits.retryAfterSeconds)) }
            add(.send(response.bytes, flow))
        } catch {
            drop()
        }
    }

    private mutating func makeAnswer(to request: SIPMessage, status: Int, tag: Bytes) -> SIPMessage? {
        do {
            return try request.response(status: status, reason: SIPStatus.phrase(status), tag: tag)
        } catch {
            drop()
            return nil
        }
    }

    private static func toTag(of message: SIPMessage) -> Bytes? {
        guard let to = try? message.to() else { return nil }
        return to.tag?.detached
    }
}
