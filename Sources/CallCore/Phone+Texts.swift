internal import CallBasics
internal import Glibc
internal import SIP
internal import SIPTransport

/// Texts that have come, and wait until whoever keeps them has them: one after the other.
final class TextInbox: Sendable {
    /// Texts that wait; those beyond are answered 480.
    private static let limit = 1024

    struct Item: Sendable {
        let text: PhoneText
        let message: SIPMessage
        let transaction: TransactionID
    }

    let items: AsyncStream<Item>
    private let continuation: AsyncStream<Item>.Continuation

    init() { (items, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.limit)) }

    /// Puts a text behind those that wait; false when too many do.
    func put(_ item: Item) -> Bool { if case .enqueued = continuation.yield(item) { true } else { false } }

    func close() { continuation.finish() }
}

/// Texts and receipts.
///
///     MESSAGE ──► kept, or told by `events` ──► 200
///             └─► neither ──► 480: a server keeps it for later
extension Phone {
    /// Sends a text (MESSAGE, RFC 3428), and waits until it is taken.
    ///
    /// One that has an identifier goes in an envelope (CPIM, RFC 3862) that names it, so that a repeat is told, and receipts are
    /// possible: they come by `events`.
    ///
    /// - Parameters:
    ///   - text: What it says.
    ///   - uri: Whom it is for.
    ///   - account: The address of the account that sends; nil for the first one, or none.
    ///   - id: What names it, the same when it is sent again; 64 random bits at least. Nil names one only where receipts are wanted.
    ///   - receipts: What this side wants to hear of it.
    /// - Returns: What names it; nil where nothing does.
    /// - Throws: `PhoneError` when it is refused, or nobody answers
    @discardableResult
    public func sendText(
        _ text: String,
        to uri: String,
        from account: String? = nil,
        id: String? = nil,
        receipts: Set<TextReceipt.Kind> = []
    ) async throws -> String? {
        let type = "text/plain;charset=UTF-8"
        composing.noteSent(to: uri)
        guard let id = id ?? (receipts.isEmpty ? nil : "\(CallUUID())") else {
            try await send(type, Array(text.utf8), to: uri, from: account)
            return nil
        }
        var letter = try letter(id, to: uri, from: account, type, Array(text.utf8))
        if receipts.contains(.delivered) { letter.wantedReceipts.append("positive-delivery") }
        if receipts.contains(.failed) { letter.wantedReceipts.append("negative-delivery") }
        if receipts.contains(.displayed) { letter.wantedReceipts.append("display") }
        try await send(letter, to: uri, from: account)
        return id
    }

    /// Tells the sender of a text what became of it (RFC 5438), if it wants to hear that.
    ///
    /// - Throws: `PhoneError` when it is refused, or nobody answers
    public func sendReceipt(_ kind: TextReceipt.Kind, of text: PhoneText) async throws {
        guard kind != .failed, let id = text.id, text.wantedReceipts.contains(kind) else { return }
        try await sendReceipt(kind, of: id, to: text.sender, from: text.account)
    }

    package func sendReceipt(
        _ kind: TextReceipt.Kind,
        of id: String,
        to uri: String,
        from account: String?
    ) async throws {
        let notification = DispositionNotification(of: id, isDisplayed: kind == .displayed)
        let body = notification.body(dateTime: Self.internetTime)
        try await send(
            letter("\(CallUUID())", to: uri, from: account, DispositionNotification.type, body),
            to: uri,
            from: account
        )
    }

    private func letter(_ id: String, to uri: String, from account: String?, _ type: String, _ content: [UInt8])
        throws(PhoneError) -> CPIMMessage.Letter
    {
        CPIMMessage.Letter(
            from: try PhoneError.uri(account ?? accounts.first?.address ?? ownAddress),
            to: try PhoneError.uri(uri),
            dateTime: Self.internetTime,
            messageID: id,
            contentType: type,
            content
        )
    }

