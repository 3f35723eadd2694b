/// Which message of a session carries an offer, and which the answer to it; one exchange at a time.
///
///     offer in             answer in
///     INVITE               its 2xx, or a reliable provisional response
///     2xx to an INVITE     its ACK
///     reliable 1xx         its PRACK
///     PRACK                its 2xx
///     UPDATE               its 2xx
///
/// Source: RFC 3264; RFC 3261, section 13.2.1; RFC 3262, section 5; RFC 3311, section 5; RFC 6337, table 1
package struct OfferAnswerExchange: Hashable, Sendable {
    /// A message that can bring a session description.
    package enum Carrier: Hashable, Sendable, CaseIterable {
        case invite, provisional, success, ack, prack, prackSuccess, update, updateSuccess

        /// Those that bring the answer to an offer in this one.
        fileprivate var answers: [Carrier] {
            switch self {
            case .invite: [.provisional, .success]
            case .provisional: [.prack]
            case .success: [.ack]
            case .prack: [.prackSuccess]
            case .update: [.updateSuccess]
            case .ack, .prackSuccess, .updateSuccess: []
            }
        }

        /// Whether the answer has to be in that one, if it was in none before.
        fileprivate func mustAnswer(_ offer: Carrier) -> Bool { offer.answers.last == self }

        fileprivate var isRequest: Bool { self == .invite || self == .prack || self == .update }
    }

    /// What a description in a message is.
    package enum Meaning: Hashable, Sendable {
        /// There is none, and none was due.
        case none
        case offer
        case answer
        /// It repeats the answer that came by an earlier response, or comes where nothing is due.
        case ignored
    }

    /// Why a received message is not taken.
    package enum Refusal: Error, Hashable, Sendable {
        /// An offer met ours, which is not answered: 491.
        case pending
        /// An offer came before the last one was answered: 500 with Retry-After of 0 to 10 s.
        case busy
        /// The answer to our offer is not there: the session ends.
        case missingAnswer
    }

    private enum State: Hashable, Sendable {
        case idle
        case local(Carrier)
        case remote(Carrier)
    }

    private var state = State.idle
    /// Whether the offer of the INVITE that runs has its answer.
    private var isInviteAnswered = false

    package init() {}

    /// Whether an offer of ours waits for its answer.
    package var isLocalOfferPending: Bool { if case .local = state { true } else { false } }
    /// Whether an offer of the peer's waits for our answer.
    package var isRemoteOfferPending: Bool { if case .remote = state { true } else { false } }

    /// Whether `carrier` must bring a description, if it is to be sent now: an answer that is due.
    package func mustAnswer(in carrier: Carrier) -> Bool {
        guard case .remote(let offer) = state else { return false }
        return carrier.mustAnswer(offer)
    }

    /// Whether this side may send an offer now.
    package var mayOffer: Bool { state == .idle }

    /// A message with or without a description was received.
    ///
    /// Throws: why it is refused; nothing has changed then, but that a missing answer ends the exchange
    package mutating func receive(_ carrier: Carrier, hasDescription: Bool) throws(Refusal) -> Meaning {
        if case .local(let offer) = state, offer.answers.contains(carrier) {
            guard hasDescription else {
                guard carrier.mustAnswer(offer) else { return .none }
                state = .idle
                throw .missingAnswer
            }
            state = .idle
            isInviteAnswered = offer == .invite
            return .answer
        }
        if carrier == .invite { try refuseIfBusy() }
        guard hasDescription else {
            if carrier == .invite { isInviteAnswered = false }
            return .none
        }
        guard carrier.isRequest || carrier == .success || carrier == .provisional, !isRepeat(carrier) else {
            return .ignored
        }
        try refuseIfBusy()
        if carrier == .invite { isInviteAnswered = false }
        state = .remote(carrier)
        return .offer
    }

    private func refuseIfBusy() throws(Refusal) {
        switch state {
        case .idle: break
        case .local: throw .pending
        case .remote: throw .busy
        }
    }

    /// A response to an INVITE whose offer was answered says the same once more (RFC 6337, section 3.1.1).
    private func isRepeat(_ carrier: Carrier) -> Bool {
        isInviteAnswered && (carrier == .success || carrier == .provisional)
    }

    /// A message with or without a description is sent; to send one where none may be is a mistake of the caller, and `ignored`.
    package mutating func send(_ carrier: Carrier, hasDescription: Bool) -> Meaning {
        guard hasDescription else {
            if carrier == .invite { isInviteAnswered = false }
            return .none
        }
        if case .remote(let offer) = state, offer.answers.contains(carrier) {
            state = .idle
            isInviteAnswered = offer == .invite
            return .answer
        }
        guard state == .idle, !carrier.answers.isEmpty, !isRepeat(carrier) else { return .ignored }
        if carrier == .invite { isInviteAnswered = false }
        state = .local(carrier)
        return .offer
    }

    /// The request that carried an offer was refused, by either side: what was agreed before stays.
    package mutating func withdraw() { state = .idle }
}
