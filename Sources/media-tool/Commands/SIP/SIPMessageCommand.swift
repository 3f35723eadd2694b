import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport

/// Sends and receives text by SIP.
struct SIPMessageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "message",
        abstract: "Sends a text by SIP (MESSAGE), or prints those that come.",
        discussion: """
            The text goes as text/plain, and is sent when the other side has answered 200 or 202. With --cpim it goes in an \
            envelope that names it; with --receipts the other side is asked to tell what became of it, which is waited for. \
            With --room it goes to a chat room, in an envelope that says who wrote it. With --listen it prints what comes, until \
            --seconds or --count are over, or Ctrl-C, and sends the receipts that are asked for. Invitations to chat rooms are \
            accepted, and their texts are printed with who wrote them.

            EXAMPLES
              media-tool sip message sip:bob@192.0.2.7 'The door is open.'
              media-tool sip message sip:bob@192.0.2.7 'The door is open.' --receipts delivered,displayed --json
              media-tool sip message sip:tea@conference.example.org 'Who has milk?' --room --account sip:bob@example.org
              media-tool sip message --listen --local 192.0.2.7:5060 --json
            """
    )

    @Argument(help: "Whom to write to.")
    var uri: String?

    @Argument(help: "What to write.")
    var text: String?

    @Flag(help: "Print what comes.")
    var listen = false

    @Flag(help: "Send it in an envelope (message/cpim) that names it.")
    var cpim = false

    @Flag(help: "Send it to a chat room, in an envelope that says who wrote it.")
    var room = false

    @Option(
        help: ArgumentHelp(
            "What to hear of it: delivered, displayed. Sends it in an envelope, too.",
            valueName: "kinds"
        )
    )
    var receipts: ReceiptKinds?

    @Option(help: ArgumentHelp("How long to wait for --receipts. Default: 30.", valueName: "s"))
    var wait: Double?

    @Option(help: ArgumentHelp("With --listen: end after so many messages.", valueName: "n"))
    var count: Int?

    @Option(help: ArgumentHelp("With --listen: end after so long.", valueName: "n"))
    var seconds: Double?

    @Flag(help: "In virtual time, through a server of the tool, without a socket.")
    var virtual = false

    @Option(help: ArgumentHelp("What all of --virtual is drawn by: the same seed, the same bytes.", valueName: "n"))
    var seed: UInt64?

    @OptionGroup var sip: SIPOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try sip.check(virtual: virtual, seed: seed, [("--listen", listen), ("--room", room)])
        try Quantity.check("--count", count, in: 1...1_000_000)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        guard listen == (uri == nil) else {
            throw ValidationError("Give a URI and a text to send, or '--listen' to receive, not both.")
        }
        try Quantity.check("--wait", wait, in: Quantity.seconds, "s")
        guard wait == nil || receipts != nil else {
            throw ValidationError("'--wait' is about '--receipts'. Give them, or leave it out.")
        }
        guard !listen || sip.group == nil else {
            throw ValidationError("Texts for a group are kept by its core. Run 'core main', or leave out '--group'.")
        }
        guard !listen else {
            if let wrong = [("--cpim", cpim), ("--room", room), ("--receipts", receipts != nil)].first(where: \.1)?.0 {
                throw ValidationError("'\(wrong)' is about a text that is sent. Leave out '--listen', or it.")
            }
            return
        }
        guard let uri, text != nil else { throw ValidationError("Missing the text. Give it behind the URI.") }
        _ = try SIPOptions.uri(uri, "URI")
        if let wrong = [("--count", count != nil), ("--seconds", seconds != nil)].first(where: \.1)?.0 {
            throw ValidationError("'\(wrong)' belongs to '--listen'. Give it, or leave it out.")
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let target = try uri.map { try SIPOptions.uri($0, "URI") }
        if virtual, let uri { return try await sendVirtually(to: uri) }
        let party = try await sip.open(towards: target, headersOnRegister: listen, takesTexts: listen)
        do {
            if let target { try await send(target, party) } else { try await receive(party) }
        } catch {
            await party.close()
            throw error
        }
        await party.close()
    }

    private func sendVirtually(to uri: String) async throws {
        var pair = try VirtualParties(seed: seed ?? 1, alice: sip.account, bob: uri)
        let wishes = receipts?.kinds ?? []
        let hasEnvelope = cpim || !wishes.isEmpty
        try await pair.send(text ?? "", isEnveloped: hasEnvelope, wishes, for: .seconds(fraction: wait ?? 30), common)
    }

    private func send(_ target: SIPURI, _ party: SIPParty) async throws {
        let teller = SIPTeller(isJSON: common.json, hasEvents: false)
        var iterator = party.endpoint.events.makeAsyncIterator()
        if party.account != nil, !sip.noRegister { try await party.register(&iterator, teller) }
        let (account, headers) = (party.account, try sip.headers())
        let letter = try letter(to: target, party)
        let (type, body) =
            try letter.map { (CPIMMessage.type, try $0.body()) } ?? (Self.plain, Array((text ?? "").utf8))
        let id = try await party.endpoint.perform { agent, now in
            try agent.send(.message, to: target, account: account, headers: headers, type: type, body: body, at: now)
        }
        let watch = Task {
            await Interruption.wait()
            if !Task.isCancelled { await party.endpoint.close() }
        }
        defer { watch.cancel() }
        let peer = uri ?? ""
        // A receipt may be faster than the answer.
        var left = receipts?.kinds ?? []
        var (sentAt, waiting): (ContinuousClock.Instant?, Task<Void, Never>?)
        let begin = ContinuousClock.now
        defer { waiting?.cancel() }
        while let event = await iterator.next() {
            switch event {
            case .response(id, let response, _) where response.statusCode ?? 0 >= 200:
                let code = response.statusCode ?? 0
                guard code < 300 else {
                    var failure = ToolFailure("\(peer) refused the text: \(code) \(response.reasonPhrase).")
                    (failure.status, failure.code) = (SIPStatusWord.of(code), code)
                    throw failure
                }
                common.tellSent(letter?.messageID, response)
                sentAt = .now
                waiting = Task {
                    do { try await Task.sleep(for: .seconds(fraction: wait ?? 30)) } catch { return }
                    await party.endpoint.close()
                }
            case .failed(id, let failure): throw await party.failure(failure, peer)
            case .message(let message, _, _):
                let from = message.sender.bytes.text
                guard case .receipt(let notification) = message.content, notification.messageID == letter?.messageID,
                    let kind = TextReceipt(notification, from: from)?.kind
                else { continue }
                common.tellReceipt(kind, of: notification, from: from, after: ContinuousClock.now - (sentAt ?? begin))
                left.remove(kind)
                if kind == .failed { left = [] }
            default: break
            }
            if sentAt != nil, left.isEmpty { return }
        }
        guard sentAt == nil else {
            throw ToolFailure(
                "The text was sent, and nothing tells that it was \(left.map(\.rawValue).sorted().joined(separator: " or ")). "
                    + "Wait longer with --wait, or do not ask."
            )
        }
        throw ToolFailure("The text was not answered before the end. It may have come all the same.")
    }

    private static let plain = "text/plain;charset=utf-8"

    /// The text in its envelope; nil where it needs none.
    private func letter(to target: SIPURI, _ party: SIPParty) throws -> CPIMMessage.Letter? {
        guard cpim || room || receipts != nil else { return nil }
        let host = party.local.isIPv4 ? party.local.host : "[\(party.local.host)]"
        var letter = CPIMMessage.Letter(
            from: try party.user?.account.identity.uri ?? SIPURI("sip:\(host)"),
            to: target,
            dateTime: UTCTime.now.internet,
            messageID: "\(CallUUID())",
            contentType: Self.plain,
            Array((text ?? "").utf8)
        )
        letter.wantedReceipts = (receipts?.kinds ?? []).map(\.disposition).sorted()
        return letter
    }

    private func receive(_ party: SIPParty) async throws {
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        StandardOutput.watch()
        let names = party.addresses
        teller.tell(
            "listening",
            [
                ("local", JSONValue(names.first)), ("addresses", .array(names.map { .string($0) })),
                ("account", JSONValue(party.address)),
            ],
            text: "Listening at \(names.joined(separator: ", "))."
        )
        var iterator = party.endpoint.events.makeAsyncIterator()
        var course = sip.noRegister ? nil : try await party.beginRegistering(teller)
        let watch = Task {
            await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
            if !Task.isCancelled { await party.endpoint.close() }
        }
        defer { watch.cancel() }
        var left = count ?? .max
        while left > 0, let event = await iterator.next() {
            // Texts may come before the answer of the registrar.
            switch await course?.receive(event) {
            case .ok?: course = nil
            case .failed(let failure, _)?: throw failure
            default: break
            }
            if case .room(let handle, let event) = event {
                await take(event, of: handle, party, teller)
                continue
            }
            guard case .message(let read, let request, _) = event else { continue }
            let from = read.sender.bytes.text
            switch read.content {
            case .text(let text):
                left -= 1
                teller.tell(
                    "message",
                    [
                        ("callID", .string(read.callID)), ("messageID", JSONValue(read.messageID)),
                        ("from", .string(from)), ("room", JSONValue(read.room?.description)),
                        ("contentType", .string(request.values(named: "Content-Type").first ?? "text/plain")),
                        ("text", .string(text)), ("deflated", .bool(request.wasDeflated)),
                    ],
                    text:
                        "\(from.printable)\(read.room.map { " in \($0.description.printable)" } ?? ""): \(text.printable)"
                )
                try await acknowledge(read, party)
            case .composing(let state):
                teller.tell(
                    "composing",
                    [("from", .string(from)), ("state", state.isActive ? "active" : "idle")],
                    text: "\(from.printable) \(state.isActive ? "is writing" : "writes no more")."
                )
            case .receipt(let receipt):
                teller.tell(
                    "receipt",
                    [
                        ("messageID", .string(receipt.messageID)), ("kind", .string(receipt.status.rawValue)),
                        // What it is about was sent by another run.
                        ("from", .string(from)), ("afterMs", .null),
                    ],
                    text: "\(from.printable): \(receipt.status.rawValue)"
                )
            }
        }
        if course != nil, left == count ?? .max, !Interruption.hasCome { throw ToolFailure.unregistered }
    }

    /// Accepts an invitation to a chat room, which was printed.
    private func take(_ event: RoomEvent, of handle: RoomHandle, _ party: SIPParty, _ teller: SIPTeller) async {
        guard case .invited(let invite) = event else { return }
        let (room, from) = (invite.address.description, invite.inviter.description)
        teller.tell(
            "invitation",
            [("room", .string(room)), ("from", .string(from)), ("subject", JSONValue(invite.subject))],
            text: "\(from.printable) invites to \(room.printable)\(invite.subject.map { ": \($0.printable)" } ?? "")"
        )
        await party.endpoint.perform { agent, now in agent.acceptRoom(handle, at: now) }
    }

    /// Sends the receipts that a text asks for: it was printed, which is all that is known of a person.
    private func acknowledge(_ message: InstantMessage, _ party: SIPParty) async throws {
        for letter in message.receipts(at: .now, id: { "\(CallUUID())" }) {
            let (account, target, body) = (party.account, message.room ?? message.sender, try letter.body())
            _ = try await party.endpoint.perform { agent, now in
                try agent.send(.message, to: target, account: account, type: CPIMMessage.type, body: body, at: now)
            }
        }
    }
}

