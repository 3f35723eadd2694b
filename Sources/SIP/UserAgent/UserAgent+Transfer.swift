package import CallBasics
package import SDP

extension UserAgent {
    // MARK: The own transfer

    /// Asks the other side to call somebody else; `transfer` tells what comes of it.
    ///
    /// The call stays until somebody ends it. What changes, such as a hold, is waited for first.
    /// Throws: `badRequest` when the call is not answered, or another transfer is under way
    package mutating func transfer(_ handle: CallHandle, to uri: SIPURI, at now: MediaTime) throws(SIPError) {
        try transfer(handle, to: NameAddress(uri.withoutHeaders), at: now)
    }

    /// Asks the other side to call the one that `other` is with, in the place of that call.
    ///
    /// Throws: `badRequest` when one of the calls is not answered, or another transfer is under way
    /// Source: RFC 3891; RFC 5589, section 7
    package mutating func transfer(_ handle: CallHandle, to other: CallHandle, at now: MediaTime) throws(SIPError) {
        guard let dialog = calls[other]?.dialog, dialog.state == .confirmed else { throw Self.noTransfer }
        let text = dialog.remoteTarget.withoutHeaders.bytes + Bytes("?Replaces=") + dialog.replacesValue.escaped
        try transfer(handle, to: NameAddress(SIPURI(parsing: text)), at: now)
    }

    private mutating func transfer(_ handle: CallHandle, to address: NameAddress, at now: MediaTime) throws(SIPError) {
        guard var call = calls[handle], call.stage == .established, call.transfer.wanted == nil, !call.transfer.isSent
        else { throw Self.noTransfer }
        call.transfer.wanted = address
        put(call, handle)
        goOn(handle, at: now)
        settle(at: now)
    }

    private static var noTransfer: SIPError {
        SIPError(.badRequest, "The call is not answered, or it is being transferred. Wait for that.")
    }

    /// Sends the REFER that was waited with.
    mutating func refer(_ handle: CallHandle, to address: NameAddress, at now: MediaTime) {
        guard var call = calls[handle], var dialog = call.dialog else { return }
        call.transfer.wanted = nil
        do {
            var request = try dialog.makeRequest(.refer)
            try request.append(.referTo, address)
            try request.append(.referredBy, NameAddress(dialog.local.uri))
            call.dialog = dialog
            call.transfer.isSent = true
            call.transfer.sentNumber = try request.cSeq()?.number ?? 0
            put(call, handle)
            _ = begin(request, .refer(handle), account: call.account, in: dialog, at: now)
        } catch {
            put(call, handle)
            tell(.transfer(handle, .failed(status: 400)))
        }
    }

    /// What the other side answers to the own REFER; nil when it does not.
    mutating func handleReferral(_ handle: CallHandle, _ response: SIPMessage?, at now: MediaTime) {
        guard var call = calls[handle], call.transfer.isSent else { return }
        let status = response?.statusCode ?? 408
        guard status >= 200 else { return }
        if status < 300 {
            // What is told first may overtake this.
            if call.transfer.outcomeTime == nil { call.transfer.outcomeTime = now + timers.patience }
            put(call, handle)
            return tell(.transfer(handle, .accepted(status: status)))
        }
        (call.transfer.isSent, call.transfer.outcomeTime) = (false, nil)
        put(call, handle)
        tell(.transfer(handle, .failed(status: status)))
        if status == 481 || status == 408 { handleWithin(handle, response, at: now) }
    }

    /// Takes what the other side tells of a transfer, perhaps before it has answered the REFER.
    mutating func receiveNotification(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ handle: CallHandle,
        at now: MediaTime
    ) throws(SIPError) {
        guard var call = calls[handle], let event: EventHeader = try request.value(.event),
            event.package.isNamed("refer"), call.transfer.isSent, call.transfer.isTold(of: event)
        else { return respond(481, to: request, transaction, at: now) }
        let state: SubscriptionState? = try request.value(.subscriptionState)
        respond(200, to: request, transaction, at: now)
        let isOver = state?.isTerminated ?? false
        // One that ends without a word has not come about.
        guard let status = SIPFragment(request)?.status ?? (isOver ? 408 : nil) else { return }
        guard status >= 200 || isOver else {
            // The other side says for how long it tells (RFC 3515, section 2.4.4); a last word may come late.
            let seconds = min(state?.expires ?? Self.tellingSeconds, Self.tellingSeconds)
            call.transfer.outcomeTime = now + .seconds(Int64(seconds)) + timers.patience
            put(call, handle)
            return tell(.transfer(handle, .progress(status: status)))
        }
        (call.transfer.isSent, call.transfer.outcomeTime) = (false, nil)
        put(call, handle)
        tell(.transfer(handle, 200..<300 ~= status ? .done(status: status) : .failed(status: status)))
    }

