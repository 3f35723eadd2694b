package import CallBasics

extension UserAgent {
    /// Sends a request outside of calls, such as OPTIONS or MESSAGE; `response` and `failed` tell what it comes to.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when it cannot be written
    package mutating func send(
        _ method: SIPMethod,
        to uri: SIPURI,
        account: AccountHandle? = nil,
        headers: [(name: String, value: String)] = [],
        type: String? = nil,
        body: [UInt8] = [],
        at now: MediaTime
    ) throws(SIPError) -> ErrandID {
        var request = try makeRequest(method, to: uri, account: account)
        if method == .options { try configuration.capabilities.describe(in: &request) }
        for header in headers { try request.append(named: header.name, header.value) }
        if let type { try request.set(.contentType, to: Bytes(type)) }
        request.setBody(body)
        let id = begin(request, .user, account: account, at: now)
        settle(at: now)
        return id
    }

    /// Sends a key by INFO, where no telephone events were agreed on.
    ///
    /// Throws: `badRequest` when the call is not answered, or there is no network
    package mutating func send(_ key: DTMFRelay, in handle: CallHandle, at now: MediaTime) throws(SIPError) {
        guard isReachable else { throw SIPError(.badRequest, "There is no network. Send the key once it is back.") }
        guard var call = calls[handle], call.stage == .established, var dialog = call.dialog else { throw Self.noCall }
        var request = try dialog.makeRequest(.info)
        try request.set(.contentType, to: Bytes("application/dtmf-relay"))
        request.setBody(key.body)
        call.dialog = dialog
        put(call, handle)
        _ = begin(request, .within(handle), account: call.account, in: dialog, at: now)
        settle(at: now)
    }

    /// What a request within a call comes to: a call that the other side does not know any more is over.
    mutating func handleWithin(_ handle: CallHandle, _ response: SIPMessage?, at now: MediaTime) {
        guard response == nil || response?.statusCode == 481 || response?.statusCode == 408 else { return }
        // Without network it says nothing of the other side.
        guard response != nil || isReachable else { return }
        leave(handle, CallEnd(.network, .timeout, response: response), at: now)
    }

    // MARK: Requests of others

    mutating func receive(_ received: SIPMessage, _ transaction: TransactionID, on flow: Flow, at now: MediaTime) {
        var request = received
        do {
            if let refusal = try configuration.capabilities.refusal(of: request) {
                return respond(refusal.status, to: request, transaction, refusal.headers, at: now)
            }
            try request.inflateBody()
            if let dialog = try DialogID(received: request) {
                return try receive(request, transaction, within: dialog, on: flow, at: now)
            }
            switch request.method {
            case .invite?: try receiveCall(request, transaction, on: flow, at: now)
            case .options?: try answerOptions(request, transaction, at: now)
            case .message?: try receiveMessage(request, transaction, at: now)
            default: respond(481, to: request, transaction, at: now)
            }
        } catch {
            // The message itself was read: it is its body that is too large.
            let status = error.code == .messageTooLarge ? 413 : error.code.statusCode ?? 400
            respond(status, to: request, transaction, at: now)
        }
    }

    private mutating func receive(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        within id: DialogID,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard let handle = callOfDialog[id], var call = calls[handle] else {
            if request.method == .notify, let handle = subscription(of: id) {
                return try receiveState(request, transaction, handle, on: flow, at: now)
            }
            return respond(481, to: request, transaction, at: now)
        }
        guard var dialog = call.dialog else {
            return try receive(request, transaction, ofRinging: id, handle, on: flow, at: now)
        }
        guard try dialog.receive(request) == .taken else {
            return respond(500, to: request, transaction, [.init(name: .retryAfter, value: "0")], at: now)
        }
        if flow != dialog.flow {
            let isMoved = try dialog.isMoved(by: request)
            if isMoved || !flows.isUsable(dialog.flow) { dialog.move(to: flow) }
        }
        call.dialog = dialog
        put(call, handle)
        switch request.method {
        case .invite?, .update?: try receiveChange(request, transaction, handle, on: flow, at: now)
        case .prack?: try receiveAcknowledgement(request, transaction, handle, at: now)
        case .bye?: receiveFarewell(request, transaction, handle, at: now)
        case .info?:
            respond(200, to: request, transaction, at: now)
            if let key = DTMFRelay(request) { tell(.key(handle, key)) }
        case .refer?: try receiveTransfer(request, transaction, handle, at: now)
        case .notify?: try receiveNotification(request, transaction, handle, at: now)
        case .options?: try answerOptions(request, transaction, at: now)
        case .message?: try receiveMessage(request, transaction, at: now)
        default: respond(481, to: request, transaction, at: now)
        }
    }

