internal import CallBasics

/// A request on its way: past names, targets, flows and challenges, to its final response.
///
///     begin ──► resolve ──► depart ──► final response: to its owner
///                  ▲           │ 401, 407: with credentials, once more
///                  └── next ───┘ 503, timeout, transport error: to the next target
///                                3xx: on to a Contact of it
///
/// One of an INVITE stays for as long as its 2xx may come again.
struct Errand: Sendable {
    /// Who hears of it.
    enum Owner: Hashable, Sendable {
        /// The INVITE that makes a call.
        case invite(CallHandle)
        /// An INVITE or UPDATE within a call that changes or refreshes its session.
        case change(CallHandle)
        /// Another request within a call, such as INFO.
        case within(CallHandle)
        /// The REFER of a call.
        case refer(CallHandle)
        /// A NOTIFY within a call, of which nothing is heard.
        case notification(CallHandle)
        /// The PRACK of a provisional response to that INVITE.
        case acknowledgement(of: ErrandID, in: DialogID)
        /// The ACK to a 2xx of that INVITE, which waits for names.
        case success(of: ErrandID, in: DialogID)
        /// The BYE of a call that has ended, or of a fork.
        case farewell
        case registration(AccountHandle)
        case subscription(SubscriptionHandle)
        /// The BYE that leaves a room.
        case roomFarewell(RoomHandle)
        case user
    }

    /// Without Via; its CSeq and credentials are those of the last departure.
    var request: SIPMessage
    let owner: Owner
    var account: AccountHandle?
    /// Whether its dialog is one of TLS alone, whatever its target says since.
    var isSecure = false
    var attempt = DigestAttempt()
    @Boxed var targets: TargetList?
    var redirection = Redirection()
    var transaction: TransactionID?
    var flow: Flow?
    /// Whether it has left at least once.
    var hasDeparted = false
    /// Whether a provisional response has come.
    var isHeard = false
    /// Whether it is to be taken back as soon as that can be.
    var isTakenBack = false
    /// The dialogs that the INVITE makes; nil for others.
    @Boxed var forks: DialogForks?
    /// What came of reliable provisional responses, for each dialog of an INVITE.
    var receivers: [DialogID: ReliableReceiver] = [:]
    /// The ACKs of its 2xx, for each that comes again.
    var acknowledgements: [Acknowledgement] = []

    struct Acknowledgement: Sendable {
        let dialog: DialogID
        let bytes: [UInt8]
        let flow: Flow
    }

    var method: SIPMethod? { request.method }

    init(_ request: SIPMessage, _ owner: Owner, account: AccountHandle?) {
        (self.request, self.owner, self.account) = (request, owner, account)
    }
}

extension UserAgent {
    /// Sends a request towards its first Route, else its Request-URI.
    mutating func begin(_ request: SIPMessage, _ owner: Errand.Owner, account: AccountHandle?, at now: MediaTime)
        -> ErrandID
    {
        let id = errands.insert { _ in Errand(request, owner, account: account) }
        resolve(id, at: now)
        return id
    }

    /// Sends a request by the flow of its dialog, or by names when that has died or is not on the way.
    mutating func begin(
        _ request: SIPMessage,
        _ owner: Errand.Owner,
        account: AccountHandle?,
        in dialog: Dialog,
        at now: MediaTime
    ) -> ErrandID {
        var errand = Errand(request, owner, account: account)
        errand.isSecure = dialog.isSecure
        let made = errand
        let id = errands.insert { _ in made }
        if dialog.isFlowOnWay, flows.isUsable(dialog.flow) {
            depart(id, on: dialog.flow, at: now)
        } else {
            resolve(id, at: now)
        }
        return id
    }

