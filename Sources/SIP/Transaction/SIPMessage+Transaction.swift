internal import CallBasics

extension SIPMessage {
    /// The ACK to a response that is no 2xx: with the way of the INVITE, and the To of the response.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when the INVITE or the response does not hold what it needs
    /// Source: RFC 3261, section 17.1.1.3
    package func acknowledgement(to response: SIPMessage) throws(SIPError) -> SIPMessage {
        var ack = try follower(.ack)
        if let to = response.first(.to) { try ack.set(.to, to: to) }
        return ack
    }

    /// The CANCEL of this request.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when the request does not hold what it needs
    /// Source: RFC 3261, section 9.1
    package func cancellation(reason: ReasonHeader?) throws(SIPError) -> SIPMessage {
        var cancel = try follower(.cancel)
        if let reason { try cancel.append(.reason, reason) }
        return cancel
    }

    /// A request that goes the same way, hop by hop: only the topmost Via is taken over.
    private func follower(_ method: SIPMethod) throws(SIPError) -> SIPMessage {
        guard let cSeq = try cSeq(), let via = first(.via) else {
            throw SIPError(.badRequest, "The request has no CSeq or no Via. Set them before it is sent.")
        }
        var request = SIPMessage(method, to: try requestURI())
        try request.append(.via, via)
        try request.append(.maxForwards, Bytes("70"))
        try request.append(.route, .from, .to, .callID, of: self)
        try request.append(.cSeq, CSeq(cSeq.number, method))
        return request
    }
}
