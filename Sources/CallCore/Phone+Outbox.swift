internal import CallBasics
internal import SIP
internal import SIPTransport

/// Texts that may wait.
///
///     queueText ──► outbox ──► MESSAGE ──► PhoneEvent.textChanged
extension Phone {
    /// Sends a text as soon as that is possible: now, or once there is a network and its account is registered.
    ///
    /// Texts for the same URI leave in order: the next one once the one before it was taken, refused, or given up. One that nobody
    /// answers, or that is answered 408 or 503, is tried again for three days: after 15 s, then twice as long each time, up to
    /// 15 minutes, and at once when its account is registered again. Any other refusal is final. What becomes of it tells
    /// `PhoneEvent.textChanged`; the outbox ends with the phone.
    ///
    /// With an identifier of its own, or where receipts are wanted, it goes in an envelope that names it, as by `sendText`, and who
    /// gets it twice can tell. Without, it may be shown twice when an answer was lost.
    ///
    /// - Parameters:
    ///   - text: What it says.
    ///   - uri: Whom it is for.
    ///   - account: The address of the account that sends; nil for the first one, or none.
    ///   - id: What names it, also in its envelope: 64 random bits at least. One that waits already is not queued twice.
    ///   - receipts: What this side wants to hear of it.
    /// - Returns: What names it in events.
    /// - Throws: `invalid` for what can never be sent; `state` when it is no account of the phone, 1024 texts wait, or the phone was
    ///   closed
    @discardableResult
    public func queueText(
        _ text: String,
        to uri: String,
        from account: String? = nil,
        id: String? = nil,
        receipts: Set<TextReceipt.Kind> = []
    ) throws(PhoneError) -> String {
        guard !isClosed else { throw Self.closed }
        let isInRoom = isRoom(try PhoneError.uri(uri))
        if let account { _ = try handle(of: account) }
        let name = id ?? "\(CallUUID())"
        guard !outbox.contains(name) else { return name }
        let isNamed = id != nil || !receipts.isEmpty || isInRoom
        let (type, body) = try content(text, to: uri, from: account, id: isNamed ? name : nil, receipts)
        composing.noteSent(to: uri)
        let item = TextOutbox.Item(
            id: name,
            receiver: uri,
            account: account ?? accounts.first?.address,
            type: type,
            body: body
        )
        guard outbox.put(item, at: SIPEndpoint<UserAgent>.now) else {
            throw PhoneError(.state, "\(TextOutbox.limit) texts wait to be sent. Wait until some have left.")
        }
        settleOutbox()
        return name
    }

    /// Takes a text back that waits in the outbox.
    ///
    /// - Returns: Whether it did; false for one that is on its way, or over.
    public func withdrawText(_ id: String) -> Bool {
        defer { settleOutbox() }
        return outbox.remove(id, at: SIPEndpoint<UserAgent>.now)
    }

    /// How many texts wait in the outbox, or are on their way from there.
    public var queuedTextCount: Int { outbox.count }

    /// An account is registered, or not any more.
    func noteOutbox(_ account: String, isRegistered: Bool) {
        outbox.setRegistered(account, isRegistered, at: SIPEndpoint<UserAgent>.now)
        settleOutbox()
    }

    func noteOutboxNetwork(_ isReachable: Bool) {
        outbox.setNetworkReachable(isReachable, at: SIPEndpoint<UserAgent>.now)
        settleOutbox()
    }

    /// Nothing is sent any more.
    func endOutbox() {
        outbox.end(Self.closed)
        settleOutbox()
    }

    private func settleOutbox() {
        while let output = outbox.poll() {
            switch output {
            case .told(let id, let state): continuation.yield(.textChanged(id: id, state))
            case .send(let item): Task { [weak self] in await self?.send(item) }
            }
        }
        outboxAlarm.set(to: outbox.deadline) { [weak self] in await self?.handleOutboxTimeout() }
    }

    private func handleOutboxTimeout() {
        outbox.handleTimeout(at: SIPEndpoint<UserAgent>.now)
        settleOutbox()
    }

    private func send(_ item: TextOutbox.Item) async {
        var answer = RequestAnswer()
        do {
            answer = try await request(item.type, item.body, to: item.receiver, from: item.account)
        } catch {
            answer.problem = error as? PhoneError ?? Self.closed
        }
        let outcome = answer.problem.map { TextOutbox.Outcome($0, retryAfter: answer.retryAfter) } ?? .delivered
        outbox.note(outcome, of: item.id, at: SIPEndpoint<UserAgent>.now)
        settleOutbox()
    }
}
