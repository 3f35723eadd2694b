package import CallBasics
package import SDP

extension UserAgent {
    /// How another session is asked for.
    package enum ChangeMethod: Hashable, Sendable {
        /// By INVITE, which everybody takes, and whose answer may wait for somebody.
        case invite
        /// By UPDATE, which is answered at once; where the other side does not take it, by INVITE.
        case update
    }

    /// Wishes for another session: held or resumed, another address, other codecs; it is asked for as soon as that may be.
    ///
    /// `agreed` tells that the other side took it, `changeRefused` that all is as before.
    /// Source: RFC 3261, section 14; RFC 3311
    package mutating func change(
        _ handle: CallHandle,
        to session: SessionConfiguration,
        by method: ChangeMethod = .invite,
        at now: MediaTime
    ) {
        guard var call = calls[handle], call.stage != .ending else { return }
        (call.wanted, call.wantsUpdate) = (session, method == .update)
        // There may be another way now.
        if call.lossTime != nil { call.changeTime = nil }
        put(call, handle)
        goOn(handle, at: now)
        settle(at: now)
    }

    /// What the own side of a call's session wishes; nil before there is one.
    package func session(of handle: CallHandle) -> SessionConfiguration? {
        calls[handle].flatMap { $0.wanted ?? $0.session?.configuration }
    }

    /// Does what a call waits for, once it may.
    mutating func goOn(_ handle: CallHandle, at now: MediaTime) {
        guard isReachable, var call = calls[handle], call.mayChange, var dialog = call.dialog else { return }
        guard call.wanted != nil || call.wantsRefresh else {
            if let address = call.transfer.wanted { refer(handle, to: address, at: now) }
            return
        }
        do {
            if !flows.isUsable(dialog.flow) { call.hasMoved = true }
            let isRefresh = call.wanted == nil
            call.asked = call.wanted
            // A refresh by UPDATE needs no offer (RFC 4028, section 7.4).
            let isUpdate = call.takesUpdate && (isRefresh || call.wantsUpdate)
            if let wanted = call.wanted { call.session?.configuration = wanted }
            var request = try dialog.makeRequest(isUpdate ? .update : .invite)
            if !isUpdate || !isRefresh {
                guard let offer = try call.session?.offer(isRefresh ? .agreedFormats : .everything, using: &generator)
                else { return }
                try request.setDescription(offer)
            }
            try configuration.capabilities.describe(in: &request)
            try SessionTimer.ask(in: &request, call.timerWishes, current: call.timer)
            _ = call.exchange.send(isUpdate ? .update : .invite, hasDescription: !request.bodyBytes.isEmpty)
            call.dialog = dialog
            put(call, handle)
            let id = begin(request, .change(handle), account: call.account, in: dialog, at: now)
            if calls[handle] != nil { update(handle) { $0.errand = id } }
        } catch {
            // Nothing left: the call is as it was.
            update(handle) { $0.asked = $0.wanted }
            refused(handle, status: 488, nil, at: now)
        }
    }

    // MARK: The own change

    mutating func receiveChangeResponse(
        _ response: SIPMessage,
        of id: ErrandID,
        _ errand: Errand,
        _ handle: CallHandle,
        on flow: Flow,
        at now: MediaTime
    ) {
        guard let status = response.statusCode else { return }
        guard status >= 200 else {
            guard case .new(let number) = reliability(of: response, id), let dialog = try? DialogID(response: response)
            else { return }
            takeEarlyAnswer(of: response, handle)
            return acknowledge(number, in: dialog, of: id, at: now)
        }
        guard status < 300 else { return handleChange(of: handle, response, nil, errand.request, at: now) }
        guard errand.method == .invite else { return updated(handle, by: response, to: errand, on: flow, at: now) }
        guard let dialogID = try? DialogID(response: response) else { return }
        if let ack = errand.acknowledgements.first(where: { $0.dialog == dialogID }) {
            return send(ack.bytes, on: ack.flow, at: now)
        }
        guard var call = calls[handle], var dialog = call.dialog, dialog.id == dialogID else { return }
        try? dialog.refreshTarget(by: response)
        call.dialog = dialog
        call.errand = nil
        let result = takeAnswer(of: response, .success, &call)
        acknowledge(dialog, id, with: result.answer, at: now)
        changed(call, handle, by: response, to: errand, on: flow, result, at: now)
    }

