import ArgumentParser
internal import CallBasics
import CallCore
internal import Glibc
import MediaEngine
import SIP
import SIPTransport

/// What commands share that speak SIP: who one is, which way, and with which names.
struct SIPOptions: ParsableArguments {
    @OptionGroup var own: AccountOptions

    @Option(
        help: ArgumentHelp(
            "The only realm that the password is for. Default: any that is asked for.",
            valueName: "name"
        )
    )
    var realm: String?

    @Option(
        help: ArgumentHelp("The UUID that this phone is known by at the server, over its addresses.", valueName: "uuid")
    )
    var instance: String?

    @Option(help: "What carries messages: udp, tcp or tls. Default: what URIs, names and length ask for.")
    var transport: SIPTransportName?

    @Option(
        help: ArgumentHelp(
            "The own address and port; TLS with --tls-cert has the next. Default: the address that leads there, any port.",
            valueName: "host:port"
        )
    )
    var local: LocalAddress?

    @Option(
        help: ArgumentHelp(
            "What Contact says in the place of the own address: a mapping by hand.",
            valueName: "host:port"
        )
    )
    var advertise: HostPort?

    @Option(help: ArgumentHelp("The name server to ask. Default: those of the machine.", valueName: "host:port"))
    var dns: HostPort?

    @Option(
        help: ArgumentHelp("A file with the records, as `sip resolve` reads it.", valueName: "file"),
        completion: .file()
    )
    var hosts: String?

    @OptionGroup var tls: TLSOptions

    @Option(help: ArgumentHelp("How long to be registered, 60 to 86400.", valueName: "s"))
    var expires: UInt32 = 3600

    @Flag(help: "Do not register --account before calls.")
    var noRegister = false

    @Option(
        help: ArgumentHelp(
            "Write all messages there, without passwords, tokens and keys: a text, or with the ending .pcap a capture.",
            valueName: "file"
        ),
        completion: .file()
    )
    var sipTrace: String?

    @Flag(help: "Leave passwords' proofs, tokens and keys in --sip-trace, which only its owner may read then.")
    var unredacted = false

    @Option(help: ArgumentHelp("The base of all timers, 10 to 5000; for tests.", valueName: "ms"))
    var t1: Int = 500

    func validate() throws {
        try Quantity.check("--expires", Int(expires), in: 60...86_400, "s")
        try Quantity.check("--t1", t1, in: 10...5000, "ms")
        guard !unredacted || sipTrace != nil else {
            throw ValidationError("'--unredacted' is about '--sip-trace'. Give it, or leave it out.")
        }
        guard dns == nil || hosts == nil else {
            throw ValidationError("'--hosts' takes the place of name servers. Leave out '--dns', or it.")
        }
        guard !noRegister || !own.push.isGiven else {
            throw ValidationError("'--push-...' is about registrations. Leave out '--no-register', or it.")
        }
        try own.check([("--realm", realm != nil), ("--instance", instance != nil)])
        if let instance, !Self.isUUID(instance) {
            throw ValidationError(
                "The value '\(instance.printable)' of '--instance' is no UUID. "
                    + "Give one such as f81d4fae-7dec-11d0-a765-00a0c91e6bf6."
            )
        }
        _ = try identity().map { _ in }
        _ = try routes()
        if let registrar { _ = try Self.uri(registrar, "--registrar") }
    }

    var account: String? { own.account }
    var registrar: String? { own.registrar }
    var proxy: [String] { own.proxy }