    /// A request of a phone that rings, before it has answered.
    private mutating func receive(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        ofRinging id: DialogID,
        _ handle: CallHandle,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard let call = calls[handle], let errandID = call.errand, var errand = errands[errandID],
            var forks = errand.forks, let verdict = try forks.receive(request, in: id)
        else { return respond(481, to: request, transaction, at: now) }
        let isRefresh = request.method == .update && request.bodyBytes.isEmpty
        if verdict == .taken, isRefresh { try forks.refreshTarget(by: request, in: id) }
        errand.forks = forks
        errands[errandID] = errand
        guard verdict == .taken else {
            return respond(500, to: request, transaction, [.init(name: .retryAfter, value: "0")], at: now)
        }
        switch request.method {
        case .update? where isRefresh:
            let invite = Call.ReceivedInvite(
                transaction: transaction,
                request: request,
                flow: flow,
                tag: id.localTag,
                offer: nil
            )
            transactions.respond(try dialogResponse(200, to: invite), to: transaction, at: now)
        // It has met ours, or has to wait for the answer to the call (RFC 3311, section 5.2).
        case .update? where (call.early(id)?.exchange ?? call.exchange).isLocalOfferPending:
            respond(491, to: request, transaction, at: now)
        case .update?: respond(500, to: request, transaction, [retryAfter()], at: now)
        case .info?:
            respond(200, to: request, transaction, at: now)
            if let key = DTMFRelay(request) { tell(.key(handle, key)) }
        case .options?: try answerOptions(request, transaction, at: now)
        case .message?: try receiveMessage(request, transaction, at: now)
        default: respond(481, to: request, transaction, at: now)
        }
    }

    /// Tells what a call would get, and what is taken.
    private mutating func answerOptions(_ request: SIPMessage, _ transaction: TransactionID, at now: MediaTime)
        throws(SIPError)
    {
        let isFull = calls.count >= configuration.callCount
        var response = try request.response(
            status: isFull ? 486 : 200,
            reason: SIPStatus.phrase(isFull ? 486 : 200),
            tag: makeTag()
        )
        try configuration.capabilities.describe(in: &response)
        if let product = configuration.product { try response.append(.server, Bytes(product)) }
        transactions.respond(response, to: transaction, at: now)
    }

    /// Tells of a MESSAGE that can be read; in its envelope, too, it has to be of a type that is taken.
    private mutating func receiveMessage(_ request: SIPMessage, _ transaction: TransactionID, at now: MediaTime)
        throws(SIPError)
    {
        // One that may be passed over was not judged before.
        guard request.first(.contentEncoding) == nil || request.bodyBytes.isEmpty else {
            let refusal = Capabilities.unknownEncoding
            return respond(refusal.status, to: request, transaction, refusal.headers, at: now)
        }
        guard var message = try InstantMessage(request) else {
            let types = InstantMessage.types.joined(separator: ", ")
            return respond(415, to: request, transaction, [.init(name: .accept, value: types)], at: now)
        }
        if let room = room(at: message.sender).flatMap({ rooms[$0] }), room.stage != .invited,
            let address = room.address
        {
            message.place(in: address)
        }
        if case .text = message.content, let status = configuration.textRefusal {
            return respond(status, to: request, transaction, at: now)
        }
        let waits = !configuration.answersMessages
        if !waits { respond(200, to: request, transaction, at: now) }
        tell(.message(message, request, waits ? transaction : nil))
    }

    /// Answers a MESSAGE that waits for that.
    package mutating func answer(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        status: Int,
        at now: MediaTime
    ) {
        respond(status, to: request, transaction, at: now)
        settle(at: now)
    }

    /// Answers a request without a body.
    mutating func respond(
        _ status: Int,
        to request: SIPMessage,
        _ transaction: TransactionID,
        _ headers: [Capabilities.Refusal.Header] = [],
        tag: Bytes? = nil,
        at now: MediaTime
    ) {
        do {
            let refusal = Capabilities.Refusal(status: status, headers: headers)
            var response = try refusal.response(to: request, tag: tag ?? makeTag())
            if let product = configuration.product { try response.append(.server, Bytes(product)) }
            transactions.respond(response, to: transaction, at: now)
        } catch {
            // What was read from one line can be written in one; nothing else is here.
            assertionFailure(error.message)
        }
    }
}
