package import CallBasics
package import SDP

extension UserAgent {
    /// Takes an INVITE that is in no dialog.
    ///
    /// Throws: `badRequest` when it, or its description, cannot be read
    mutating func receiveCall(_ request: SIPMessage, _ transaction: TransactionID, on flow: Flow, at now: MediaTime)
        throws(SIPError)
    {
        guard mayRing(flow) else {
            return respond(503, to: request, transaction, [.init(name: .retryAfter, value: "10")], at: now)
        }
        if refusedInterval(of: request, transaction, at: now) { return }
        let room = try RoomInvite(request)
        if let room, let status = refusal(of: room, on: flow) {
            return respond(status, to: request, transaction, at: now)
        }
        let replaced: (call: CallHandle?, refusal: Int?) = room == nil ? try replaced(by: request) : (nil, nil)
        if let status = replaced.refusal { return respond(status, to: request, transaction, at: now) }
        if let former = replaced.call, try isRepair(request, of: former) {
            return try receiveRepair(request, transaction, of: former, on: flow, at: now)
        }
        let offer = try request.sessionDescription()
        // Without an account no challenge within it is answered: whoever calls would learn what a password can be guessed by.
        var call = Call(request, isCaller: false, account: nil, .ringing, configuration.sessionTimer)
        _ = try? call.exchange.receive(.invite, hasDescription: offer != nil)
        call.noteMethods(of: request)
        let tag = makeTag()
        let number = UInt32(truncatingIfNeeded: generator.next() & 0xFFFF) + 1
        let dialog = try Dialog(server: request, tag: tag, isConfirmed: false, number: number, on: flow)
        call.dialog = dialog
        call.replaces = replaced.call
        call.invite = Call.ReceivedInvite(
            transaction: transaction,
            request: request,
            flow: flow,
            tag: tag,
            offer: offer
        )
        call.ringEnd = now + configuration.ringPatience
        let handle = calls.insert { _ in call }
        callOfDialog[dialog.id] = handle
        callOfTransaction[transaction] = handle
        noteRinging(flow, by: 1)
        put(call, handle)
        if let room { return receive(room, handle, at: now) }
        tell(.incoming(handle, request))
    }

    /// Answers 422 where a shorter session is asked for than is taken.
    mutating func refusedInterval(of request: SIPMessage, _ transaction: TransactionID, at now: MediaTime) -> Bool {
        guard let least = try? SessionTimer.refusal(of: request, configuration.sessionTimer) else { return false }
        respond(422, to: request, transaction, [.init(name: .minSE, value: "\(least.seconds)")], at: now)
        return true
    }

    /// Tells the caller that it rings; with a session, 183 with an answer, so that sound may flow before the call is answered.
    ///
    /// Throws: `badRequest` when the call does not ring, or its offer cannot be answered
    package mutating func ring(_ handle: CallHandle, with session: SessionConfiguration? = nil, at now: MediaTime)
        throws(SIPError)
    {
        guard var call = calls[handle], call.stage == .ringing, var invite = call.invite else { throw Self.noCall }
        guard call.provisional?.responder.isFree ?? true else {
            throw SIPError(.badRequest, "The caller has not acknowledged the last response. Wait for that.")
        }
        // The first reliable one would have to bring an offer (RFC 3262, section 5). Who wants no other hears the answer.
        if invite.offer == nil, try invite.request.requires100rel { return }
        var response = try dialogResponse(session == nil ? 180 : 183, to: invite)
        if let session, let offer = invite.offer {
            let description = try answer(offer, session, &call)
            try response.setDescription(description)
            invite.description = description
            call.invite = invite
        }
        if invite.offer != nil, try isReliable(invite.request) {
            var provisional =
                call.provisional
                ?? Call.SentProvisional(
                    transaction: invite.transaction,
                    response: response,
                    responder: ReliableResponder(timers, number: UInt32(generator.next() & 0xFFFF) + 1)
                )
            try provisional.responder.begin(&response, at: now)
            provisional.response = response
            call.provisional = provisional
            _ = call.exchange.send(.provisional, hasDescription: !response.bodyBytes.isEmpty)
        }
        put(call, handle)
        transactions.respond(response, to: invite.transaction, at: now)
        if session != nil, let agreed = call.session?.agreed { tell(.agreed(handle, agreed)) }
        settle(at: now)
    }