    /// Takes the answer to an own change from a reliable provisional response, which may bring it (RFC 3262, section 5).
    private mutating func takeEarlyAnswer(of response: SIPMessage, _ handle: CallHandle) {
        guard var call = calls[handle], let description = try? response.sessionDescription() else { return }
        var former = call.session
        do {
            guard case .answer = try call.exchange.receive(.provisional, hasDescription: true) else { return }
            try call.session?.receiveAnswer(description)
        } catch {
            // What is no answer is looked at again in the 2xx.
            return
        }
        former?.rollBack()
        call.formerSession = former
        put(call, handle)
        if let agreed = call.session?.agreed, call.wanted != nil || agreed != former?.agreed {
            tell(.agreed(handle, agreed))
        }
    }

    /// The 2xx to an own UPDATE, with an answer where it brought an offer.
    private mutating func updated(
        _ handle: CallHandle,
        by response: SIPMessage,
        to errand: Errand,
        on flow: Flow,
        at now: MediaTime
    ) {
        guard var call = calls[handle] else { return }
        try? call.dialog?.refreshTarget(by: response)
        call.errand = nil
        let result = takeAnswer(of: response, .updateSuccess, &call)
        changed(call, handle, by: response, to: errand, on: flow, result, at: now)
    }

    /// The other side has taken an own change or refresh.
    private mutating func changed(
        _ before: Call,
        _ handle: CallHandle,
        by response: SIPMessage,
        to errand: Errand,
        on flow: Flow,
        _ result: TakenAnswer,
        at now: MediaTime
    ) {
        var call = before
        // A refresh that changes nothing is nobody's business.
        let isNew = call.wanted != nil || calls[handle]?.session?.agreed != result.agreed
        call.noteMethods(of: response)
        call.timer = (try? SessionTimer(client: response, at: now)).flatMap(\.self)
        if call.wanted == call.session?.configuration { call.wanted = nil }
        // By another connection than before, the other side is told anew where its requests are to come.
        call.wantsRefresh = hasOtherContact(errand, on: flow)
        (call.hasMoved, call.lossTime, call.formerSession) = (false, nil, nil)
        put(call, handle)
        guard result.isTaken else { return leave(handle, CallEnd(.us, .unacceptable), at: now) }
        if isNew, let agreed = result.agreed { tell(.agreed(handle, agreed)) }
        goOn(handle, at: now)
    }

    /// A change that came to nothing: a refusal, or no answer.
    mutating func handleChange(
        of handle: CallHandle,
        _ response: SIPMessage?,
        _ failure: RequestFailure?,
        _ request: SIPMessage,
        at now: MediaTime
    ) {
        guard var call = calls[handle] else { return }
        call.errand = nil
        call.exchange.withdraw()
        let wanted = call.wanted
        call.session?.rollBack()
        if let former = call.formerSession {
            let isOther = call.session?.agreed != former.agreed
            (call.session, call.formerSession) = (former, nil)
            if isOther, let agreed = former.agreed { tell(.agreed(handle, agreed)) }
        }
        let status = response?.statusCode ?? 408
        if response == nil, !isReachable {
            // It is asked for again when the network is back.
            (call.wanted, call.wantsRefresh) = (wanted, true)
            return put(call, handle)
        }
        if status == 408 || status == 481 {
            let end = CallEnd(.network, .timeout, response: response)
            call.wanted = wanted
            put(call, handle)
            if repair(handle, or: end, at: now) || retry(handle, after: failure, at: now) { return }
            return leave(handle, end, at: now)
        }
        (call.hasMoved, call.lossTime) = (false, nil)
        put(call, handle)
        switch status {
        case 491:
            call.wanted = wanted
            call.changeTime = now + GlareWait.draw(isOwner: call.isCaller, &generator)
        case 405, 501:
            // It does not take what it said it takes.
            guard request.method == .update else { return refused(handle, status: status, response, at: now) }
            (call.takesUpdate, call.wanted) = (false, wanted)
        case 422:
            guard let response, let wishes = SessionTimer.wishes(after: response, to: call.timerWishes) else {
                return refused(handle, status: status, response, at: now)
            }
            call.timerWishes = wishes
        default: return refused(handle, status: status, response, at: now)
        }
        put(call, handle)
        goOn(handle, at: now)
    }