    /// For how long at most, or where it is not told, the other side tells how a transfer goes on.
    private static let tellingSeconds: UInt32 = 300

    // MARK: The other side's transfer

    /// How long the user may take to decide: as long as the other side is told that it will hear of it.
    private static let patience = Duration.seconds(60)
    /// How long the other side may take to hang up behind its transfer.
    private static let byePatience = Duration.seconds(3)

    /// Takes a REFER in a call: 202 at once, where transfers are taken at all, and then the user decides.
    mutating func receiveTransfer(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ handle: CallHandle,
        at now: MediaTime
    ) throws(SIPError) {
        guard var call = calls[handle], let number = try request.cSeq()?.number else { return }
        var wishes = try TransferRequest(request)
        guard configuration.takesTransfers, wishes.isCall, call.room == nil else {
            return respond(603, to: request, transaction, at: now)
        }
        guard call.stage == .established, call.transfer.received == nil else {
            return respond(491, to: request, transaction, at: now)
        }
        let isSilent = request.first(.referSub)?.isNamed("false") ?? false
        call.transfer.receivedCount += 1
        call.transfer.byeTime = nil
        wishes.number = call.transfer.receivedCount
        let isFirst = wishes.number == 1
        let event = Bytes(isFirst ? "refer" : "refer;id=\(number)")
        call.transfer.received = ReceivedTransfer(
            wishes: wishes,
            deadline: now + Self.patience,
            event: isSilent ? nil : event
        )
        put(call, handle)
        var headers: [Capabilities.Refusal.Header] = []
        if isSilent { headers.append(.init(name: .referSub, value: "false")) }
        if let flow = call.dialog?.flow,
            let contact = contact(on: flow, at: publicAddress(on: flow), user: configuration.identity.uri.userBytes)
        {
            headers.append(.init(name: .contact, value: contact.bytes.text))
        }
        respond(202, to: request, transaction, headers, at: now)
        notify(handle, status: 100, at: now)
        tell(.transferRequested(handle, wishes))
    }

    /// Does what the other side's REFER asks for: calls, and tells the other side what comes of it.
    ///
    /// Whoever sent the REFER ends the call that it came in, once the new one is answered; this side does so when that is not done
    /// soon.
    /// Throws: `badRequest` when none waits, or not the one of that number; as `call`
    package mutating func acceptTransfer(
        _ handle: CallHandle,
        number: Int? = nil,
        _ session: SessionConfiguration,
        spares: [SessionConfiguration] = [],
        at now: MediaTime
    ) throws(SIPError) -> CallHandle {
        guard let call = calls[handle], let received = call.transfer.received, received.deadline != nil,
            number ?? received.wishes.number == received.wishes.number
        else { throw Self.noCall }
        var wishes = CallWishes(session: session, account: call.account)
        wishes.spareSessions = spares
        if let replaces = received.wishes.replaces { wishes.headers.append(("Replaces", replaces.bytes.text)) }
        if let referrer = received.wishes.referrer { wishes.headers.append(("Referred-By", referrer)) }
        update(handle) { $0.transfer.received?.deadline = nil }
        let made: CallHandle
        do {
            made = try self.call(received.wishes.target, wishes, at: now)
        } catch {
            notify(handle, status: 400, at: now)
            settle(at: now)
            throw error
        }
        guard calls[made] != nil else {
            // It has ended already, and the URI led nowhere.
            notify(handle, status: 404, at: now)
            settle(at: now)
            return made
        }
        update(made) { $0.referrer = handle }
        update(handle) { $0.transfer.received?.call = made }
        settle(at: now)
        return made
    }

    /// Refuses what the other side's REFER asks for, and tells it so.
    package mutating func refuseTransfer(
        _ handle: CallHandle,
        number: Int? = nil,
        status: Int = 603,
        at now: MediaTime
    ) {
        guard let received = calls[handle]?.transfer.received, received.deadline != nil,
            number ?? received.wishes.number == received.wishes.number
        else { return }
        notify(handle, status: status, at: now)
        settle(at: now)
    }