    /// Answers a call: with the answer to its offer, or an offer of our own where it had none.
    ///
    /// Where the caller has to acknowledge first what it was told of the session, that is waited for.
    /// Throws: `badRequest` when the call does not ring, or nothing of the offer can be taken: then it was answered 488
    package mutating func answer(_ handle: CallHandle, _ session: SessionConfiguration, at now: MediaTime)
        throws(SIPError)
    {
        guard var call = calls[handle], call.stage == .ringing, let invite = call.invite else { throw Self.noCall }
        guard call.provisional?.responder.holdsAnswer != true else {
            call.wantedAnswer = session
            return put(call, handle)
        }
        do {
            var response = try dialogResponse(200, to: invite)
            if invite.isSettled {
                // Both know the session already.
            } else if let description = invite.description {
                try response.setDescription(description)
            } else {
                try response.setDescription(try describe(invite.offer, session, &call))
            }
            try accept(invite, with: response, &call, handle, at: now)
            let agreed = invite.description == nil ? call.session?.agreed : nil
            if let agreed { tell(.agreed(handle, agreed)) }
            tell(.established(handle))
            if let former = call.replaces { giveWay(former, at: now) }
            settle(at: now)
        } catch {
            respond(488, to: invite.request, invite.transaction, tag: invite.tag, at: now)
            finish(handle, CallEnd(.us, .unacceptable), at: now)
            settle(at: now)
            throw error
        }
    }

    /// Another call has taken the place of one, which ends.
    private mutating func giveWay(_ handle: CallHandle, at now: MediaTime) {
        let end = CallEnd(.us, .replaced)
        guard let call = calls[handle], call.stage == .calling else { return leave(handle, end, at: now) }
        // Who was to be called is there.
        tellReferrer(of: call, handle, status: 200, at: now)
        takeBack(handle, end, reason: nil, at: now)
    }

    /// Refuses a call with a status of 300 to 699.
    package mutating func reject(_ handle: CallHandle, status: Int, at now: MediaTime) {
        reject(handle, status: status, [], at: now)
    }

    mutating func reject(
        _ handle: CallHandle,
        status: Int,
        _ headers: [Capabilities.Refusal.Header],
        at now: MediaTime
    ) {
        guard let call = calls[handle], call.stage == .ringing, let invite = call.invite else { return }
        respond(status, to: invite.request, invite.transaction, headers, tag: invite.tag, at: now)
        finish(handle, CallEnd(.us, .refused(status)), at: now)
        settle(at: now)
    }

    /// The answer to an offer, or an own offer.
    mutating func describe(_ offer: SessionDescription?, _ session: SessionConfiguration, _ call: inout Call)
        throws(SIPError) -> SessionDescription
    {
        if let offer { return try answer(offer, session, &call) }
        var own = call.session ?? OfferAnswer(configuration: session, sessionID: generator.next())
        own.configuration = session
        let description = try own.offer(.everything, using: &generator)
        call.session = own
        return description
    }

    private mutating func answer(_ offer: SessionDescription, _ session: SessionConfiguration, _ call: inout Call)
        throws(SIPError) -> SessionDescription
    {
        var own = call.session ?? OfferAnswer(configuration: session, sessionID: generator.next())
        own.configuration = session
        let description = try own.answer(offer, using: &generator)
        call.session = own
        return description
    }

