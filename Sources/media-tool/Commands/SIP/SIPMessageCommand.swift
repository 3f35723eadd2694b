import ArgumentParser
import CallBasics
import MediaEngine
import SIP
import SIPTransport

/// Sends and receives text by SIP.
struct SIPMessageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "message",
        abstract: "Sends a text by SIP (MESSAGE), or prints those that come.",
        discussion: """
            The text goes as text/plain, and is sent when the other side has answered 200 or 202. With --listen it prints what \
            comes, until --seconds or --count are over, or Ctrl-C.

            EXAMPLES
              media-tool sip message sip:bob@192.0.2.7 'The door is open.'
              media-tool sip message --listen --local 192.0.2.7:5060 --json
            """
    )

    @Argument(help: "Whom to write to.")
    var uri: String?

    @Argument(help: "What to write.")
    var text: String?

    @Flag(help: "Print what comes.")
    var listen = false

    @Option(help: ArgumentHelp("With --listen: end after so many messages.", valueName: "n"))
    var count: Int?

    @Option(help: ArgumentHelp("With --listen: end after so long.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var sip: SIPOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--count", count, in: 1...1_000_000)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        guard listen == (uri == nil) else {
            throw ValidationError("Give a URI and a text to send, or '--listen' to receive, not both.")
        }
        guard !listen else { return }
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
        let party = try await sip.open(towards: target)
        do {
            if let target { try await send(target, party) } else { try await receive(party) }
        } catch {
            await party.close()
            throw error
        }
        await party.close()
    }

    private func send(_ target: SIPURI, _ party: SIPParty) async throws {
        let teller = SIPTeller(isJSON: common.json, hasEvents: false)
        var iterator = party.endpoint.events.makeAsyncIterator()
        if party.account != nil, !sip.noRegister { try await party.register(&iterator, teller) }
        let (account, body) = (party.account, Array((text ?? "").utf8))
        let id = try await party.endpoint.perform { agent, now in
            try agent.send(
                .message,
                to: target,
                account: account,
                type: "text/plain;charset=utf-8",
                body: body,
                at: now
            )
        }
        let watch = Task {
            await Interruption.wait()
            if !Task.isCancelled { await party.endpoint.close() }
        }
        defer { watch.cancel() }
        let peer = uri ?? ""
        while let event = await iterator.next() {
            switch event {
            case .response(id, let response, _) where response.statusCode ?? 0 >= 200:
                let code = response.statusCode ?? 0
                guard code < 300 else {
                    var failure = ToolFailure("\(peer) refused the text: \(code) \(response.reasonPhrase).")
                    (failure.status, failure.code) = (SIPStatusWord.of(code), code)
                    throw failure
                }
                let callID = response.values(named: "Call-ID").first ?? ""
                common.show(
                    ["event": "sent", "callID": .string(callID), "code": .integer(code)],
                    text: code == 202 ? "Taken by a server, which keeps it.\n" : "Sent.\n"
                )
                return
            case .failed(id, let failure): throw await party.failure(failure, peer)
            default: break
            }
        }
        throw ToolFailure("The text was not answered before the end. It may have come all the same.")
    }

    private func receive(_ party: SIPParty) async throws {
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        StandardOutput.watch()
        let names = party.addresses
        teller.tell(
            "listening",
            [("local", JSONValue(names.first)), ("addresses", .array(names.map { .string($0) }))],
            text: "Listening at \(names.joined(separator: ", "))."
        )
        var iterator = party.endpoint.events.makeAsyncIterator()
        if party.account != nil, !sip.noRegister { try await party.register(&iterator, teller) }
        let watch = Task {
            await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
            if !Task.isCancelled { await party.endpoint.close() }
        }
        defer { watch.cancel() }
        var left = count ?? .max
        while left > 0, let event = await iterator.next() {
            guard case .message(let message, _) = event else { continue }
            left -= 1
            let from = (try? message.from())?.uri.bytes.text ?? ""
            let text = String(decoding: message.body, as: UTF8.self)
            teller.tell(
                "message",
                [
                    ("callID", .string(message.callID?.text ?? "")), ("from", .string(from)),
                    ("contentType", .string(message.values(named: "Content-Type").first ?? "text/plain")),
                    ("text", .string(text)),
                ],
                text: "\(from): \(text)"
            )
        }
    }
}