    /// Tells whoever asked for a call how it goes on; after its final status nothing more.
    mutating func tellReferrer(of call: Call, _ handle: CallHandle, status: Int, at now: MediaTime) {
        guard let referrer = call.referrer, calls[referrer]?.transfer.received?.call == handle else { return }
        notify(referrer, status: status, at: now)
        if 200..<300 ~= status { update(referrer) { $0.transfer.byeTime = now + Self.byePatience } }
    }

    /// Nothing more was heard of an own transfer, the user has not decided on one, or the other side has not hung up behind one.
    mutating func handleTransferTimeout(_ handle: CallHandle, at now: MediaTime) {
        guard let transfer = calls[handle]?.transfer else { return }
        if let time = transfer.outcomeTime, time <= now {
            update(handle) { call in
                (call.transfer.isSent, call.transfer.outcomeTime, call.transfer.hasLapsed) = (false, nil, true)
            }
            return tell(.transfer(handle, .failed(status: 408)))
        }
        if let time = transfer.received?.deadline, time <= now {
            tell(.transferLapsed(handle))
            return refuseTransfer(handle, status: 408, at: now)
        }
        update(handle) { $0.transfer.byeTime = nil }
        hangUp(handle, at: now)
    }

    /// Tells the other side of a call how the call goes on that it asked for.
    private mutating func notify(_ handle: CallHandle, status: Int, at now: MediaTime) {
        guard var call = calls[handle], let received = call.transfer.received else { return }
        if status >= 200 { call.transfer.received = nil }
        put(call, handle)
        guard let event = received.event, var dialog = call.dialog, call.stage == .established else { return }
        do {
            var request = try dialog.makeRequest(.notify)
            try request.append(.event, event)
            let isOver = status >= 200
            let state = isOver ? "terminated;reason=noresource" : "active;expires=\(Self.patience.components.seconds)"
            try request.append(.subscriptionState, Bytes(state))
            try request.append(.contentType, Bytes("message/sipfrag;version=2.0"))
            request.setBody(SIPFragment(status: status).body)
            call.dialog = dialog
            put(call, handle)
            _ = begin(request, .notification(handle), account: call.account, in: dialog, at: now)
        } catch {
            // It holds nothing that was not read from a line.
            assertionFailure(error.message)
        }
    }

    // MARK: One call in the place of another

    /// The call that an INVITE wants to replace; an answer when it cannot.
    ///
    /// Throws: `badRequest` when there is more than one, or it cannot be read
    /// Source: RFC 3891, section 3
    func replaced(by request: SIPMessage) throws(SIPError) -> (call: CallHandle?, refusal: Int?) {
        let count = request.count(of: .replaces)
        guard count > 0, let reference: DialogReference = try request.value(.replaces) else { return (nil, nil) }
        guard count == 1, let localTag = reference.localTag, let remoteTag = reference.remoteTag else {
            return (nil, 400)
        }
        let id = DialogID(callID: reference.callID, localTag: localTag, remoteTag: remoteTag)
        guard let handle = callOfDialog[id], let call = calls[handle], call.room == nil else {
            return (nil, endedDialogs.contains(id) ? 603 : 481)
        }
        switch call.stage {
        case .established: return reference.isEarlyOnly ? (nil, 486) : (handle, nil)
        case .ending: return (nil, 603)
        // What rings there may be taken over from here; what rings here, its caller alone takes back.
        case .calling: return (handle, nil)
        case .ringing: return (nil, 481)
        }
    }

    /// The call whose place a ringing one takes once it is answered: there is nothing to ring for.
    package func replacedCall(of handle: CallHandle) -> CallHandle? { calls[handle]?.replaces }
}

extension Bytes {
    /// The bytes with percent escapes for all but letters, digits and `-._~`, as the headers of a URI have them.
    fileprivate var escaped: Bytes {
        flatMap { byte -> [UInt8] in
            let isPlain = byte.isAlphanumeric || [0x2D, 0x2E, 0x5F, 0x7E].contains(byte)
            return isPlain ? [byte] : [.percent] + [byte].hexadecimal.map { $0 >= 0x61 ? $0 - 0x20 : $0 }
        }[...]
    }
}