    mutating func resolve(_ id: ErrandID, at now: MediaTime) {
        guard let errand = errands[id] else { return }
        do {
            let routes = try errand.request.list(.route, as: NameAddress.self)
            var uri = try errand.request.requestURI()
            if let route = routes.first { uri = route.uri }
            let wishes = ResolutionWishes(
                transports: configuration.transports,
                isSecure: errand.isSecure || errand.request.isSecure,
                families: configuration.families
            )
            errandOfLookup[resolver.resolve(uri, wishes, at: now)] = id
        } catch {
            end(id, .invalid(error), at: now)
        }
    }

    /// The names have answered.
    mutating func resolved(_ id: ErrandID, _ resolution: Resolution, at now: MediaTime) {
        guard var errand = errands[id] else { return }
        guard !errand.isTakenBack else { return end(id, .unanswered(.unreachable, triedCount: 0), at: now) }
        errand.targets = TargetList(resolution.targets, first: errand.account.flatMap { accounts[$0]?.target })
        errands[id] = errand
        tell(.targets(id, resolution.targets))
        advance(id, at: now)
    }

    /// Goes to the next target.
    private mutating func advance(_ id: ErrandID, at now: MediaTime) {
        while var errand = errands[id], var list = errand.targets {
            guard let target = list.next(closed, at: now) else {
                return end(id, .unanswered(list.outcome ?? .unreachable, triedCount: list.tried.count), at: now)
            }
            let choice = flows.flow(for: errand.request, to: target, allowing: configuration.transports, at: now)
            if choice == nil { list.fail(.unreachable, &closed, at: now) }
            errand.targets = list
            errands[id] = errand
            if let choice { return depart(id, on: choice.flow, at: now) }
        }
    }

    /// Hands the request to a transaction of its own; with what is known of who asks for credentials, unless it `hasAnswer` to a challenge.
    mutating func depart(_ id: ErrandID, on flow: Flow, hasAnswer: Bool = false, at now: MediaTime) {
        guard var errand = errands[id] else { return }
        do {
            if case .success(let invite, let dialog) = errand.owner {
                return try departAcknowledgement(id, of: invite, in: dialog, on: flow, at: now)
            }
            if errand.hasDeparted { try renumber(&errand) }
            try place(contact(on: flow, of: errand), in: &errand)
            if !hasAnswer { try authorize(&errand) }
            if case .invite = errand.owner { errand.forks = DialogForks(errand.request) }
            let transaction = try transactions.send(errand.request, on: flow, at: now)
            if let former = errand.transaction { errandOfTransaction[former] = nil }
            (errand.transaction, errand.flow, errand.hasDeparted, errand.isHeard) = (transaction, flow, true, false)
            errandOfTransaction[transaction] = id
            errands[id] = errand
            errands.setDeadline(of: id, to: patience(with: errand).map { now + $0 })
            if errand.isTakenBack { transactions.cancel(transaction, at: now) }
        } catch {
            end(id, .invalid(error), at: now)
        }
    }

    /// Gives a request the credentials that are known, in the place of those that it left with before.
    ///
    /// Each count is used once (RFC 7616, section 3.4), and another server, or another body, wants others. Where it was redirected, only
    /// who asks gets some.
    private mutating func authorize(_ errand: inout Errand) throws(SIPError) {
        guard let account = errand.account, var known = accounts[account] else { return }
        if errand.hasDeparted {
            errand.request.remove(.authorization)
            errand.request.remove(.proxyAuthorization)
            errand.attempt = DigestAttempt()
        }
        guard !errand.redirection.hasLed else { return }
        try known.digest.authorize(&errand.request, using: &generator)
        accounts[account] = known
    }

    /// How long a request that leaves waits for its final response; that of the INVITE of a call is the call's own business.
    private func patience(with errand: Errand) -> Duration? {
        guard errand.method == .invite else { return configuration.requestPatience }
        // One that has a provisional response would wait without end (RFC 3261, section 17.1.1.2).
        if case .change = errand.owner { return Self.changePatience }
        return nil
    }

    private static let changePatience = Duration.seconds(60)

    // MARK: What comes back