extension InstantMessage {
    /// The receipts that it asks for, of one who has read it.
    func receipts(at time: UTCTime, id: () -> String) -> [CPIMMessage.Letter] {
        guard let name = messageID else { return [] }
        return [(wantsDelivery, false), (wantsDisplay, true)].filter(\.0).map { _, isDisplayed in
            CPIMMessage.Letter(
                DispositionNotification(of: name, isDisplayed: isDisplayed),
                from: receiver,
                to: room ?? sender,
                dateTime: time.internet,
                messageID: id()
            )
        }
    }
}

extension CommonOptions {
    /// Says that a text was taken.
    func tellSent(_ id: String?, _ response: SIPMessage) {
        let code = response.statusCode ?? 0
        show(
            [
                "event": "sent", "messageID": JSONValue(id),
                "callID": .string(response.values(named: "Call-ID").first ?? ""), "code": .integer(code),
            ],
            text: code == 202 ? "Taken by a server, which keeps it.\n" : "Sent.\n"
        )
    }

    /// Says what became of a text.
    func tellReceipt(
        _ kind: TextReceipt.Kind,
        of notification: DispositionNotification,
        from: String,
        after time: Duration
    ) {
        show(
            [
                "event": "receipt", "messageID": .string(notification.messageID), "kind": .string(kind.rawValue),
                "from": .string(from), "afterMs": .number(time.milliseconds),
            ],
            text: "\(from.printable): \(kind.rawValue)\n"
        )
    }
}

/// Receipts, as `--receipts` lists them.
struct ReceiptKinds: ExpressibleByArgument {
    let kinds: Set<TextReceipt.Kind>

    init?(argument: String) {
        let words = argument.split(separator: ",").map { TextReceipt.Kind(rawValue: "\($0)") }
        guard !words.isEmpty, !words.contains(nil), !words.contains(.failed) else { return nil }
        kinds = Set(words.compactMap(\.self))
    }
}
