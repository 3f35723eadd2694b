package import CallBasics

extension UserAgent {
    /// Ends a call: CANCEL, a refusal or BYE, whatever it needs.
    ///
    /// `reason` is the value of a header Reason, such as `Q.850;cause=16`.
    package mutating func hangUp(_ handle: CallHandle, reason: ReasonHeader? = nil, at now: MediaTime) {
        guard let call = calls[handle] else { return }
        switch call.stage {
        case .calling: takeBack(handle, CallEnd(.us, .cancelled), reason: reason, at: now)
        case .ringing: reject(handle, status: 603, at: now)
        case .established: leave(handle, CallEnd(.us, .hungUp), reason: reason, at: now)
        case .ending: break
        }
        settle(at: now)
    }

    /// Takes the own INVITE back; a call of which nothing was heard ends at once, and its INVITE goes when that can be.
    mutating func takeBack(_ handle: CallHandle, _ end: CallEnd, reason: ReasonHeader?, at now: MediaTime) {
        guard var call = calls[handle] else { return }
        // It may have had an answer that made no dialog.
        guard let id = call.errand, var errand = errands[id] else { return finish(handle, end, at: now) }
        errand.isTakenBack = true
        errands[id] = errand
        (call.stage, call.end, call.ringEnd) = (.ending, end, nil)
        put(call, handle)
        guard let transaction = errand.transaction else {
            // It waits for names: nobody has heard of it.
            errandOfLookup = errandOfLookup.filter { lookup, other in
                if other == id { resolver.cancel(lookup) }
                return other != id
            }
            remove(id)
            return finish(handle, end, at: now)
        }
        transactions.cancel(transaction, reason: reason, at: now)
        if !errand.isHeard { finish(handle, end, at: now) }
    }

    /// Ends a call that was answered: by BYE, once the own 2xx has its ACK.
    mutating func leave(_ handle: CallHandle, _ end: CallEnd, reason: ReasonHeader? = nil, at now: MediaTime) {
        guard var call = calls[handle], var dialog = call.dialog else { return }
        if let answer = call.answer, !answer.repeater.isOver {
            (call.stage, call.end) = (.ending, end)
            return put(call, handle)
        }
        if let id = call.errand { drop(id, at: now) }
        if let invite = call.invite {
            respond(487, to: invite.request, invite.transaction, tag: invite.tag, at: now)
        }
        var reason = reason
        // Who is lost to a room by a fault stays its member.
        if call.room != nil, end.side != .us { reason = try? ReasonHeader(parsing: Bytes("SIP;cause=408")) }
        sayFarewell(&dialog, account: call.account, reason: reason, room: call.room, at: now)
        finish(handle, end, at: now)
    }

    /// Sends the BYE of a dialog.
    mutating func sayFarewell(
        _ dialog: inout Dialog,
        account: AccountHandle?,
        reason: ReasonHeader? = nil,
        room: RoomHandle? = nil,
        at now: MediaTime
    ) {
        do {
            var request = try dialog.makeRequest(.bye)
            if let reason { try request.append(.reason, reason) }
            if let product = configuration.product { try request.append(.userAgent, Bytes(product)) }
            _ = begin(request, room.map { .roomFarewell($0) } ?? .farewell, account: account, in: dialog, at: now)
        } catch {
            // An address that came as it is can be written again.
        }
    }

    /// Takes the other side's BYE.
    mutating func receiveFarewell(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ handle: CallHandle,
        at now: MediaTime
    ) {
        respond(200, to: request, transaction, at: now)
        guard let call = calls[handle] else { return }
        // The other side ends a dialog that a repair takes the place of, maybe before its answer is here.
        guard call.repair == nil else { return update(handle) { $0.repair?.isFormerOver = true } }
        if let id = call.errand { drop(id, at: now) }
        if let invite = call.invite {
            respond(487, to: invite.request, invite.transaction, tag: invite.tag, at: now)
        }
        finish(handle, call.end ?? CallEnd(.them, .hungUp, reason: request.first(.reason)?.text), at: now)
    }