    /// A response of its transaction.
    mutating func receive(_ response: SIPMessage, of id: ErrandID, on flow: Flow, at now: MediaTime) {
        guard var errand = errands[id], let status = response.statusCode else { return }
        noteOwnEnd(of: flow, response)
        if status < 200 {
            errand.isHeard = true
            errands[id] = errand
            return deliver(response, of: errand, id, on: flow, at: now)
        }
        if status == 401 || status == 407, retry(&errand, id, after: response, on: flow, at: now) { return }
        if let failure = TargetFailure(response), errand.targets != nil, !errand.isTakenBack {
            return goOn(id, failure, response, at: now)
        }
        if status == 422, lengthen(errand, id, after: response, on: flow, at: now) { return }
        if status == 488 || status == 606, offerOther(errand, id, on: flow, at: now) { return }
        if status >= 300, redirect(id, after: response, at: now) { return }
        if status < 300, let account = errand.account, var known = accounts[account] {
            known.digest.handleSuccess(response, to: errand.request)
            accounts[account] = known
        }
        guard errand.method == .invite, status < 300 else {
            remove(id)
            return deliver(response, of: errand, id, on: flow, at: now)
        }
        // What the 2xx of other phones, and its repeats, need is here for as long as they may come.
        if errand.acknowledgements.isEmpty { errands.setDeadline(of: id, to: now + timers.patience) }
        deliver(response, of: errand, id, on: flow, at: now)
    }

    /// Sends it once more with credentials; false when it cannot be.
    private mutating func retry(
        _ errand: inout Errand,
        _ id: ErrandID,
        after response: SIPMessage,
        on flow: Flow,
        at now: MediaTime
    ) -> Bool {
        guard let account = errand.account, var known = accounts[account], !errand.isTakenBack else { return false }
        do {
            var request = errand.request
            let answer = try known.digest.answer(response, to: &request, &errand.attempt, using: &generator)
            accounts[account] = known
            guard case .retry = answer else { return false }
            errand.request = request
            errands[id] = errand
            depart(id, on: flow, hasAnswer: true, at: now)
            return true
        } catch {
            return false
        }
    }

    /// Sends the INVITE of a call once more, for a session as long as the other side wants it; false when that was done before.
    ///
    /// Source: RFC 4028, section 7.3
    private mutating func lengthen(
        _ errand: Errand,
        _ id: ErrandID,
        after refusal: SIPMessage,
        on flow: Flow,
        at now: MediaTime
    ) -> Bool {
        guard case .invite(let handle) = errand.owner, !errand.isTakenBack, var call = calls[handle],
            call.timerWishes == configuration.sessionTimer,
            let wishes = SessionTimer.wishes(after: refusal, to: call.timerWishes)
        else { return false }
        var changed = errand
        do { try SessionTimer.ask(in: &changed.request, wishes, current: nil) } catch { return false }
        call.timerWishes = wishes
        put(call, handle)
        errands[id] = changed
        depart(id, on: flow, at: now)
        return true
    }

    /// The transaction has ended without a final response.
    mutating func fail(_ id: ErrandID, _ failure: TransactionFailure, at now: MediaTime) {
        guard let errand = errands[id] else { return }
        // By a connection that a provisional response came by, the other side was reached.
        if failure == .timeout, !errand.isHeard, let flow = errand.flow { flows.noteUnanswered(on: flow, at: now) }
        if errand.targets == nil, failure == .unreachable, !errand.isTakenBack, !errand.isHeard {
            // Its flow has died: by names, then.
            return resolve(id, at: now)
        }
        goOn(id, TargetFailure(failure), nil, at: now)
    }

