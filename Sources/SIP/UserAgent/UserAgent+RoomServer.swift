internal import CallBasics

/// Chat rooms at conference servers: what their servers want, and tell.
///
/// Source: RFC 4579; RFC 4575
extension UserAgent {
    // MARK: Invitations

    /// Why an INVITE to a room cannot be taken; nil when it can.
    func refusal(of invite: RoomInvite, on flow: Flow) -> Int? {
        guard let room = roomOfKey[Room.key(invite.address)].flatMap({ rooms[$0] }) else {
            return rooms.count < configuration.roomCount ? nil : 503
        }
        switch room.stage {
        case .created, .terminationFailed:
            // Its server may make the call anew: whoever else knows its address may not.
            let server = room.account.flatMap { accounts[$0]?.flow }
            return server == nil || server?.remote.host == flow.remote.host ? nil : 480
        // It was invited already, or leaves.
        default: return 480
        }
    }

    /// Takes an INVITE to a room; one that is known gets another call at once.
    mutating func receive(_ invite: RoomInvite, _ name: CallHandle, at now: MediaTime) {
        let key = Room.key(invite.address)
        guard let handle = roomOfKey[key], var room = rooms[handle] else {
            let account = account(for: calls[name]?.invite?.request)
            let handle = rooms.insert { _ in
                Room(account: account, address: invite.address, stage: .invited, call: name)
            }
            roomOfKey[key] = handle
            update(name) { $0.room = handle }
            return tell(.room(handle, .invited(invite)))
        }
        let former = room.call
        room.call = name
        rooms[handle] = room
        update(name) { $0.room = handle }
        // The server has made it anew; a BYE would mean that this side leaves.
        if let former { finish(former, CallEnd(.them, .replaced), at: now) }
        guard acceptInvite(of: name, at: now) else { return }
        if room.stage != .created { begin(handle, at: now) } else { follow(handle, at: now) }
    }

    /// Answers the INVITE of a room 200; false when that cannot be.
    mutating func acceptInvite(of name: CallHandle, at now: MediaTime) -> Bool {
        guard var call = calls[name], let invite = call.invite else { return false }
        do {
            var response = try dialogResponse(200, to: invite)
            if let contact = try response.firstContact() { try response.set(.contact, to: contact.withText) }
            try accept(invite, with: response, &call, name, at: now)
            return true
        } catch {
            reject(name, status: 400, at: now)
            return false
        }
    }

    /// The account that a request is for; where none is named, the only one.
    private func account(for request: SIPMessage?) -> AccountHandle? {
        let names = accounts.names
        if let to = (try? request?.to()).flatMap(\.self),
            let found = names.first(where: { accounts[$0]?.identity.uri.isEquivalent(to: to.uri) == true })
        {
            return found
        }
        return names.count == 1 ? names.first : nil
    }

    /// Takes an INVITE or UPDATE within the call of a room: it changes nothing, since there is no session.
    mutating func receiveRoomChange(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ name: CallHandle,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard var call = calls[name], let dialog = call.dialog else { return }
        guard call.stage == .established, call.answer?.repeater.isOver ?? true else {
            return respond(500, to: request, transaction, [.init(name: .retryAfter, value: "2")], at: now)
        }
        guard try request.sessionDescription() == nil else { return respond(488, to: request, transaction, at: now) }
        let invite = Call.ReceivedInvite(
            transaction: transaction,
            request: request,
            flow: flow,
            tag: dialog.id.localTag,
            offer: nil
        )
        var response = try dialogResponse(200, to: invite)
        if let contact = try response.firstContact() { try response.set(.contact, to: contact.withText) }
        if request.method == .invite { return try accept(invite, with: response, &call, name, at: now) }
        try call.dialog?.refreshTarget(by: request)
        put(call, name)
        transactions.respond(response, to: transaction, at: now)
    }

    // MARK: Its call

    /// The own INVITE to a room, or to the factory of rooms, was answered.
    mutating func joined(_ handle: RoomHandle, _ name: CallHandle, by response: SIPMessage, at now: MediaTime) {
        guard let room = rooms[handle], room.call == name else { return leave(name, CallEnd(.us, .cancelled), at: now) }
        guard room.stage == .creationPending else { return leave(name, CallEnd(.us, .hungUp), at: now) }
        guard made(handle, by: response, at: now) else {
            return leave(name, CallEnd(.us, .unacceptable, response: response), at: now)
        }
        begin(handle, at: now)
    }

    /// Notes the address of a room that was made; false when the response names none.
    private mutating func made(_ handle: RoomHandle, by response: SIPMessage, at now: MediaTime) -> Bool {
        guard let contact = (try? response.firstContact()).flatMap(\.self), contact.parameters.contains("isfocus")
        else {
            return false
        }
        let address = contact.uri.roomAddress.detached
        let key = Room.key(address)
        // Between two people there may be but one, which their server gives again.
        if let former = roomOfKey[key] { drop(former, .forgotten, at: now) }
        roomOfKey[key] = handle
        rooms[handle]?.address = address
        return true
    }