    /// Nobody wants to know any more what a request comes to: an INVITE is taken back.
    mutating func drop(_ id: ErrandID, at now: MediaTime) {
        guard var errand = errands[id] else { return }
        let transaction = errand.transaction
        if errand.method == .invite, let transaction { transactions.cancel(transaction, at: now) }
        guard case .invite = errand.owner, transaction != nil else { return remove(id) }
        // Should it be answered all the same, that is acknowledged and ended.
        errand.isTakenBack = true
        errands[id] = errand
    }

    /// Takes a call out of every table, and tells it.
    mutating func finish(_ handle: CallHandle, _ end: CallEnd, at now: MediaTime) {
        guard let call = calls.remove(handle) else { return }
        tellReferrer(of: call, handle, status: end.status, at: now)
        for id in call.earlyDialogs { callOfDialog[id] = nil }
        if let id = call.dialog?.id {
            callOfDialog[id] = nil
            if call.stage == .established || call.stage == .ending { endedDialogs.note(id, at: now) }
        }
        if let invite = call.invite {
            callOfTransaction[invite.transaction] = nil
            if call.stage == .ringing { noteRinging(invite.flow, by: -1) }
        }
        if let room = call.room { return handleEnd(of: room, handle, end, at: now) }
        tell(.ended(handle, end))
    }

    /// Puts a changed call back, with what it waits for.
    mutating func put(_ call: Call, _ handle: CallHandle) {
        calls[handle] = call
        calls.setDeadline(of: handle, to: call.deadline)
    }

    mutating func update(_ handle: CallHandle, _ change: (inout Call) -> Void) {
        guard var call = calls[handle] else { return }
        change(&call)
        put(call, handle)
    }

    /// Does what is due for a call.
    mutating func handleTimeout(of handle: CallHandle, at now: MediaTime) {
        guard var call = calls[handle] else { return }
        if let end = call.ringEnd, end <= now {
            call.ringEnd = nil
            put(call, handle)
            guard call.stage == .calling else {
                return reject(handle, status: call.room == nil ? 486 : 480, at: now)
            }
            return takeBack(handle, CallEnd(.us, .timeout), reason: nil, at: now)
        }
        if let time = call.repair?.deadline, time <= now { return handleRepairTimeout(handle, at: now) }
        if let time = call.changeTime, time <= now {
            call.changeTime = nil
            put(call, handle)
            return goOn(handle, at: now)
        }
        if let time = call.transfer.deadline, time <= now { return handleTransferTimeout(handle, at: now) }
        if var provisional = call.provisional, let time = provisional.responder.deadline, time <= now {
            let action = provisional.responder.handleTimeout(at: now)
            call.provisional = provisional
            put(call, handle)
            switch action {
            case .send: transactions.respond(provisional.response, to: provisional.transaction, at: now)
            // The caller hears nothing of this side: it is not to be rung for nothing (RFC 3262, section 3).
            case .giveUp: reject(handle, status: 504, at: now)
            case nil: break
            }
            return settle(at: now)
        }
        if var answer = call.answer, let time = answer.repeater.deadline, time <= now {
            let action = answer.repeater.handleTimeout(at: now)
            call.answer = answer
            put(call, handle)
            switch action {
            case .send:
                answerRepeatCount += 1
                transactions.respond(answer.response, to: answer.transaction, at: now)
            case .giveUp: leave(handle, call.end ?? CallEnd(.network, .unacknowledged), at: now)
            case nil: break
            }
            return settle(at: now)
        }
        let action = call.timer?.handleTimeout(at: now)
        put(call, handle)
        switch action {
        case .refresh:
            update(handle) { $0.wantsRefresh = true }
            goOn(handle, at: now)
        case .end: leave(handle, CallEnd(.network, .expired), at: now)
        case nil: break
        }
    }
}
