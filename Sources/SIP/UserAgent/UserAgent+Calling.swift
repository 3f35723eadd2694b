package import CallBasics
package import SDP

extension UserAgent {
    /// What an own call asks for.
    package struct CallWishes: Sendable {
        package var account: AccountHandle?
        package var session: SessionConfiguration
        /// What is offered instead, one after the other, when the other side answers 488 or 606.
        package var spareSessions: [SessionConfiguration] = []
        /// Whether the other side makes the offer.
        package var isOfferDelayed = false
        /// Further headers of the INVITE.
        package var headers: [(name: String, value: String)] = []

        package init(session: SessionConfiguration, account: AccountHandle? = nil) {
            (self.session, self.account) = (session, account)
        }
    }

    /// Calls somebody.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when the URI, the session or a header cannot be written
    package mutating func call(_ uri: SIPURI, _ wishes: CallWishes, at now: MediaTime) throws(SIPError) -> CallHandle {
        var request = try makeRequest(.invite, to: uri, account: wishes.account)
        var call = Call(request, isCaller: true, account: wishes.account, .calling, configuration.sessionTimer)
        try configuration.capabilities.describe(in: &request)
        try SessionTimer.ask(in: &request, call.timerWishes, current: nil)
        if configuration.wantsReliableProvisionals { try request.append(.require, Bytes(Call.SentProvisional.option)) }
        for header in wishes.headers { try request.append(named: header.name, header.value) }
        var session = OfferAnswer(configuration: wishes.session, sessionID: generator.next())
        if !wishes.isOfferDelayed {
            try request.setDescription(session.offer(.everything, using: &generator))
        }
        _ = call.exchange.send(.invite, hasDescription: !wishes.isOfferDelayed)
        call.session = session
        if !wishes.isOfferDelayed, !wishes.spareSessions.isEmpty {
            call.offers = [wishes.session] + wishes.spareSessions
        }
        call.ringEnd = now + configuration.callPatience
        let handle = calls.insert { _ in call }
        call.errand = begin(request, .invite(handle), account: wishes.account, at: now)
        // The URI may lead nowhere at once; then the call has ended already.
        if calls[handle] != nil { put(call, handle) }
        settle(at: now)
        return handle
    }

    /// A request outside of dialogs, without Via and Contact.
    mutating func makeRequest(_ method: SIPMethod, to uri: SIPURI, account: AccountHandle?) throws(SIPError)
        -> SIPMessage
    {
        let known = account.flatMap { accounts[$0] }
        var request = SIPMessage(method, to: uri.withoutHeaders)
        try request.append(.maxForwards, WholeNumber(70))
        for route in known?.routes ?? configuration.routes { try request.append(.route, route) }
        var from = known?.identity ?? configuration.identity
        from.tag = makeTag()
        try request.append(.from, from)
        try request.append(.to, NameAddress(uri.withoutHeaders))
        try request.append(.callID, makeWord())
        try request.append(.cSeq, CSeq(UInt32(truncatingIfNeeded: generator.next() & 0xFFFF) + 1, method))
        if let product = configuration.product { try request.append(.userAgent, Bytes(product)) }
        return request
    }

    // MARK: What the INVITE comes to

