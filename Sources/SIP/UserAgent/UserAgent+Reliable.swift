internal import CallBasics
internal import SDP

/// Provisional responses that do not get lost.
///
/// Source: RFC 3262
extension UserAgent {
    // MARK: Of others

    /// What a provisional response to an own INVITE is; one that came before, or too early, is passed over.
    mutating func reliability(of response: SIPMessage, _ id: ErrandID) -> ReliableReceiver.Verdict {
        guard var errand = errands[id], let dialog = try? DialogID(response: response) else { return .unreliable }
        var receiver = errand.receivers[dialog] ?? ReliableReceiver()
        guard let verdict = try? receiver.receive(response), verdict != .unreliable else { return .unreliable }
        guard errand.receivers[dialog] != nil || errand.receivers.count < DialogForks.limit else { return .passedOver }
        errand.receivers[dialog] = receiver
        errands[id] = errand
        return verdict
    }

    /// Acknowledges a reliable provisional response to an own INVITE: PRACK.
    mutating func acknowledge(
        _ number: RAck,
        in dialogID: DialogID,
        of id: ErrandID,
        with answer: SessionDescription? = nil,
        at now: MediaTime
    ) {
        guard let errand = errands[id] else { return }
        do {
            guard let (made, dialog) = try makeAcknowledgement(in: dialogID, of: id) else { return }
            var request = made
            try request.append(.rAck, number)
            if let answer { try request.setDescription(answer) }
            _ = begin(request, .acknowledgement(of: id, in: dialogID), account: errand.account, in: dialog, at: now)
        } catch {
            // Without PRACK the other side gives up.
        }
    }

    private mutating func makeAcknowledgement(in dialogID: DialogID, of id: ErrandID) throws(SIPError)
        -> (SIPMessage, Dialog)?
    {
        guard var errand = errands[id] else { return nil }
        if var forks = errand.forks {
            let made = try forks.makeRequest(.prack, in: dialogID)
            errand.forks = forks
            errands[id] = errand
            return made
        }
        guard case .change(let handle) = errand.owner, var call = calls[handle], var dialog = call.dialog,
            dialog.id == dialogID
        else { return nil }
        let request = try dialog.makeRequest(.prack)
        call.dialog = dialog
        put(call, handle)
        return (request, dialog)
    }

    // MARK: Own

    /// Whether the own provisional responses to an INVITE are to be acknowledged.
    func isReliable(_ invite: SIPMessage) throws(SIPError) -> Bool {
        guard configuration.capabilities.methods.contains(.prack) else { return false }
        if try invite.requires100rel { return true }
        guard configuration.wantsReliableProvisionals else { return false }
        return try invite.tokens(of: .supported).contains { $0.lowercased() == Call.SentProvisional.option }
    }

    /// Takes the PRACK of a caller.
    ///
    /// Throws: `badRequest` when it, or its description, cannot be read
    mutating func receiveAcknowledgement(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ handle: CallHandle,
        at now: MediaTime
    ) throws(SIPError) {
        guard var call = calls[handle], var provisional = call.provisional,
            let number = try request.value(.rAck, as: RAck.self), provisional.responder.receive(number)
        else { return respond(481, to: request, transaction, at: now) }
        let offer = try request.sessionDescription()
        call.provisional = provisional
        do throws(OfferAnswerExchange.Refusal) {
            let meaning = try call.exchange.receive(.prack, hasDescription: offer != nil)
            guard meaning == .offer, let offer else {
                put(call, handle)
                respond(200, to: request, transaction, at: now)
                return answerIfWanted(handle, at: now)
            }
            answer(offer, in: request, transaction, call, handle, at: now)
        } catch {
            put(call, handle)
            respond(error == .busy ? 500 : 491, to: request, transaction, at: now)
        }
    }

    /// Answers a further offer, which the caller made in its PRACK.
    private mutating func answer(
        _ offer: SessionDescription,
        in request: SIPMessage,
        _ transaction: TransactionID,
        _ call: Call,
        _ handle: CallHandle,
        at now: MediaTime
    ) {
        var changed = call
        do {
            guard var session = call.session else { throw Self.noCall }
            var response = try request.response(status: 200, reason: SIPStatus.phrase(200), tag: [])
            try response.setDescription(try session.answer(offer, using: &generator))
            _ = changed.exchange.send(.prackSuccess, hasDescription: true)
            changed.session = session
            // What was told before is over, and the 200 to the INVITE has nothing to tell.
            changed.invite?.isSettled = true
            put(changed, handle)
            transactions.respond(response, to: transaction, at: now)
            if let agreed = session.agreed { tell(.agreed(handle, agreed)) }
        } catch {
            changed.exchange.withdraw()
            put(changed, handle)
            respond(488, to: request, transaction, at: now)
        }
        answerIfWanted(handle, at: now)
    }

    /// Answers the call that was to be answered once the caller knows the session.
    private mutating func answerIfWanted(_ handle: CallHandle, at now: MediaTime) {
        guard var call = calls[handle], let session = call.wantedAnswer else { return }
        call.wantedAnswer = nil
        put(call, handle)
        // What cannot be answered is refused, and that is told.
        try? answer(handle, session, at: now)
    }
}

extension SIPMessage {
    /// Whether the caller takes no provisional responses but reliable ones.
    var requires100rel: Bool {
        get throws(SIPError) {
            try tokens(of: .require).contains { $0.lowercased() == Call.SentProvisional.option }
        }
    }
}

extension Call {
    /// A provisional response that is repeated until its PRACK.
    struct SentProvisional: Sendable {
        /// The name of the extension.
        static let option = "100rel"

        let transaction: TransactionID
        var response: SIPMessage
        var responder: ReliableResponder
    }
}
