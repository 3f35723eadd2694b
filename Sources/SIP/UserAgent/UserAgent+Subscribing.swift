package import CallBasics

/// Subscriptions: this side is told of the state of others.
///
/// Source: RFC 6665
extension UserAgent {
    /// Asks to be told of a state, again and again until that is ended; `subscription` tells what becomes of it.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when it cannot be written
    package mutating func subscribe(_ wishes: SubscriptionWishes, at now: MediaTime) throws(SIPError)
        -> SubscriptionHandle
    {
        let handle = try subscribe(wishes, of: nil, at: now)
        settle(at: now)
        return handle
    }

    /// As the other; a room that it is about hears of it in the place of the user.
    mutating func subscribe(_ wishes: SubscriptionWishes, of room: RoomHandle?, at now: MediaTime) throws(SIPError)
        -> SubscriptionHandle
    {
        _ = try EventHeader(parsing: Bytes(wishes.event))
        var subscription = Subscription(wishes)
        subscription.room = room
        let made = subscription
        let request = try makeSubscribe(made)
        let handle = subscriptions.insert { _ in made }
        send(request, of: handle, at: now)
        return handle
    }

    /// Ends a subscription: once the other side knows, or does not answer, `ended` is told.
    package mutating func unsubscribe(_ handle: SubscriptionHandle, at now: MediaTime) {
        leave(handle, at: now)
        settle(at: now)
    }

    mutating func leave(_ handle: SubscriptionHandle, at now: MediaTime) {
        guard var subscription = subscriptions[handle], !subscription.isLeaving else { return }
        subscription.isLeaving = true
        put(subscription, handle)
        // A SUBSCRIBE on its way is waited for: it would make what is to be ended.
        if subscription.errand == nil {
            if subscription.dialog == nil { finish(handle, .unsubscribed, at: now) } else { refresh(handle, at: now) }
        }
    }

    // MARK: Requests

    /// The first SUBSCRIBE, which makes the dialog.
    private mutating func makeSubscribe(_ subscription: Subscription) throws(SIPError) -> SIPMessage {
        let wishes = subscription.wishes
        var request = try makeRequest(.subscribe, to: wishes.uri, account: wishes.account)
        try complete(&request, subscription)
        return request
    }

    private func complete(_ request: inout SIPMessage, _ subscription: Subscription) throws(SIPError) {
        try request.append(.event, Bytes(subscription.wishes.event))
        try request.append(.expires, WholeNumber(subscription.isLeaving ? 0 : subscription.expires))
        if !subscription.wishes.accept.isEmpty {
            try request.append(.accept, Bytes(subscription.wishes.accept.joined(separator: ", ")))
        }
    }

    private mutating func send(_ request: SIPMessage, of handle: SubscriptionHandle, at now: MediaTime) {
        guard var subscription = subscriptions[handle] else { return }
        if let callID = request.callID, let tag = (try? request.from())??.tag {
            let key = Subscription.key(callID: callID, tag: tag)
            subscriptionOfKey[key] = handle
            subscription.key = key
        }
        subscription.number = (try? request.cSeq())??.number ?? 0
        (subscription.retryAt, subscription.notifyEnd) = (nil, now + timers.patience)
        put(subscription, handle)
        let id = begin(request, .subscription(handle), account: subscription.wishes.account, at: now)
        note(id, of: handle)
    }

    /// Asks once more within the dialog: to go on, or to end.
    mutating func refresh(_ handle: SubscriptionHandle, at now: MediaTime) {
        guard var subscription = subscriptions[handle], var dialog = subscription.dialog, subscription.errand == nil
        else { return }
        do {
            var request = try dialog.makeRequest(.subscribe)
            try complete(&request, subscription)
            (subscription.dialog, subscription.number) = (dialog, dialog.localNumber)
            subscription.refreshAt = nil
            if subscription.isLeaving { subscription.notifyEnd = now + timers.patience }
            put(subscription, handle)
            let account = subscription.wishes.account
            note(begin(request, .subscription(handle), account: account, in: dialog, at: now), of: handle)
        } catch {
            // An address that came as it is can be written again.
            assertionFailure(error.message)
        }
    }

    /// The request may have failed at once.
    private mutating func note(_ id: ErrandID, of handle: SubscriptionHandle) {
        guard errands[id] != nil, var subscription = subscriptions[handle] else { return }
        subscription.errand = id
        put(subscription, handle)
    }

    // MARK: What comes back