    mutating func receiveInviteResponse(
        _ response: SIPMessage,
        of id: ErrandID,
        _ handle: CallHandle,
        on flow: Flow,
        at now: MediaTime
    ) {
        guard let status = response.statusCode else { return }
        // A call that is answered has sent it as a repair, or has dropped it since.
        let isRepair = calls[handle]?.stage == .established
        let isWanted = !isRepair || calls[handle]?.repair != nil && calls[handle]?.errand == id
        guard status < 300 else {
            if !isRepair { return refused(response, handle, at: now) }
            return isWanted ? handleFailedRepair(handle, status: status, at: now) : ()
        }
        guard var errand = errands[id], var forks = errand.forks else { return }
        let outcome: DialogForks.Outcome
        do {
            outcome = try forks.receive(response, on: flow)
        } catch {
            // Nobody can be told: the response makes no dialog.
            guard status >= 200, isWanted else { return }
            if isRepair { return handleFailedRepair(handle, status: status, at: now) }
            finish(handle, CallEnd(.network, .unacceptable, response: response), at: now)
            return
        }
        errand.forks = forks
        errands[id] = errand
        switch outcome {
        case .none, .early:
            if case .early(let dialog) = outcome { noteEarly(dialog.id, of: handle) }
            if status > 100, status < 200 { receiveProvisional(response, of: id, handle, at: now) }
        case .answered(let dialog):
            if calls[handle] == nil || !isWanted {
                acknowledgeAndLeave(dialog, id, account: errand.account, at: now)
            } else if isRepair {
                repaired(handle, dialog, by: response, id, at: now)
            } else {
                established(dialog, by: response, id, handle, at: now)
            }
        case .surplus(let dialog): acknowledgeAndLeave(dialog, id, account: errand.account, at: now)
        case .repeated(let dialog):
            for ack in errand.acknowledgements where ack.dialog == dialog { send(ack.bytes, on: ack.flow, at: now) }
        }
    }

    /// Requests of a phone that rings find their call from now on.
    private mutating func noteEarly(_ id: DialogID, of handle: CallHandle) {
        guard var call = calls[handle], call.stage == .calling, call.earlyDialogs.count < DialogForks.limit else {
            return
        }
        call.earlyDialogs.append(id)
        put(call, handle)
        callOfDialog[id] = handle
    }

    private mutating func receiveProvisional(
        _ response: SIPMessage,
        of id: ErrandID,
        _ handle: CallHandle,
        at now: MediaTime
    ) {
        guard calls[handle]?.stage == .calling else { return }
        switch reliability(of: response, id) {
        case .passedOver: break
        case .unreliable: _ = progress(response, handle, isReliable: false, at: now)
        case .new(let number):
            let progress = progress(response, handle, isReliable: true, at: now)
            guard let dialog = try? DialogID(response: response) else { return }
            // A PRACK would have to bring the answer (RFC 3262, section 5).
            guard progress.isTaken else {
                return takeBack(handle, CallEnd(.us, .unacceptable, response: response), reason: nil, at: now)
            }
            acknowledge(number, in: dialog, of: id, with: progress.answer, at: now)
        }
    }

    /// Tells of a provisional response; gives the answer to an offer of it, which a reliable one may bring, if it can be taken.
    private mutating func progress(
        _ response: SIPMessage,
        _ handle: CallHandle,
        isReliable: Bool,
        at now: MediaTime
    ) -> TakenAnswer {
        var result = TakenAnswer(isTaken: true)
        guard var call = calls[handle] else { return result }
        tell(.progress(handle, response))
        tellReferrer(of: call, handle, status: response.statusCode ?? 180, at: now)
        do {
            guard let id = try DialogID(response: response), let description = try response.sessionDescription(),
                var early = call.early(id)
            else { return result }
            switch try early.exchange.receive(.provisional, hasDescription: true) {
            case .answer: try early.session.receiveAnswer(description)
            case .offer where isReliable:
                result.isTaken = false
                result.answer = try early.session.answer(description, using: &generator)
                result.isTaken = true
                _ = early.exchange.send(.prack, hasDescription: true)
            case .offer, .none, .ignored: return result
            }
            call.setEarly(early)
            put(call, handle)
            if let agreed = early.session.agreed { tell(.agreed(handle, agreed)) }
        } catch {
            // A description that is no answer is looked at again in the 2xx; an offer is to be answered at once.
        }
        return result
    }