    /// Sends the 2xx to an INVITE, and repeats it until its ACK.
    mutating func accept(
        _ invite: Call.ReceivedInvite,
        with made: SIPMessage,
        _ call: inout Call,
        _ handle: CallHandle,
        at now: MediaTime
    ) throws(SIPError) {
        var response = made
        try configuration.capabilities.describe(in: &response)
        let timer =
            call.room == nil
            ? try SessionTimer(server: invite.request, in: &response, call.timerWishes, at: now) : nil
        _ = call.exchange.send(.success, hasDescription: !response.bodyBytes.isEmpty)
        call.timer = timer
        call.provisional?.responder.end()
        call.dialog?.confirm()
        // The dialog of one that rang has its target from it, or from an UPDATE since.
        if call.stage != .ringing { try call.dialog?.refreshTarget(by: invite.request) }
        let number = try invite.request.cSeq()?.number ?? 0
        call.answer = Call.SentAnswer(
            transaction: invite.transaction,
            response: response,
            number: number,
            repeater: AnswerRepeater(timers, at: now)
        )
        if call.stage == .ringing { noteRinging(invite.flow, by: -1) }
        (call.stage, call.invite, call.ringEnd) = (.established, nil, nil)
        callOfTransaction[invite.transaction] = nil
        put(call, handle)
        transactions.respond(response, to: invite.transaction, at: now)
    }

    /// A response that makes the dialog, or belongs to it.
    func dialogResponse(_ status: Int, to invite: Call.ReceivedInvite) throws(SIPError) -> SIPMessage {
        var response = try invite.request.response(status: status, reason: SIPStatus.phrase(status), tag: invite.tag)
        try response.copyRecordRoute(from: invite.request)
        let seen = publicAddress(on: invite.flow)
        let user = configuration.identity.uri.userBytes
        let isSecure = invite.request.isSecure || invite.request.comesFromSIPS
        if let contact = contact(on: invite.flow, at: seen, user: user, isSecure: isSecure) {
            try response.set(.contact, to: contact)
        }
        if let product = configuration.product { try response.append(.server, Bytes(product)) }
        return response
    }

    // MARK: What comes behind the INVITE

    mutating func receiveAck(_ ack: SIPMessage, on flow: Flow, at now: MediaTime) {
        guard let id = try? DialogID(received: ack), let handle = callOfDialog[id], var call = calls[handle],
            var answer = call.answer, let number = try? ack.cSeq()?.number, number == answer.number,
            !answer.repeater.isOver
        else { return }
        answer.repeater.receiveAck()
        call.answer = answer
        let result = call.room == nil ? takeAck(ack, &call) : TakenAnswer(isTaken: true)
        put(call, handle)
        if let end = call.end { return leave(handle, end, at: now) }
        guard result.isTaken else { return leave(handle, CallEnd(.us, .unacceptable), at: now) }
        if let agreed = result.agreed { tell(.agreed(handle, agreed)) }
        goOn(handle, at: now)
    }

    /// The answer in an ACK, where the own 2xx brought the offer.
    private func takeAck(_ ack: SIPMessage, _ call: inout Call) -> TakenAnswer {
        var result = TakenAnswer()
        do {
            let description = try ack.sessionDescription()
            switch try call.exchange.receive(.ack, hasDescription: description != nil) {
            case .none, .ignored, .offer: result.isTaken = true
            case .answer:
                if let description { result.agreed = try call.session?.receiveAnswer(description) }
                result.isTaken = true
            }
        } catch {
            // The offer of a re-INVITE that was not answered well changes nothing; without a session there is no call.
            call.exchange.withdraw()
            call.session?.rollBack()
            result.isTaken = call.session?.agreed != nil
        }
        return result
    }

    mutating func receiveCancel(_ cancel: SIPMessage, of transaction: TransactionID, at now: MediaTime) {
        guard let handle = callOfTransaction[transaction] else { return }
        finish(handle, CallEnd(.them, .cancelled, reason: cancel.first(.reason)?.text), at: now)
    }

    /// The answer to an INVITE could not be sent.
    mutating func handleLostAnswer(of handle: CallHandle, at now: MediaTime) {
        guard let call = calls[handle], call.stage == .ringing else { return }
        finish(handle, CallEnd(.network, .failed(.unanswered(.unreachable, triedCount: 1))), at: now)
    }

    static var noCall: SIPError { SIPError(.badRequest, "There is no such call, or it does not wait for an answer.") }
}
