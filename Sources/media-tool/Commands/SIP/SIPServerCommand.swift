import ArgumentParser
import CallBasics
import SIP
import SIPTransport

extension ServerConfiguration.Forking: ExpressibleByArgument {}

/// A registrar and proxy to try things with.
struct SIPServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server",
        abstract: "Serves a domain as registrar and proxy, for tests and demonstrations.",
        discussion: """
            It is no server for the open network: it keeps nothing when it ends, and knows no other domain. \
            Strangers reach its users; its users prove who they are, and reach everybody. Texts for users who are away it \
            keeps until they register.

            With --push-to or --push-log it has phones woken that register with push parameters and hold no connection: \
            a call waits for --push-park seconds until the phone registers anew, a text is kept. A push is a line: \
            PUSH method=INVITE user=alice callid=... from=sip:... contact=sip:..., with the tokens in the contact.

            The users file is JSON: {"alice": {"password": "..."}, "bob": {}}; one without a password is asked for none. \
            Without the file everybody is a user.

            The script does things wrong on purpose. Each line is {"method": "INVITE", "to": "alice", "do": "delay", "ms": 500, \
            "times": 1}; "do" is delay, drop, duplicate, answer (with "code") or cut. The first line that fits is followed, for \
            each message that comes, repeats among them; "method", "to" and "times" may be left out.

            With --json each thing that happens is a line, "listening" first, "closed" last.

            EXAMPLES
              media-tool sip server --domain example.test
              media-tool sip server --domain example.test --users users.json --local 127.0.0.1:5060 --json
              media-tool sip server --domain example.test --tls-cert server.pem --tls-key server.key
              media-tool sip server --domain example.test --fork first --script late.jsonl --no-record-route
              media-tool sip server --domain example.test --push-to 127.0.0.1:5099 --push-park 20 --json
            """
    )

    @Option(
        help: ArgumentHelp("The domain of its users' addresses, and the realm of its challenges.", valueName: "name")
    )
    var domain: String

    @Option(
        help: ArgumentHelp(
            "Where it listens, by UDP and TCP, by TLS on the next port; more for more. Default: 127.0.0.1:5060.",
            valueName: "host:port"
        )
    )
    var local: [LocalAddress] = []

    @Option(help: SIPSecurity.Certificate.help, completion: .file())
    var tlsCert: String?

    @Option(help: SIPSecurity.Certificate.keyHelp, completion: .file())
    var tlsKey: String?

    @Option(help: ArgumentHelp("Its users with their passwords.", valueName: "file"), completion: .file())
    var users: String?

    @Option(help: "What it challenges with: MD5, SHA-256 or SHA-512-256; more for more. Default: SHA-256 and MD5.")
    var algorithm: [String] = []

    @Option(help: ArgumentHelp("The longest time for which it registers, 1 to 86400.", valueName: "s"))
    var expiresMax: UInt32 = 3600

    @Option(
        help: "Where a call goes whose user has several phones: all at once, or the first, the one that is liked best."
    )
    var fork = ServerConfiguration.Forking.all

    @Flag(inversion: .prefixedNo, help: "Stay on the way of calls.")
    var recordRoute = true

    @Option(help: ArgumentHelp("Where pushes go, as datagrams.", valueName: "host:port"))
    var pushTo: HostPort?

    @Option(
        help: ArgumentHelp("Where pushes are written, a line each; only its owner may read it.", valueName: "file"),
        completion: .file()
    )
    var pushLog: String?

    @Option(help: ArgumentHelp("How long a call waits for the phone that was woken, 1 to 600.", valueName: "s"))
    var pushPark: Double = 30

    @Option(help: ArgumentHelp("What it does wrong, a line each.", valueName: "file"), completion: .file())
    var script: String?

    @Option(help: ArgumentHelp("End after so long.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var common: CommonOptions

    private var certificate: SIPSecurity.Certificate? { SIPSecurity.Certificate(file: tlsCert, key: tlsKey) }

    func validate() throws {
        try SIPSecurity.Certificate.check(tlsCert, key: tlsKey)
        try Quantity.check("--expires-max", Int(expiresMax), in: 1...86_400, "s")
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try Quantity.check("--push-park", pushPark, in: 1...600, "s")
        var files = FileArguments()
        try files.write("--push-log", pushLog)
        _ = try algorithms()
        guard let uri = try? SIPURI("sip:\(domain)"), uri.host == domain else {
            throw ValidationError("The value '\(domain)' of '--domain' is no host. Give one such as example.test.")
        }
    }

    private func algorithms() throws -> [DigestAlgorithm] {
        try algorithm.map { name in
            guard let algorithm = DigestAlgorithm(parsing: Bytes(name)), !algorithm.isSession else {
                throw ValidationError(
                    "The value '\(name)' of '--algorithm' is not known. Give MD5, SHA-256 or SHA-512-256."
                )
            }
            return algorithm
        }
    }

    private func makeConfiguration() throws -> ServerConfiguration {
        var configuration = ServerConfiguration(domain: domain)
        configuration.users = try users.map { try ServerFiles.users(at: $0) }
        configuration.script = try script.map { try ServerFiles.script(at: $0) } ?? []
        let algorithms = try algorithms()
        if !algorithms.isEmpty { configuration.algorithms = algorithms }
        configuration.expires = 1...expiresMax
        (configuration.forking, configuration.staysOnWay) = (fork, recordRoute)
        configuration.product = "media-tool"
        if pushTo != nil || pushLog != nil {
            configuration.push = PushSettings()
            configuration.push?.patience = .seconds(fraction: pushPark)
        }
        return configuration
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        StandardOutput.watch()
        var limits = TransactionTable.Limits()
        // All calls of a test come from one address.
        limits.perSource = limits.received
        let server = SIPServer(
            try makeConfiguration(),
            seed: .random(in: .min ... .max),
            transactionLimits: limits
        )
        var security = SIPSecurity()
        security.certificate = certificate
        let endpoint = SIPEndpoint(server, security: security) { _ in .failure }
        do {
            try await serve(endpoint)
        } catch {
            await endpoint.close()
            throw error
        }
    }

    private static func name(_ push: PushParameters?) -> JSONValue {
        guard let push else { return .null }
        let services = push.services.map { JSONValue.string($0.rawValue) }
        return .object([("provider", .string(push.provider)), ("services", .array(services))])
    }

    private func tell(_ event: ServerEvent, _ teller: SIPTeller, _ sink: PushSink) throws {
        func tell(_ name: String, _ user: String, _ callID: String, _ text: String) {
            teller.tell(
                name,
                [("user", .string(user)), ("callID", .string(callID))],
                text: "\(user.printable): \(text)."
            )
        }
        switch event {
        case .binding(let user, let contact, let seconds, let push):
            teller.tell(
                "binding",
                [
                    ("user", .string(user)), ("contact", .string(contact)), ("expires", .integer(Int(seconds))),
                    ("push", Self.name(push)),
                ],
                text: seconds > 0
                    ? "\(user.printable) is at \(contact.printable) for \(seconds) s."
                    : "\(user.printable) is not at \(contact.printable) any more."
            )
        case .push(let push):
            try sink.send(push)
            teller.tell(
                "push",
                [
                    ("kind", .string(push.kind.rawValue)), ("user", .string(push.user)),
                    ("callID", .string(push.callID)), ("from", .string(push.from)),
                ],
                text:
                    "\(push.user.printable) is woken: \(push.from.printable) \(push.kind == .voip ? "calls" : "writes")."
            )
        case .parked(let user, let id): tell("parked", user, id, "the call waits for the phone")
        case .released(let user, let id): tell("released", user, id, "the phone is awake, the call goes on")
        case .gaveUp(let user, let id): tell("gaveUp", user, id, "the phone has not woken in time")
        case .kept(let user, let id): tell("kept", user, id, "a text is kept")
        case .fetched(let user, let id): tell("fetched", user, id, "a text was fetched")
        }
    }

    private func serve(_ endpoint: SIPEndpoint<SIPServer>) async throws {
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        let sink = try PushSink(to: pushTo?.resolve(), log: pushLog)
        let transports: [Flow.Transport] = certificate == nil ? [.udp, .tcp] : [.udp, .tcp, .tls]
        for address in local.isEmpty ? [.loopback(port: 5060)] : local.map(\.address) {
            do {
                _ = try await endpoint.open(at: address, transports)
            } catch {
                throw ToolFailure("\(error)")
            }
        }
        let names = await endpoint.listening.map(SIPParty.text)
        teller.tell(
            "listening",
            [("addresses", .array(names.map { .string($0) })), ("domain", .string(domain))],
            text: "Serving \(domain) at \(names.joined(separator: ", "))."
        )
        let watch = Task {
            await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
            guard !Task.isCancelled else { return }
            await endpoint.close()
        }
        defer { watch.cancel() }
        for await event in endpoint.events { try tell(event, teller, sink) }
        let (counts, requests, calls, messages) = await endpoint.perform { server, _ in
            (server.counts, server.requestCount, server.callCount, server.messageCount)
        }
        teller.tell(
            "closed",
            [
                ("bindings", .integer(counts.bindings)), ("requests", .integer(requests)), ("calls", .integer(calls)),
                ("messages", .integer(messages)), ("parked", .integer(counts.parked)),
                ("kept", .integer(counts.texts)),
            ],
            text: "Closed: \(counts.bindings) bindings, \(requests) requests, \(calls) calls, \(messages) messages."
        )
    }
}