    private mutating func established(
        _ dialog: Dialog,
        by response: SIPMessage,
        _ id: ErrandID,
        _ handle: CallHandle,
        at now: MediaTime
    ) {
        guard var call = calls[handle] else { return }
        let isCancelled = call.stage == .ending
        if let early = call.early(dialog.id) { (call.session, call.exchange) = (early.session, early.exchange) }
        // What another phone described may have been told last.
        let isOutdone = call.early.contains { $0.dialog != dialog.id && $0.session.agreed != nil }
        call.early = []
        for id in call.earlyDialogs { callOfDialog[id] = nil }
        call.earlyDialogs = []
        call.dialog = dialog
        (call.errand, call.ringEnd, call.stage) = (nil, nil, .established)
        callOfDialog[dialog.id] = handle
        let isOfRoom = call.room != nil
        let result = isOfRoom ? TakenAnswer(isTaken: true) : takeAnswer(of: response, .success, &call)
        acknowledge(dialog, id, with: result.answer, at: now)
        call.noteMethods(of: response)
        if !isOfRoom { call.timer = (try? SessionTimer(client: response, at: now)).flatMap(\.self) }
        call.keepAgreedMedia()
        // The other side is told anew where its requests are to come.
        if !isOfRoom, hasOtherContact(errands[id], on: dialog.flow) { call.wantsRefresh = true }
        put(call, handle)
        if isCancelled { return leave(handle, call.end ?? CallEnd(.us, .cancelled), at: now) }
        if let room = call.room { return joined(room, handle, by: response, at: now) }
        guard result.isTaken else {
            return leave(handle, CallEnd(.us, .unacceptable, response: response), at: now)
        }
        let agreed = result.agreed ?? (isOutdone ? call.session?.agreed : nil)
        if let agreed { tell(.agreed(handle, agreed)) }
        tell(.established(handle))
        tellReferrer(of: call, handle, status: 200, at: now)
        goOn(handle, at: now)
    }

    /// What the description of a 2xx to an own INVITE or UPDATE comes to.
    struct TakenAnswer {
        var isTaken = false
        var agreed: AgreedSession?
        /// Our answer, for the ACK, to an offer in the 2xx.
        var answer: SessionDescription?
    }

    mutating func takeAnswer(of response: SIPMessage, _ carrier: OfferAnswerExchange.Carrier, _ call: inout Call)
        -> TakenAnswer
    {
        var result = TakenAnswer()
        do {
            let description = try response.sessionDescription()
            switch try call.exchange.receive(carrier, hasDescription: description != nil) {
            case .none, .ignored: result.isTaken = call.session?.agreed != nil
            case .answer:
                if let description { result.agreed = try call.session?.receiveAnswer(description) }
                result.isTaken = result.agreed != nil
            case .offer:
                if let description { try call.session?.receiveOffer(description) }
                result.answer = try call.session?.makeAnswer(using: &generator)
                _ = call.exchange.send(.ack, hasDescription: true)
                result.agreed = call.session?.agreed
                result.isTaken = result.agreed != nil
            }
        } catch {
            call.exchange.withdraw()
            call.session?.rollBack()
        }
        return result
    }

    /// Sends the ACK to a 2xx, and keeps it for its repeats.
    mutating func acknowledge(_ dialog: Dialog, _ id: ErrandID, with answer: SessionDescription?, at now: MediaTime) {
        guard var errand = errands[id] else { return }
        do {
            guard let number = try errand.request.cSeq()?.number else { return }
            var ack = try dialog.makeAcknowledgement(number: number)
            try DigestClient.copyCredentials(of: errand.request, to: &ack)
            if let answer { try ack.setDescription(answer) }
            let former = flows.isUsable(dialog.flow) ? dialog.flow : errand.flow ?? dialog.flow
            let flow = acknowledgementFlow(of: dialog, at: now)
            var sent = ack
            try sent.prepend(.via, transactions.makeVia(on: flow ?? former))
            let bytes = sent.bytes
            errand.acknowledgements.append(.init(dialog: dialog.id, bytes: bytes, flow: flow ?? former))
            errands[id] = errand
            if dialog.isFlowOnWay || flow != nil { return send(bytes, on: flow ?? former, at: now) }
            _ = begin(ack, .success(of: id, in: dialog.id), account: errand.account, at: now)
        } catch {
            // Without ACK the other side gives up, and ends its side.
        }
    }