    /// The call of a room has ended.
    mutating func handleEnd(of handle: RoomHandle, _ name: CallHandle, _ end: CallEnd, at now: MediaTime) {
        guard var room = rooms[handle], room.call == name else { return }
        room.call = nil
        rooms[handle] = room
        switch room.stage {
        case .invited: drop(handle, .terminated, at: now)
        case .creationPending:
            // Where redirections are not followed, one that leads to a room has made it all the same.
            if let response = end.response, response.statusCode == 302, made(handle, by: response, at: now) {
                return begin(handle, at: now)
            }
            drop(handle, .creationFailed(end), at: now)
        case .created, .terminationFailed:
            if end.isOfMember { drop(handle, .terminated, at: now) }
        case .terminationPending:
            if end.isOfMember { return drop(handle, .terminated, at: now) }
            switch end.cause {
            // The BYE is under way.
            case .hungUp where end.side == .us: break
            case .refused(let status) where Self.isGone(status): drop(handle, .terminated, at: now)
            case .refused(let status): failToLeave(handle, status: status)
            default: failToLeave(handle, status: nil)
            }
        case .creationFailed, .terminated, .forgotten: break
        }
    }

    /// What the server answers to the BYE that leaves a room; nil when it does not.
    mutating func handleFarewell(of handle: RoomHandle, _ response: SIPMessage?, at now: MediaTime) {
        let status = response?.statusCode ?? 408
        guard let room = rooms[handle], room.stage == .terminationPending, status >= 200 else { return }
        if status < 300 || Self.isGone(status) { return drop(handle, .terminated, at: now) }
        // It knows the room, and the call no more.
        if status == 481, room.hasSaidFarewell {
            rooms[handle]?.hasSaidFarewell = false
            return joinToLeave(handle, at: now)
        }
        failToLeave(handle, status: response == nil ? nil : status)
    }

    /// Whether a server says that there is nothing to leave.
    private static func isGone(_ status: Int) -> Bool { status == 404 || status == 410 || status == 604 }

    // MARK: Its state

    /// Asks the server of a room to tell what it is like, and each change of it, once its account is registered.
    mutating func follow(_ handle: RoomHandle, at now: MediaTime) {
        guard let room = rooms[handle], room.subscription == nil, room.stage != .invited, let address = room.address,
            room.account.map(isUsable) ?? true
        else { return }
        var wishes = SubscriptionWishes(address, event: "conference", accept: [ConferenceDocument.type])
        wishes.account = room.account
        do {
            let subscription = try subscribe(wishes, of: handle, at: now)
            // It may have ended already.
            if subscriptions[subscription] != nil { rooms[handle]?.subscription = subscription }
        } catch {
            tell(.room(handle, .unfollowed(.failed(.invalid(error)))))
        }
    }

    /// The account of a room is registered: one that waited for that is followed, and a server that knows this side by an address or a
    /// connection that is gone hears of another.
    mutating func followOn(_ handle: RoomHandle, at now: MediaTime) {
        guard let subscription = rooms[handle]?.subscription else { return follow(handle, at: now) }
        guard let dialog = subscriptions[subscription]?.dialog, !flows.isUsable(dialog.flow) else { return }
        refresh(subscription, at: now)
    }

    /// What the subscription of a room tells; whether all is to be asked for anew.
    mutating func receive(_ event: SubscriptionEvent, of handle: RoomHandle, at now: MediaTime) -> Bool {
        guard var room = rooms[handle] else { return false }
        switch event {
        case .pending, .active: return false
        case .state(let notify): return receiveState(notify, handle, at: now)
        case .interrupted:
            room.conference?.expectAll()
            room.askedAt = nil
            rooms[handle] = room
        case .ended(let end):
            room.conference?.expectAll()
            room.subscription = nil
            rooms[handle] = room
            tell(.room(handle, .unfollowed(end)))
        }
        return false
    }

    private mutating func receiveState(_ notify: SIPMessage, _ handle: RoomHandle, at now: MediaTime) -> Bool {
        guard var room = rooms[handle], var state = room.conference else { return false }
        let before = state
        var outcome = ConferenceState.Outcome.gap
        // What cannot be read may have been a change.
        if let document = try? ConferenceDocument(notify) { outcome = state.take(document) } else { state.expectAll() }
        room.conference = state
        if outcome == .taken { room.askedAt = nil }
        let asks = outcome == .gap && room.askedAt.map { now - $0 >= Room.patience } ?? true
        if asks { room.askedAt = now }
        rooms[handle] = room
        switch outcome {
        case .taken:
            if state.subject != before.subject || state.members != before.members {
                tell(.room(handle, .changed(state)))
            }
        case .over: drop(handle, .terminated, at: now)
        case .old, .gap: break
        }
        return asks && outcome == .gap
    }
}

extension CallEnd {
    /// Whether the server has ended a membership: by a BYE that names no fault of the network.
    fileprivate var isOfMember: Bool {
        guard side == .them, cause == .hungUp else { return false }
        let header = reason.flatMap { try? ReasonHeader(parsing: Bytes($0)) }
        return header.flatMap { $0.protocolName.isNamed("SIP") ? $0.cause : nil } ?? 0 <= 299
    }
}

extension ConferenceDocument {
    /// The document of a NOTIFY.
    ///
    /// Throws: `badRequest` when there is none, or it cannot be read
    fileprivate init(_ notify: SIPMessage) throws(SIPError) {
        let parts = try notify.bodyParts()
        guard let part = parts.first(where: { $0.isPlain && $0.type?.isNamed(Bytes(Self.type)) == true }) else {
            throw SIPError(.badRequest, "The NOTIFY brings no state of a conference. Write it in its body.")
        }
        try self.init(parsing: part.bytes)
    }
}