    private mutating func refused(_ handle: CallHandle, status: Int, _ response: SIPMessage?, at now: MediaTime) {
        let asked = calls[handle]?.asked
        let pause: RetryAfter? = response.flatMap { try? $0.value(.retryAfter) }
        update(handle) { call in
            // What was wished since is asked for yet, and so is a refresh that a change stood for.
            if call.wanted == asked { call.wanted = nil }
            call.wantsRefresh = asked != nil && call.wantsRefresh
            guard asked == nil, status == 480 || 500..<600 ~= status else { return }
            call.timer?.postpone(by: pause.map { .seconds(Int64($0.seconds)) }, at: now)
        }
        // A refresh is nobody's business.
        if asked != nil { tell(.changeRefused(handle, status: status)) }
        goOn(handle, at: now)
    }

    // MARK: The other side's change

    /// Takes a re-INVITE, or an UPDATE, which is answered at once.
    mutating func receiveChange(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ handle: CallHandle,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard var call = calls[handle], let dialog = call.dialog else { return }
        guard call.room == nil else { return try receiveRoomChange(request, transaction, handle, on: flow, at: now) }
        let isInvite = request.method == .invite
        // Before the answer, UPDATE may come once both sides have agreed (RFC 3311, section 5.1).
        guard call.stage == .established || call.stage == .ringing && !isInvite else {
            return respond(500, to: request, transaction, [retryAfter()], at: now)
        }
        if call.errand != nil { return respond(491, to: request, transaction, at: now) }
        if refusedInterval(of: request, transaction, at: now) { return }
        let offer = try request.sessionDescription()
        do throws(OfferAnswerExchange.Refusal) {
            _ = try call.exchange.receive(isInvite ? .invite : .update, hasDescription: offer != nil)
        } catch {
            guard error == .busy else { return respond(491, to: request, transaction, at: now) }
            return respond(500, to: request, transaction, [retryAfter()], at: now)
        }
        call.noteMethods(of: request)
        let session = call.session?.configuration
        guard session != nil || offer == nil && !isInvite else {
            return respond(500, to: request, transaction, at: now)
        }
        let before = call.session?.agreed
        let invite = Call.ReceivedInvite(
            transaction: transaction,
            request: request,
            flow: flow,
            tag: dialog.id.localTag,
            offer: offer
        )
        do {
            var response = try dialogResponse(200, to: invite)
            if let session, isInvite || offer != nil {
                try response.setDescription(try describe(offer, session, &call))
            }
            if isInvite {
                try accept(invite, with: response, &call, handle, at: now)
            } else {
                try update(by: request, with: &response, &call, handle, at: now)
                transactions.respond(response, to: transaction, at: now)
            }
        } catch {
            guard var former = calls[handle] else { return }
            former.session?.rollBack()
            former.exchange.withdraw()
            put(former, handle)
            return respond(488, to: request, transaction, at: now)
        }
        if offer != nil, let agreed = call.session?.agreed, agreed != before { tell(.agreed(handle, agreed)) }
    }

    private mutating func update(
        by request: SIPMessage,
        with response: inout SIPMessage,
        _ call: inout Call,
        _ handle: CallHandle,
        at now: MediaTime
    ) throws(SIPError) {
        // Before the answer no session is there to be refreshed.
        if call.stage == .established {
            call.timer = try SessionTimer(server: request, in: &response, call.timerWishes, at: now)
        }
        _ = call.exchange.send(.updateSuccess, hasDescription: !response.bodyBytes.isEmpty)
        try call.dialog?.refreshTarget(by: request)
        // What is said in the answer to the INVITE is not what was agreed on before.
        if call.stage == .ringing, !response.bodyBytes.isEmpty { call.invite?.isSettled = true }
        put(call, handle)
    }

    /// When a request that met another one may come again, as it is drawn for each.
    mutating func retryAfter() -> Capabilities.Refusal.Header {
        .init(name: .retryAfter, value: "\(Int.random(in: 0...10, using: &generator))")
    }
}