    private mutating func goOn(_ id: ErrandID, _ failure: TargetFailure, _ response: SIPMessage?, at now: MediaTime) {
        guard var errand = errands[id] else { return }
        var tried = 1
        if var list = errand.targets {
            if failure == .unreachable,
                let flow = flows.datagramFlow(insteadOf: errand.flow, to: list.current, at: now)
            {
                return depart(id, on: flow, at: now)
            }
            list.fail(failure, &closed, at: now)
            tried = list.tried.count
            errand.targets = list
            errands[id] = errand
            if !errand.isTakenBack, list.hasNext { return advance(id, at: now) }
        }
        guard let response, let flow = errand.flow else {
            return end(id, .unanswered(failure, triedCount: tried), at: now)
        }
        if redirect(id, after: response, at: now) { return }
        remove(id)
        deliver(response, of: errand, id, on: flow, at: now)
    }

    /// Its patience is over, or the time in which a 2xx may come again.
    mutating func handleTimeout(of id: ErrandID, at now: MediaTime) {
        guard var errand = errands[id] else { return }
        errands.setDeadline(of: id, to: nil)
        guard errand.method != .invite else {
            guard case .change = errand.owner, errand.acknowledgements.isEmpty else { return remove(id) }
            guard !errand.isTakenBack, let transaction = errand.transaction else {
                return end(id, .unanswered(.timeout, triedCount: 1), at: now)
            }
            errand.isTakenBack = true
            errands[id] = errand
            // Its response, or the end of its transaction, comes before.
            errands.setDeadline(of: id, to: now + timers.patience * 2)
            return transactions.cancel(transaction, at: now)
        }
        if !errand.isHeard, let flow = errand.flow { flows.noteUnanswered(on: flow, at: now) }
        if let transaction = errand.transaction { errandOfTransaction[transaction] = nil }
        goOn(id, .timeout, nil, at: now)
    }

    /// Ends it without a response.
    mutating func end(_ id: ErrandID, _ failure: RequestFailure, at now: MediaTime) {
        guard let errand = errands[id], !redirect(id, after: nil, at: now) else { return }
        remove(id)
        switch errand.owner {
        case .invite(let handle): handleFailedInvite(of: handle, failure, id, at: now)
        case .change(let handle): handleChange(of: handle, nil, failure, errand.request, at: now)
        case .within(let handle): handleWithin(handle, nil, at: now)
        case .registration(let handle): handleFailedRegistration(of: handle, failure, errand, at: now)
        case .refer(let handle): handleReferral(handle, nil, at: now)
        case .subscription(let handle): handleFailedSubscription(of: handle, failure, at: now)
        case .roomFarewell(let handle): handleFarewell(of: handle, nil, at: now)
        case .success(let invite, let dialog): acknowledge(invite, in: dialog, at: now)
        case .user: tell(.failed(id, failure))
        case .farewell, .notification, .acknowledgement: break
        }
    }

    /// Takes it out of every table; its transaction ends by itself.
    mutating func remove(_ id: ErrandID) {
        guard let errand = errands.remove(id) else { return }
        if let transaction = errand.transaction { errandOfTransaction[transaction] = nil }
    }

    private mutating func deliver(
        _ response: SIPMessage,
        of errand: Errand,
        _ id: ErrandID,
        on flow: Flow,
        at now: MediaTime
    ) {
        switch errand.owner {
        case .invite(let handle): receiveInviteResponse(response, of: id, handle, on: flow, at: now)
        case .change(let handle):
            receiveChangeResponse(response, of: id, errand, handle, on: flow, at: now)
        case .within(let handle): handleWithin(handle, response, at: now)
        case .registration(let handle): receive(response, ofRegistration: handle, errand, at: now)
        case .refer(let handle): handleReferral(handle, response, at: now)
        case .subscription(let handle): receive(response, ofSubscription: handle, on: flow, at: now)
        case .roomFarewell(let handle): handleFarewell(of: handle, response, at: now)
        case .user: tell(.response(id, response, flow))
        case .farewell, .notification, .acknowledgement, .success: break
        }
    }
}

extension SIPMethod {
    /// Whether its requests say where the peer's are to come.
    ///
    /// REGISTER is not here: its Contact is the binding's.
    var needsContact: Bool {
        self == .invite || self == .update || self == .subscribe || self == .refer || self == .notify
    }
}
