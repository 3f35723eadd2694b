import ArgumentParser
import CallBasics
import MediaEngine
import SIP
import SIPTransport

/// Asks a peer what it can do.
struct SIPOptionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "options",
        abstract: "Asks a SIP peer what it takes (OPTIONS), and tells how long the answer took.",
        discussion: """
            Any answer will do: it fails when there is none.

            EXAMPLES
              media-tool sip options sip:192.0.2.7
              media-tool sip options sip:example.org --transport tcp --count 5 --interval 0.2 --json
            """
    )

    @Argument(help: "Whom to ask.")
    var uri: String

    @OptionGroup var sip: SIPOptions

    @Option(help: ArgumentHelp("How often to ask, 1 to 1000.", valueName: "n"))
    var count = 1

    @Option(help: ArgumentHelp("How long to wait before the next question, 0 to 60.", valueName: "s"))
    var interval = 1.0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        _ = try SIPOptions.uri(uri, "URI")
        try Quantity.check("--count", count, in: 1...1000)
        try Quantity.check("--interval", interval, in: 0...60, "s")
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let target = try SIPOptions.uri(uri, "URI")
        let party = try await sip.open(towards: target, registers: false)
        do {
            try await ask(target, party)
            await party.leave()
        } catch {
            await party.leave()
            throw error
        }
    }

    private func ask(_ target: SIPURI, _ party: SIPParty) async throws {
        var iterator = party.endpoint.events.makeAsyncIterator()
        var (failure, hasAnswer): (RequestFailure?, Bool) = (nil, false)
        for index in 0..<count {
            if index > 0 { guard await Interruption.wait(.seconds(fraction: interval)) else { break } }
            failure = try await ask(target, party, &iterator)
            if failure == nil { hasAnswer = true }
        }
        if let failure, !hasAnswer { throw await party.failure(failure, uri) }
    }

    /// Asks once; gives why there was no answer.
    private func ask(
        _ target: SIPURI,
        _ party: SIPParty,
        _ iterator: inout AsyncStream<AgentEvent>.Iterator
    ) async throws -> RequestFailure? {
        let start = MonotonicClock.current
        let (account, headers) = (party.account, try sip.headers())
        let id = try await party.endpoint.perform { agent, now in
            try agent.send(.options, to: target, account: account, headers: headers, at: now)
        }
        var targets: [String] = []
        while let event = await iterator.next() {
            switch event {
            case .targets(id, let found):
                targets = found.map { SIPParty.text($0.transport, $0.address) }
            case .response(id, let response, _) where response.statusCode ?? 0 >= 200:
                show(response, targets, MonotonicClock.current - start)
                return nil
            case .failed(id, let failure): return failure
            default: break
            }
        }
        return nil
    }

    private func show(_ response: SIPMessage, _ targets: [String], _ time: Duration) {
        func list(_ name: String) -> [String] {
            response.values(named: name).flatMap { $0.split(separator: ",").map { "\($0)".filter { $0 != " " } } }
        }
        let (code, phrase) = (response.statusCode ?? 0, response.reasonPhrase)
        let server = (response.values(named: "Server") + response.values(named: "User-Agent")).first
        let json: JSONValue = [
            "code": .integer(code), "phrase": .string(phrase), "roundTripMs": .number(time.roundedMilliseconds),
            "targets": .array(targets.map { .string($0) }), "allow": .array(list("Allow").map { .string($0) }),
            "accept": .array(list("Accept").map { .string($0) }),
            "supported": .array(list("Supported").map { .string($0) }), "server": server.map { .string($0) } ?? .null,
        ]
        var lines = ["\(code) \(phrase) from \(targets.first ?? uri) in \(time.roundedMilliseconds) ms"]
        for (name, values) in [("Takes", list("Allow")), ("Bodies", list("Accept")), ("Knows", list("Supported"))] {
            if !values.isEmpty { lines.append("\(name): \(values.joined(separator: ", "))") }
        }
        if let server { lines.append("Program: \(server)") }
        common.show(json, text: lines.joined(separator: "\n") + "\n")
    }
}