    mutating func receive(
        _ response: SIPMessage,
        ofSubscription handle: SubscriptionHandle,
        on flow: Flow,
        at now: MediaTime
    ) {
        guard var subscription = subscriptions[handle], let status = response.statusCode, status >= 200 else { return }
        subscription.errand = nil
        if let number = (try? response.cSeq())??.number { subscription.number = number }
        guard status < 300 else { return refused(subscription, handle, by: response, at: now) }
        subscription.longerCount = 0
        if var dialog = subscription.dialog {
            try? dialog.refreshTarget(by: response)
            subscription.dialog = dialog
        }
        let asked = subscription.isLeaving ? 0 : subscription.expires
        let granted = (try? response.value(.expires, as: WholeNumber.self))??.value ?? asked
        if granted > 0, asked > 0 { subscription.extend(min(granted, asked), at: now) }
        put(subscription, handle)
        // It was to end while this was on its way.
        if subscription.isLeaving, granted > 0, subscription.dialog != nil { refresh(handle, at: now) }
    }

    private mutating func refused(
        _ before: Subscription,
        _ handle: SubscriptionHandle,
        by response: SIPMessage,
        at now: MediaTime
    ) {
        var subscription = before
        let status = response.statusCode ?? 500
        guard !subscription.isLeaving else { return finish(handle, .unsubscribed, at: now) }
        if status == 423, let least = (try? response.value(.minExpires, as: WholeNumber.self))??.value,
            least > subscription.expires, subscription.longerCount < Subscription.longerLimit
        {
            (subscription.expires, subscription.longerCount) = (least, subscription.longerCount + 1)
            put(subscription, handle)
            return again(handle, at: now)
        }
        guard subscription.dialog != nil else { return finish(handle, .refused(status), at: now) }
        // What is refused is the refresh: unless it is gone, the subscription lasts as long as was said.
        guard status == 481 || status == 489 || status == 404 else { return put(subscription, handle) }
        interrupt(subscription, handle, reason: nil, pause: subscription.pause, at: now)
    }

    mutating func handleFailedSubscription(of handle: SubscriptionHandle, _ failure: RequestFailure, at now: MediaTime)
    {
        guard var subscription = subscriptions[handle] else { return }
        subscription.errand = nil
        guard !subscription.isLeaving else { return finish(handle, .unsubscribed, at: now) }
        guard subscription.dialog == nil else {
            // A NOTIFY has made it, and did not say for how long.
            if subscription.expiresAt == nil { subscription.extend(subscription.expires, at: now) }
            return put(subscription, handle)
        }
        guard case .unanswered = failure else { return finish(handle, .failed(failure), at: now) }
        interrupt(subscription, handle, reason: nil, pause: subscription.pause, at: now)
    }

    /// Sends what the other side did not take in another form: within the dialog, or anew.
    private mutating func again(_ handle: SubscriptionHandle, at now: MediaTime) {
        guard let subscription = subscriptions[handle] else { return }
        guard subscription.dialog == nil else { return refresh(handle, at: now) }
        forgetKey(of: subscription)
        do {
            send(try makeSubscribe(subscription), of: handle, at: now)
        } catch {
            finish(handle, .failed(.invalid(error)), at: now)
        }
    }

    /// It is interrupted, and made anew after a pause.
    private mutating func interrupt(
        _ before: Subscription,
        _ handle: SubscriptionHandle,
        reason: Bytes?,
        pause: Duration,
        at now: MediaTime
    ) {
        var subscription = before
        forgetKey(of: subscription)
        // What is answered late is of the one before.
        if let id = subscription.errand { remove(id) }
        subscription.failureCount += 1
        subscription.interrupt(until: now + pause)
        put(subscription, handle)
        _ = tell(.interrupted(reason: reason?.text, retry: pause), of: handle, subscription, at: now)
    }

    private mutating func finish(_ handle: SubscriptionHandle, _ end: SubscriptionEnd, at now: MediaTime) {
        guard let subscription = subscriptions.remove(handle) else { return }
        forgetKey(of: subscription)
        if let id = subscription.errand { remove(id) }
        _ = tell(.ended(end), of: handle, subscription, at: now)
    }

    /// Tells the user, or the room that it is about, which may want to know all anew.
    private mutating func tell(
        _ event: SubscriptionEvent,
        of handle: SubscriptionHandle,
        _ subscription: Subscription,
        at now: MediaTime
    ) -> Bool {
        if let room = subscription.room { return receive(event, of: room, at: now) }
        tell(.subscription(handle, event))
        return false
    }

    private mutating func forgetKey(of subscription: Subscription) {
        if let key = subscription.key { subscriptionOfKey[key] = nil }
    }

    private mutating func put(_ subscription: Subscription, _ handle: SubscriptionHandle) {
        subscriptions[handle] = subscription
        subscriptions.setDeadline(of: handle, to: subscription.deadline)
    }

    // MARK: NOTIFY

