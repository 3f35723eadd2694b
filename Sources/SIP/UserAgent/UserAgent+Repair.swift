internal import CallBasics
internal import SDP

/// A call whose other side is not reached any more by their dialog: a new INVITE takes the place of that, and the call goes on.
///
///     change behind a move ──no answer, 481──► INVITE with Replaces ──2xx──► the call, in a new dialog
///                                                   ├──491──► that of the other side is waited for
///                                                   └──else──► the call is over, as without it
///          └──neither could leave──► once more, for as long as a call outlives the network
///
/// Both sides keep their call: who gets such an INVITE answers it by itself. Where both send one, that of the caller is taken.
/// Source: RFC 3891
extension UserAgent {
    /// How long the answer to the INVITE, or that of the other side, is waited for.
    private static let repairPatience = Duration.seconds(32)
    /// How soon what could not leave behind a move is tried again.
    private static let retryInterval = Duration.milliseconds(500)

    /// Marks the calls that have moved, so that one which is lost by that is repaired; what could not leave may again.
    mutating func noteMoved() {
        for handle in calls.names where calls[handle]?.stage == .established {
            update(handle) { call in
                call.hasMoved = true
                if call.lossTime != nil { (call.lossTime, call.changeTime) = (nil, nil) }
            }
        }
    }

    /// Has what could not leave behind a move leave later; false when that is not the reason, or was it for too long.
    ///
    /// The new address may have gone before the machine has said so, or lead nowhere yet.
    mutating func retry(_ handle: CallHandle, after failure: RequestFailure?, at now: MediaTime) -> Bool {
        guard var call = calls[handle], call.stage == .established, call.hasMoved || call.repair != nil,
            call.repair?.isFormerOver != true, failure?.isOwn == true
        else { return false }
        let start = call.lossTime ?? now
        guard now - start < configuration.networkPatience else { return false }
        (call.repair, call.hasMoved, call.wantsRefresh) = (nil, true, true)
        (call.lossTime, call.changeTime) = (start, now + Self.retryInterval)
        put(call, handle)
        return true
    }

    /// Sends the INVITE that repairs a call, in the place of what `end` would be; false when that cannot be.
    mutating func repair(_ handle: CallHandle, or end: CallEnd, at now: MediaTime) -> Bool {
        guard var call = calls[handle], let dialog = call.dialog, let former = call.session, call.stage == .established,
            call.hasMoved, call.takesReplaces, call.repair == nil, call.answer?.repeater.isOver ?? true
        else { return false }
        let wishes = former.wishes(ofSuccessor: call.wanted ?? former.configuration, using: &generator)
        var session = OfferAnswer(configuration: wishes, sessionID: generator.next())
        let account = call.account ?? account(of: dialog.local.uri)
        do {
            var request = try makeRepair(of: dialog, by: account)
            try SessionTimer.ask(in: &request, call.timerWishes, current: nil)
            try request.setDescription(session.offer(.everything, using: &generator))
            var exchange = OfferAnswerExchange()
            _ = exchange.send(.invite, hasDescription: true)
            // One attempt for each move.
            call.hasMoved = false
            call.repair = Call.Repair(
                session: session,
                exchange: exchange,
                wanted: call.wanted,
                end: end,
                deadline: now + Self.repairPatience
            )
            put(call, handle)
            let id = begin(request, .invite(handle), account: account, at: now)
            if calls[handle]?.repair != nil { update(handle) { $0.errand = id } }
            return true
        } catch {
            return false
        }
    }

    private func account(of uri: SIPURI) -> AccountHandle? {
        accounts.names.first { accounts[$0]?.identity.uri.isEquivalent(to: uri) == true }
    }

    /// The INVITE goes the way of a new call: by name where an account or a proxy leads on, else to the other side itself.
    private mutating func makeRepair(of dialog: Dialog, by account: AccountHandle?) throws(SIPError) -> SIPMessage {
        let isByName = account != nil || !configuration.routes.isEmpty
        let target = isByName ? dialog.remote.uri : dialog.remoteTarget
        var request = try makeRequest(.invite, to: target, account: account)
        var (from, to) = (dialog.local, dialog.remote)
        (from.tag, to.tag) = (makeTag(), nil)
        try request.set(.from, to: from)
        try request.set(.to, to: to)
        try configuration.capabilities.describe(in: &request)
        // Whom it does not find is not to ring.
        try request.append(.require, Bytes("replaces"))
        try request.append(.replaces, dialog.replacesValue)
        return request
    }

    // MARK: What the INVITE comes to

    /// The other side has taken the INVITE: the call goes on in its dialog.
    mutating func repaired(
        _ handle: CallHandle,
        _ dialog: Dialog,
        by response: SIPMessage,
        _ id: ErrandID,
        at now: MediaTime
    ) {
        guard var call = calls[handle], let repair = call.repair else { return }
        (call.session, call.exchange) = (repair.session, repair.exchange)
        (call.errand, call.repair, call.lossTime, call.isCaller) = (nil, nil, nil, true)
        noteDialog(dialog.id, of: handle, insteadOf: call.dialog?.id, at: now)
        call.dialog = dialog
        let result = takeAnswer(of: response, .success, &call)
        acknowledge(dialog, id, with: result.answer, at: now)
        call.noteMethods(of: response)
        call.timer = (try? SessionTimer(client: response, at: now)).flatMap(\.self)
        if call.wanted == repair.wanted { call.wanted = nil }
        call.wantsRefresh = hasOtherContact(errands[id], on: dialog.flow)
        put(call, handle)
        guard result.isTaken else {
            return leave(handle, CallEnd(.us, .unacceptable, response: response), at: now)
        }
        if let agreed = result.agreed { tell(.agreed(handle, agreed)) }
        goOn(handle, at: now)
    }