    private var ownAddress: String {
        let address = localAddress
        return address.isIPv4 ? "sip:\(address.host)" : "sip:[\(address.host)]"
    }

    private func send(_ letter: CPIMMessage.Letter, to uri: String, from account: String?) async throws {
        let body = try PhoneError.wrapping(.invalid) { () throws(SIPError) in try letter.body() }
        try await send(CPIMMessage.type, body, to: uri, from: account)
    }

    private static var internetTime: String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return InternetTime.text(unixMilliseconds: Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000)
    }

    /// A key was pressed in a text for somebody, who is told that this side writes (RFC 3994): at the first key, and each
    /// minute; 15 s behind the last that it writes no more.
    ///
    /// What is told back is `PhoneEvent.composing`. Nothing of it is kept, and nothing waits for it.
    public func noteComposing(to uri: String, from account: String? = nil) {
        composing.notePress(to: uri, account: account, at: SIPEndpoint<UserAgent>.now)
        settleComposing()
    }

    private func settleComposing() {
        while let output = composing.poll() {
            switch output {
            case .told(let peer, let isActive): continuation.yield(.composing(from: peer, isActive: isActive))
            case .send(let isActive, let peer, let account):
                let state = ComposingState(isActive: isActive, refresh: isActive ? 90 : nil)
                Task { [weak self] in try? await self?.send(ComposingState.type, state.body, to: peer, from: account) }
            }
        }
        guard composing.deadline != composingAlarm?.time else { return }
        composingAlarm?.task.cancel()
        composingAlarm = nil
        guard let deadline = composing.deadline else { return }
        let wait = max(deadline - SIPEndpoint<UserAgent>.now, .zero)
        let task = Task { [weak self] in
            do { try await Task.sleep(for: wait) } catch { return }
            await self?.handleComposingTimeout()
        }
        composingAlarm = (deadline, task)
    }

    private func handleComposingTimeout() {
        composing.handleTimeout(at: SIPEndpoint<UserAgent>.now)
        settleComposing()
    }

    // MARK: What comes

    /// Takes a MESSAGE, which is answered once it is kept.
    func receive(_ message: SIPMessage, _ transaction: TransactionID) {
        let read: InstantMessage?
        do throws(SIPError) {
            read = try InstantMessage(message)
        } catch {
            return answer(message, transaction, error.code.statusCode ?? 400)
        }
        guard let read else { return answer(message, transaction, 415) }
        let sender = read.sender.bytes.text
        switch read.content {
        case .composing(let state):
            answer(message, transaction, 200)
            composing.receive(state.isActive, refresh: state.refresh, from: sender, at: SIPEndpoint<UserAgent>.now)
            settleComposing()
        case .receipt(let notification):
            if let receipt = TextReceipt(notification, from: sender) { continuation.yield(.receipt(receipt)) }
            answer(message, transaction, 200)
        case .text(let text):
            composing.noteText(from: sender)
            settleComposing()
            var wishes: Set<TextReceipt.Kind> = []
            if read.wantsDelivery { wishes.insert(.delivered) }
            if read.wantsDisplay { wishes.insert(.displayed) }
            let text = PhoneText(
                callID: read.callID,
                id: read.messageID,
                distinction: read.distinction,
                sender: sender,
                senderName: read.senderName,
                account: accounts.first { (try? SIPURI($0.address))?.isEquivalent(to: read.receiver) == true }?.address,
                text: text,
                wantedReceipts: wishes
            )
            if let inbox {
                let item = TextInbox.Item(text: text, message: message, transaction: transaction)
                if !inbox.put(item) { answer(message, transaction, 480) }
            } else if case .enqueued = continuation.yield(.text(text)) {
                answer(message, transaction, 200)
            } else {
                answer(message, transaction, 480)
            }
        }
    }

    func answer(_ message: SIPMessage, _ transaction: TransactionID, _ status: Int) {
        act { agent, now in agent.answer(message, transaction, status: status, at: now) }
    }
}
