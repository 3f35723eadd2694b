package import CallBasics
internal import Glibc
internal import SIP
internal import SIPTransport

/// Texts that have come, and wait until whoever keeps them has them: one after the other.
final class TextInbox: Sendable {
    /// Texts that wait; those beyond are answered 480.
    private static let limit = 1024

    struct Item: Sendable {
        let text: PhoneText
        let request: SIPMessage
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
    /// possible: they come by `events`. One for a room that this side is in always does: the envelope says who wrote it.
    ///
    /// - Parameters:
    ///   - text: What it says.
    ///   - uri: Whom it is for: a person, or a room.
    ///   - account: The address of the account that sends; nil for the first one, or none.
    ///   - id: What names it, the same when it is sent again; 64 random bits at least. Nil names one only where receipts are wanted, or in
    ///     a room.
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
        let isNamed = try !receipts.isEmpty || isRoom(PhoneError.uri(uri))
        let id = id ?? (isNamed ? "\(CallUUID())" : nil)
        let (type, body) = try content(text, to: uri, from: account, id: id, receipts)
        composing.noteSent(to: uri)
        try await send(type, body, to: uri, from: account)
        return id
    }

    /// A text as it is sent: in an envelope where it has a name.
    func content(
        _ text: String,
        to uri: String,
        from account: String?,
        id: String?,
        _ receipts: Set<TextReceipt.Kind>
    ) throws(PhoneError) -> (type: String, body: [UInt8]) {
        let type = "text/plain;charset=UTF-8"
        guard let id else { return (type, Array(text.utf8)) }
        var letter = CPIMMessage.Letter(
            from: try ownURI(account),
            to: try PhoneError.uri(uri),
            dateTime: UTCTime.now.internet,
            messageID: id,
            contentType: type,
            Array(text.utf8)
        )
        letter.wantedReceipts = receipts.map(\.disposition).sorted()
        return (CPIMMessage.type, try Self.body(of: letter))
    }

    /// Tells the sender of a text, or its room, what became of it (RFC 5438), if that is wanted.
    ///
    /// - Throws: `PhoneError` when it is refused, or nobody answers
    public func sendReceipt(_ kind: TextReceipt.Kind, of text: PhoneText) async throws {
        guard kind != .failed, let id = text.id, text.wantedReceipts.contains(kind) else { return }
        try await sendReceipt(kind, of: id, to: text.room ?? text.sender, from: text.account)
    }

    package func sendReceipt(
        _ kind: TextReceipt.Kind,
        of id: String,
        to uri: String,
        from account: String?
    ) async throws {
        let letter = CPIMMessage.Letter(
            DispositionNotification(of: id, isDisplayed: kind == .displayed),
            from: try ownURI(account),
            to: try PhoneError.uri(uri),
            dateTime: UTCTime.now.internet,
            messageID: "\(CallUUID())"
        )
        try await send(letter, to: uri, from: account)
    }

    private func ownURI(_ account: String?) throws(PhoneError) -> SIPURI {
        try PhoneError.uri(account ?? accounts.first?.address ?? ownAddress)
    }

    private var ownAddress: String {
        let address = localAddress
        return address.isIPv4 ? "sip:\(address.host)" : "sip:[\(address.host)]"
    }

    private func send(_ letter: CPIMMessage.Letter, to uri: String, from account: String?) async throws {
        try await send(CPIMMessage.type, try Self.body(of: letter), to: uri, from: account)
    }

    private static func body(of letter: CPIMMessage.Letter) throws(PhoneError) -> [UInt8] {
        try PhoneError.wrapping(.invalid) { () throws(SIPError) in try letter.body() }
    }

    /// A key was pressed in a text for somebody, who is told that this side writes (RFC 3994): at the first key, and each
    /// minute; 15 s behind the last that it writes no more.
    ///
    /// What is told back is `PhoneEvent.composing`, but not of rooms. Nothing of it is kept, and nothing waits for it.
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
        composingAlarm.set(to: composing.deadline) { [weak self] in await self?.handleComposingTimeout() }
    }

    private func handleComposingTimeout() {
        composing.handleTimeout(at: SIPEndpoint<UserAgent>.now)
        settleComposing()
    }

    // MARK: What comes

    /// Takes a MESSAGE, which is answered once it is kept, or told.
    func receive(_ message: InstantMessage, _ request: SIPMessage, _ transaction: TransactionID) {
        let sender = message.sender.bytes.text
        switch message.content {
        case .composing where message.room != nil:
            // Who writes in a room is not told.
            answer(request, transaction, 200)
        case .composing(let state):
            composing.receive(state.isActive, refresh: state.refresh, from: sender, at: SIPEndpoint<UserAgent>.now)
            settleComposing()
            answer(request, transaction, 200)
        case .receipt(let notification):
            let receipt = TextReceipt(notification, from: sender)
            answer(request, transaction, receipt.map { isTold(.receipt($0)) } ?? true ? 200 : 480)
        case .text(let text):
            if message.room == nil { composing.noteText(from: sender) }
            settleComposing()
            let text = PhoneText(message, text, account: address(of: message.receiver))
            if let inbox {
                let item = TextInbox.Item(text: text, request: request, transaction: transaction)
                if !inbox.put(item) { answer(request, transaction, 480) }
            } else {
                answer(request, transaction, isTold(.text(text)) ? 200 : 480)
            }
        }
    }

    /// Whether there was room for an event.
    private func isTold(_ event: PhoneEvent) -> Bool {
        if case .enqueued = continuation.yield(event) { true } else { false }
    }

    private func address(of receiver: SIPURI) -> String? {
        accounts.first { (try? SIPURI($0.address))?.isEquivalent(to: receiver) == true }?.address
    }

    func answer(_ request: SIPMessage, _ transaction: TransactionID, _ status: Int) {
        act { agent, now in agent.answer(request, transaction, status: status, at: now) }
    }
}

extension UTCTime {
    /// The time by the wall clock.
    package static var now: UTCTime {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return UTCTime(unixMilliseconds: Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000)
    }
}
