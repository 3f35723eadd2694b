package import CallBasics

/// The provisional responses to one INVITE that the called side repeats until a PRACK comes, one at a time.
///
/// Its numbers are the INVITE's own: another INVITE has another one of these.
///
/// Source: RFC 3262, section 3
package struct ReliableResponder: Sendable {
    package enum Action: Hashable, Sendable {
        case send
        /// No PRACK came: the INVITE is to be refused by 504.
        case giveUp
    }

    private struct Pending: Sendable {
        let number: UInt32
        let cSeq: CSeq
        let bringsDescription: Bool
        var interval: Duration
        var repeatAt: MediaTime
        let endAt: MediaTime
    }

    private let timers: TransactionTimers
    private var nextNumber: UInt32
    private var pending: Pending?
    /// Whether the INVITE has its final response: nothing is repeated any more, and a PRACK may still come.
    private var isOver = false

    /// The numbers begin with `number`, 1 to 2^31 - 1, which is to be drawn.
    package init(_ timers: TransactionTimers, number: UInt32) {
        precondition(1...0x7FFF_FFFF ~= number)
        (self.timers, nextNumber) = (timers, number)
    }

    package var deadline: MediaTime? { isOver ? nil : pending.map { min($0.repeatAt, $0.endAt) } }
    /// Whether another one may be sent now.
    package var isFree: Bool { pending == nil || isOver }
    /// Whether a 2xx has to wait: what was offered or answered may be unknown to the caller.
    package var holdsAnswer: Bool { !isOver && pending?.bringsDescription ?? false }

    /// Makes a provisional response a reliable one, to be sent now; there must be none that waits.
    ///
    /// Throws: `badRequest` when it has no CSeq; nothing has changed then
    package mutating func begin(_ response: inout SIPMessage, at now: MediaTime) throws(SIPError) {
        precondition(pending == nil && !isOver)
        guard let cSeq = try response.cSeq() else {
            throw SIPError(.badRequest, "The response has no CSeq. Make it from its request.")
        }
        var reliable = response
        try reliable.append(.require, Bytes("100rel"))
        try reliable.set(.rSeq, to: WholeNumber(nextNumber))
        response = reliable
        pending = Pending(
            number: nextNumber,
            cSeq: cSeq,
            bringsDescription: !response.bodyBytes.isEmpty,
            interval: timers.t1,
            repeatAt: now + timers.t1,
            endAt: now + timers.patience
        )
        // It does not wrap: from below 2^31 on, one a round trip would last for years.
        nextNumber += 1
    }

    /// Takes a PRACK; false when it is about no response that waits: 481.
    package mutating func receive(_ acknowledgement: RAck) -> Bool {
        guard let waiting = pending, waiting.number == acknowledgement.responseNumber,
            waiting.cSeq == acknowledgement.cSeq
        else { return false }
        pending = nil
        return true
    }

    /// The INVITE has its final response.
    package mutating func end() { isOver = true }

    /// Does what is due; before `deadline` that is nothing.
    package mutating func handleTimeout(at now: MediaTime) -> Action? {
        guard !isOver, var waiting = pending else { return nil }
        guard now < waiting.endAt else {
            pending = nil
            return .giveUp
        }
        guard now >= waiting.repeatAt else { return nil }
        // Unlike a final response it is not capped by T2.
        waiting.interval = waiting.interval * 2
        waiting.repeatAt = now + waiting.interval
        pending = waiting
        return .send
    }
}

/// The reliable provisional responses to one INVITE, of one phone, on the caller's side: each is acknowledged once, in order.
///
/// A re-INVITE has numbers of its own, and so another one of these.
///
/// Source: RFC 3262, section 4
package struct ReliableReceiver: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        /// It is an ordinary one, or a final one.
        case unreliable
        /// It is new: it is to be acknowledged by a PRACK with this.
        case new(RAck)
        /// It came before, or too early: nothing is to be done with it.
        case passedOver
    }

    private var last: UInt32?

    package init() {}

    /// Takes a response to the INVITE.
    ///
    /// Throws: `badRequest` when its RSeq, Require or CSeq breaks the grammar
    package mutating func receive(_ response: SIPMessage) throws(SIPError) -> Verdict {
        guard let status = response.statusCode, 101...199 ~= status,
            try response.tokens(of: .require).contains(where: { $0.lowercased() == "100rel" }),
            let number = try response.value(.rSeq, as: WholeNumber.self)?.value, let cSeq = try response.cSeq(),
            number > 0
        else { return .unreliable }
        if let last, number != last &+ 1 { return .passedOver }
        last = number
        return .new(RAck(responseNumber: number, cSeq: cSeq))
    }
}