    private static func isUUID(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.count) == [8, 4, 4, 4, 12] && parts.joined().allSatisfy { $0.isASCII && $0.isHexDigit }
    }

    /// A URI of a flag or an argument.
    ///
    /// - Throws: `ValidationError` that names it
    static func uri(_ text: String, _ flag: String) throws -> SIPURI {
        do throws(SIPError) {
            return try SIPURI(callable: text)
        } catch {
            throw ValidationError("The value '\(text)' of '\(flag)': \(error.message)")
        }
    }

    /// The own address with the name of its account; nil without one.
    func identity() throws -> NameAddress? { try account.map { NameAddress(try Self.uri($0, "--account")) } }

    private func routes() throws -> [NameAddress] { try proxy.map { NameAddress(try Self.uri($0, "--proxy")) } }

    var transports: [Flow.Transport] {
        switch transport {
        case .udp?: [.udp]
        case .tcp?: [.tcp]
        case .tls?: [.tls]
        case nil: [.udp, .tcp, .tls]
        }
    }

    /// Who knows names.
    func names() throws -> NameLookup.Names {
        if let hosts {
            let bytes = try TextFile.read(InputPath.path(of: hosts), limit: 1 << 22)
            do {
                return .file(try ZoneFile(parsing: String(decoding: bytes, as: UTF8.self)))
            } catch {
                throw ToolFailure("\(InputPath.name(of: hosts)): \(error.message)")
            }
        }
        return .servers(try DNSClient(servers: try dns.map { [try $0.resolve()] } ?? []))
    }

    /// What proves who one is; nil without an account or a password.
    private func credentials(_ identity: NameAddress) throws -> Credentials? {
        guard let password = try own.password() else { return nil }
        let name = own.user ?? identity.uri.user ?? ""
        return Credentials(userName: name, password: password, realm: realm)
    }

    /// An agent with its sockets, on the way to `target` or to its registrar.
    ///
    /// - Throws: `ToolFailure` when the target has no address, or the port is another's
    func open(
        towards target: SIPURI?,
        product: String = "media-tool",
        story: StoryRecorder? = nil,
        _ change: (inout AgentConfiguration) -> Void = { _ in }
    ) async throws -> SIPParty {
        let (identity, names) = (try identity(), try names())
        let (local, peer) = try await way(towards: target, identity, names)
        let host = local.isIPv4 ? local.host : "[\(local.host)]"
        let anonymous = NameAddress(try SIPURI("sip:\(host)"))
        var configuration = AgentConfiguration(identity: identity ?? anonymous)
        configuration.transports = transports
        configuration.families = local.isIPv4 ? [.ipv4] : [.ipv6]
        configuration.product = product
        configuration.isReachableByTLS = tls.own.certificate != nil
        change(&configuration)
        configuration.advertised = try advertise?.resolve()
        configuration.routes = try routes()
        let timers = TransactionTimers(t1: .milliseconds(t1), t2: .milliseconds(max(t1, 4000)))
        let agent = UserAgent(configuration, seed: .random(in: .min ... .max), timers: timers)
        let endpoint = SIPEndpoint(agent, security: tls.security()) { question in await names.answer(to: question) }
        let trace = try sipTrace.map { try SIPTrace(path: $0, hasSecrets: unredacted) }
        if trace != nil || story != nil {
            await endpoint.tap(showingSecrets: unredacted) { message in
                trace?.write(message)
                story?.note(message)
            }
        }
        if let story {
            await endpoint.watch {
                story.note($0, at: $1)
            } events: {
                story.note($0, at: $1)
            }
        }
        let bound: SocketAddress
        do {
            bound = try await endpoint.open(at: local, transports)
        } catch {
            await endpoint.close()
            throw ToolFailure("\(error)")
        }
        var handle: AccountHandle?
        if let identity {
            let made = try account(identity)
            handle = await endpoint.perform { agent, _ in agent.addAccount(made) }
        }
        let listening = await endpoint.listening
        return SIPParty(
            endpoint: endpoint,
            local: bound,
            account: handle,
            peer: peer,
            addresses: listening.map(SIPParty.text),
            trace: trace
        )
    }

    private func account(_ identity: NameAddress) throws -> AccountConfiguration {
        var account = AccountConfiguration(identity: identity)
        account.credentials = try credentials(identity).map { [$0] } ?? []
        account.routes = try routes()
        account.registrar = try registrar.map { try Self.uri($0, "--registrar") }
        (account.expires, account.push) = (expires, try own.push.parameters())
        account.instance = instance.map { "urn:uuid:\($0.lowercased())" }
        return account
    }

    /// The account with a number behind its user.
    func account(number: Int) throws -> AccountConfiguration {
        let text = account ?? ""
        guard let at = text.firstIndex(of: "@") else {
            throw ToolFailure("\(text) has no user. Give --account one, such as sip:alice@example.org.")
        }
        let numbered = "\(text[..<at])\(number)\(text[at...])"
        var made = try account(NameAddress(try Self.uri(numbered, "--account")))
        made.instance = nil
        return made
    }

    /// The own address, and the server or peer that it leads to where it was not given.
    private func way(
        towards target: SIPURI?,
        _ identity: NameAddress?,
        _ names: NameLookup.Names
    ) async throws -> (local: SocketAddress, peer: SocketAddress?) {
        if let local { return (local.address, nil) }
        var next = target
        if let registrar { next = try Self.uri(registrar, "--registrar") } else if let identity { next = identity.uri }
        if let first = try routes().first { next = first.uri }
        guard let next else { return (.loopback(port: 0), nil) }
        var lookup = NameLookup(seed: 1)
        let targets = try await lookup.resolve(next, by: names).targets
        for target in targets {
            if let address = await SourceAddress.towards(target.address) { return (address, target.address) }
        }
        throw ToolFailure(
            "There is no way to \(targets.first.map { "\($0.address)" } ?? "the target"). Check the network."
        )
    }
}

/// What carries SIP, as flags name it.
enum SIPTransportName: String, ExpressibleByArgument, CaseIterable { case udp, tcp, tls }

/// An own address, with a port or with any.
struct LocalAddress: ExpressibleByArgument {
    let address: SocketAddress

    init?(argument: String) {
        if let address = SocketAddress(host: argument, port: 0) {
            self.address = address
            return
        }
        guard let colon = argument.lastIndex(of: ":"), let port = UInt16(argument[argument.index(after: colon)...]),
            let address = SocketAddress(host: argument[..<colon].filter { $0 != "[" && $0 != "]" }, port: port)
        else { return nil }
        self.address = address
    }
}

/// An agent of the tool with its sockets.
struct SIPParty {
    let endpoint: SIPEndpoint<UserAgent>
    let local: SocketAddress
    let account: AccountHandle?
    /// Whom its own address leads to; nil where that was given.
    let peer: SocketAddress?
    /// Where it listens, as scripts are told.
    let addresses: [String]
    let trace: SIPTrace?

    static func text(_ transport: Flow.Transport, _ address: SocketAddress) -> String {
        "\(transport.name)".lowercased() + " \(address)"
    }

    /// Takes the account's binding away, and closes the sockets.
    func close() async {
        await endpoint.close(afterUnregistering: [account].compactMap(\.self))
        trace?.close()
    }

    /// Closes the sockets; the binding stays.
    func leave() async {
        await endpoint.close()
        trace?.close()
    }
}