    /// The subscription that a NOTIFY is about: the first dialog that it makes counts, other forks are 481.
    func subscription(of id: DialogID) -> SubscriptionHandle? {
        guard let handle = subscriptionOfKey[Subscription.key(callID: id.callID, tag: id.localTag)],
            let subscription = subscriptions[handle], subscription.dialog.map({ $0.id == id }) ?? true
        else { return nil }
        return handle
    }

    /// Takes a NOTIFY, perhaps before the answer to its SUBSCRIBE.
    ///
    /// Throws: `badRequest` when a header of it breaks the grammar
    mutating func receiveState(
        _ request: SIPMessage,
        _ transaction: TransactionID,
        _ handle: SubscriptionHandle,
        on flow: Flow,
        at now: MediaTime
    ) throws(SIPError) {
        guard var subscription = subscriptions[handle] else { return }
        guard let event: EventHeader = try request.value(.event), subscription.isNamed(event) else {
            return respond(481, to: request, transaction, at: now)
        }
        guard let state: SubscriptionState = try request.value(.subscriptionState) else {
            return respond(400, to: request, transaction, at: now)
        }
        if let type = try request.contentType(), !request.bodyBytes.isEmpty,
            !subscription.wishes.accept.contains(where: { type.isNamed(Bytes($0)) })
        {
            let accept = subscription.wishes.accept.joined(separator: ", ")
            return respond(415, to: request, transaction, [.init(name: .accept, value: accept)], at: now)
        }
        guard try take(request, &subscription, on: flow) else {
            return respond(500, to: request, transaction, [.init(name: .retryAfter, value: "0")], at: now)
        }
        respond(200, to: request, transaction, at: now)
        // The last one is waited for.
        if !subscription.isLeaving { subscription.notifyEnd = nil }
        if !state.isTerminated {
            subscription.failureCount = 0
            if let seconds = state.expires, seconds > 0 { subscription.extend(seconds, at: now) }
        }
        put(subscription, handle)
        var asksAnew = false
        if !request.bodyBytes.isEmpty { asksAnew = tell(.state(request), of: handle, subscription, at: now) }
        // What was told may have ended it.
        guard let subscription = subscriptions[handle] else { return }
        guard !state.isTerminated else { return terminated(subscription, handle, state, at: now) }
        let told: SubscriptionEvent = state.state.isNamed("pending") ? .pending : .active(state.expires)
        _ = tell(told, of: handle, subscription, at: now)
        if subscription.isLeaving || asksAnew, subscription.errand == nil { refresh(handle, at: now) }
    }

    /// Takes the number of a NOTIFY, and makes the dialog by the first; false when it is older than one that was taken.
    private func take(_ request: SIPMessage, _ subscription: inout Subscription, on flow: Flow) throws(SIPError) -> Bool
    {
        var dialog: Dialog
        if let known = subscription.dialog {
            dialog = known
            guard try dialog.receive(request) == .taken else { return false }
            try dialog.refreshTarget(by: request)
            if flow != dialog.flow, !flows.isUsable(dialog.flow) { dialog.move(to: flow) }
        } else {
            let tag = try request.to()?.tag ?? []
            dialog = try Dialog(server: request, tag: tag, isConfirmed: true, number: subscription.number, on: flow)
        }
        subscription.dialog = dialog
        return true
    }

    private mutating func terminated(
        _ subscription: Subscription,
        _ handle: SubscriptionHandle,
        _ state: SubscriptionState,
        at now: MediaTime
    ) {
        guard !subscription.isLeaving else { return finish(handle, .unsubscribed, at: now) }
        guard let pause = subscription.pause(after: state) else {
            return finish(handle, .terminated(reason: state.reason?.text ?? ""), at: now)
        }
        interrupt(subscription, handle, reason: state.reason, pause: pause, at: now)
    }

    // MARK: Time

    mutating func handleTimeout(of handle: SubscriptionHandle, at now: MediaTime) {
        guard var subscription = subscriptions[handle] else { return }
        if let time = subscription.retryAt, time <= now {
            subscription.retryAt = nil
            put(subscription, handle)
            return again(handle, at: now)
        }
        if let time = subscription.notifyEnd, time <= now {
            guard !subscription.isLeaving else { return finish(handle, .unsubscribed, at: now) }
            return interrupt(subscription, handle, reason: nil, pause: subscription.pause, at: now)
        }
        if let time = subscription.expiresAt, time <= now {
            guard !subscription.isLeaving else { return finish(handle, .unsubscribed, at: now) }
            return interrupt(subscription, handle, reason: nil, pause: subscription.pause, at: now)
        }
        subscription.refreshAt = nil
        put(subscription, handle)
        refresh(handle, at: now)
    }
}