    /// The INVITE was refused, or not answered: the call ends as it would have without it.
    mutating func handleFailedRepair(
        _ handle: CallHandle,
        status: Int?,
        _ failure: RequestFailure? = nil,
        at now: MediaTime
    ) {
        guard var call = calls[handle], let repair = call.repair else { return }
        call.errand = nil
        if status == nil, !isReachable {
            // It begins anew when the network is back.
            (call.repair, call.wantsRefresh) = (nil, true)
            return put(call, handle)
        }
        if status == 491 {
            // The other side repairs the call, too.
            return put(call, handle)
        }
        put(call, handle)
        if retry(handle, after: failure, at: now) { return }
        giveUp(call, repair, handle, at: now)
    }

    /// The time for a repair is over.
    mutating func handleRepairTimeout(_ handle: CallHandle, at now: MediaTime) {
        guard let call = calls[handle], let repair = call.repair else { return }
        giveUp(call, repair, handle, at: now)
    }

    private mutating func giveUp(_ before: Call, _ repair: Call.Repair, _ handle: CallHandle, at now: MediaTime) {
        var call = before
        call.repair = nil
        put(call, handle)
        guard repair.isFormerOver else { return leave(handle, repair.end, at: now) }
        if let id = call.errand { drop(id, at: now) }
        finish(handle, CallEnd(.them, .hungUp), at: now)
    }

    /// A call goes on in another dialog.
    private mutating func noteDialog(
        _ id: DialogID,
        of handle: CallHandle,
        insteadOf former: DialogID?,
        at now: MediaTime
    ) {
        if let former {
            callOfDialog[former] = nil
            endedDialogs.note(former, at: now)
        }
        callOfDialog[id] = handle
    }

    // MARK: The other side's repair

    /// Whether an INVITE that replaces a call comes from who that call is with, so that it goes on; one that a transfer has led
    /// here comes from somebody else.
    func isRepair(_ request: SIPMessage, of handle: CallHandle) throws(SIPError) -> Bool {
        guard request.count(of: .referredBy) == 0, let call = calls[handle], let dialog = call.dialog,
            call.session?.agreed != nil, let from = try request.from()
        else { return false }
        return from.uri.isEquivalent(to: dialog.remote.uri)
    }

    /// Takes the other side's repair: nobody is asked, for nothing changes but the way.
    ///
    /// Throws: `badRequest` when the INVITE, or its description, cannot be read; the call is as before then, as after 488
    mutating func receiveRepair(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        of handle: CallHandle,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard var call = calls[handle], var former = call.dialog, let session = call.session else { return }
        if call.repair != nil, call.errand != nil, call.isCaller {
            return respond(491, to: request, transaction, at: now)
        }
        if refusedInterval(of: request, transaction, at: now) { return }
        let offer = try request.sessionDescription()
        call.exchange = OfferAnswerExchange()
        _ = try? call.exchange.receive(.invite, hasDescription: offer != nil)
        let tag = makeTag()
        let number = UInt32(truncatingIfNeeded: generator.next() & 0xFFFF) + 1
        let dialog = try Dialog(server: request, tag: tag, isConfirmed: false, number: number, on: flow)
        let invite = Call.ReceivedInvite(transaction: transaction, request: request, flow: flow, tag: tag, offer: offer)
        let wanted = session.wishes(ofSuccessor: call.wanted ?? session.configuration, using: &generator)
        (call.session, call.formerSession, call.wanted, call.changeTime) = (nil, nil, nil, nil)
        (call.wantsRefresh, call.hasMoved, call.lossTime, call.repair, call.isCaller) = (false, false, nil, nil, false)
        let pending = call.errand
        (call.errand, call.dialog) = (nil, dialog)
        do {
            var response = try dialogResponse(200, to: invite)
            try response.setDescription(try describe(offer, wanted, &call))
            call.noteMethods(of: request)
            try accept(invite, with: response, &call, handle, at: now)
        } catch {
            // Nothing was put back: the call is as it was.
            return respond(488, to: request, transaction, at: now)
        }
        noteDialog(dialog.id, of: handle, insteadOf: former.id, at: now)
        if let pending { drop(pending, at: now) }
        if let agreed = call.session?.agreed, offer != nil { tell(.agreed(handle, agreed)) }
        sayFarewell(&former, account: call.account, at: now)
        settle(at: now)
    }
}

extension RequestFailure {
    /// Whether the request has not left this side, as far as that is known.
    fileprivate var isOwn: Bool {
        switch self {
        case .unresolved, .unanswered(.unreachable, _): true
        case .unanswered, .invalid: false
        }
    }
}

extension Dialog {
    /// The value of Replaces by which the other side knows the dialog: its own tag is that of To.
    var replacesValue: Bytes { id.callID + Bytes(";to-tag=") + id.remoteTag + Bytes(";from-tag=") + id.localTag }
}