    /// The flow of an ACK past a proxy, where the peer's address is known; else its name is asked for.
    private mutating func acknowledgementFlow(of dialog: Dialog, at now: MediaTime) -> Flow? {
        let next = dialog.nextHop
        let host = next.hostBytes.text.filter { $0 != "[" && $0 != "]" }
        var transport = Flow.Transport.udp
        if next.goesByTLS {
            transport = .tls
        } else if next.parameter("transport")?.lowercased() == "tcp" {
            transport = .tcp
        }
        if !dialog.isFlowOnWay, configuration.transports.contains(transport),
            let address = SocketAddress(host: host, port: next.port ?? transport.defaultPort),
            let flow = flows.flow(to: Target(transport, address, tlsName: transport == .tls ? host : nil), at: now)
        {
            return flow
        }
        return nil
    }

    /// Sends the ACK to a 2xx, which waited for names; it has no transaction.
    ///
    /// Throws: `invalidCharacter` when it cannot be written
    mutating func departAcknowledgement(
        _ id: ErrandID,
        of invite: ErrandID,
        in dialog: DialogID,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard var ack = errands[id]?.request else { return }
        try ack.prepend(.via, transactions.makeVia(on: flow))
        remove(id)
        let sent = Errand.Acknowledgement(dialog: dialog, bytes: ack.bytes, flow: flow)
        if let place = errands[invite]?.acknowledgements.firstIndex(where: { $0.dialog == dialog }) {
            errands[invite]?.acknowledgements[place] = sent
        }
        send(sent.bytes, on: flow, at: now)
    }

    /// The name of the peer leads nowhere: the ACK goes the way of its INVITE.
    mutating func acknowledge(_ invite: ErrandID, in dialog: DialogID, at now: MediaTime) {
        for ack in errands[invite]?.acknowledgements ?? [] where ack.dialog == dialog {
            send(ack.bytes, on: ack.flow, at: now)
        }
    }

    /// A phone that answered too late: its call is acknowledged and ended.
    private mutating func acknowledgeAndLeave(
        _ dialog: Dialog,
        _ id: ErrandID,
        account: AccountHandle?,
        at now: MediaTime
    ) {
        acknowledge(dialog, id, with: nil, at: now)
        var dialog = dialog
        sayFarewell(&dialog, account: account, at: now)
    }

    private mutating func refused(_ response: SIPMessage, _ handle: CallHandle, at now: MediaTime) {
        guard let call = calls[handle], let status = response.statusCode else { return }
        if call.stage == .ending, let end = call.end { return finish(handle, end, at: now) }
        finish(handle, CallEnd(.them, .refused(status), response: response), at: now)
    }

    mutating func handleFailedInvite(
        of handle: CallHandle,
        _ failure: RequestFailure,
        _ id: ErrandID,
        at now: MediaTime
    ) {
        guard let call = calls[handle] else { return }
        guard call.stage != .established else {
            // It may come to nothing at once, before its name is known.
            let isWanted = call.repair != nil && (call.errand == nil || call.errand == id)
            return isWanted ? handleFailedRepair(handle, status: nil, failure, at: now) : ()
        }
        if let end = call.end { return finish(handle, end, at: now) }
        if case .unanswered(.timeout, _) = failure { return finish(handle, CallEnd(.network, .timeout), at: now) }
        finish(handle, CallEnd(.network, .failed(failure)), at: now)
    }
}

extension Call {
    /// What was wished while it rang goes on with the media of the offer that was taken, where that was not the first.
    fileprivate mutating func keepAgreedMedia() {
        guard offerIndex > 0, let media = session?.configuration.media else { return }
        wanted?.media = media
    }

    /// What stands with one of the phones that ring; at first what the INVITE offered.
    func early(_ id: DialogID) -> Early? {
        if let known = early.first(where: { $0.dialog == id }) { return known }
        return session.map { Early(dialog: id, session: $0, exchange: exchange) }
    }

    mutating func setEarly(_ changed: Early) {
        if let place = early.firstIndex(where: { $0.dialog == changed.dialog }) {
            early[place] = changed
        } else if early.count < DialogForks.limit {
            early.append(changed)
        }
    }
}
