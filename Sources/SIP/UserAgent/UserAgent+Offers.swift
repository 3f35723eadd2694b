internal import CallBasics
internal import SDP

/// What a call offers when what it offered before is not acceptable.
extension UserAgent {
    /// Sends the INVITE of a call once more, with the next session that may be acceptable; false when there is none.
    ///
    /// What was agreed on before the answer (early media) is not offered otherwise.
    mutating func offerOther(_ errand: Errand, _ id: ErrandID, on flow: Flow, at now: MediaTime) -> Bool {
        guard case .invite(let handle) = errand.owner, !errand.isTakenBack, let call = calls[handle],
            call.stage == .calling, call.early.allSatisfy({ $0.session.agreed == nil })
        else { return false }
        var changed = errand
        guard offer(call.offerIndex + 1, in: &changed, of: handle) else { return false }
        errands[id] = changed
        depart(id, on: flow, at: now)
        return true
    }

    /// Puts one of the sessions that a call may offer into its INVITE; false when there is none, or it cannot be written.
    mutating func offer(_ index: Int, in errand: inout Errand, of handle: CallHandle) -> Bool {
        guard var call = calls[handle], call.offers.indices.contains(index), var session = call.session else {
            return false
        }
        var wishes = call.offers[index]
        if let wanted = call.wanted { (wishes.address, wishes.hold) = (wanted.address, wanted.hold) }
        session.rollBack()
        session.configuration = wishes
        var changed = errand
        do throws(SIPError) {
            try changed.request.setDescription(session.offer(.everything, using: &generator))
        } catch {
            return false
        }
        (call.session, call.offerIndex, call.early) = (session, index, [])
        put(call, handle)
        errand = changed
        return true
    }
}

extension OfferAnswer {
    /// `makeOffer`, for who makes a message of it.
    mutating func offer(_ scope: Scope, using generator: inout SecretGenerator) throws(SIPError) -> SessionDescription {
        do throws(SDPError) {
            return try makeOffer(scope, using: &generator)
        } catch {
            throw SIPError(.badRequest, error.message)
        }
    }

    /// Takes an offer and answers it, for who makes a message of that; nothing has changed when it throws.
    mutating func answer(
        _ offer: SessionDescription,
        using generator: inout SecretGenerator
    ) throws(SIPError) -> SessionDescription {
        var changed = self
        do throws(SDPError) {
            try changed.receiveOffer(offer)
            let answer = try changed.makeAnswer(using: &generator)
            self = changed
            return answer
        } catch {
            throw SIPError(.badRequest, error.message)
        }
    }
}
