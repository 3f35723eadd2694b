import ArgumentParser
internal import CallBasics
internal import Glibc
import MediaEngine
internal import NIOPosix
import SIP
import SIPTransport

/// What commands share that speak SIP: who one is, which way, and with which names.
struct SIPOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The own address, such as sip:alice@example.org; none is needed to call by IP.",
            valueName: "uri"
        )
    )
    var account: String?

    @Option(help: ArgumentHelp("The name for authentication. Default: the user part of --account.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "A file of mode 0600 with the password; - reads standard input. Default: MEDIA_TOOL_SIP_PASSWORD.",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "A proxy that requests go through, such as 'sip:192.0.2.1;lr'; more for more.",
            valueName: "uri"
        )
    )
    var proxy: [String] = []

    @Option(help: ArgumentHelp("The server to register at. Default: the domain of --account.", valueName: "uri"))
    var registrar: String?

    @Option(help: "What carries messages: udp or tcp. Default: what names and length ask for.")
    var transport: SIPTransportName?

    @Option(
        help: ArgumentHelp(
            "The own address and port. Default: the address that leads to the target, and any port.",
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

    @Option(help: ArgumentHelp("How long to be registered, 60 to 86400.", valueName: "s"))
    var expires: UInt32 = 3600

    @Flag(help: "Do not register --account before calls.")
    var noRegister = false

    @Option(help: ArgumentHelp("The base of all timers, 10 to 5000; for tests.", valueName: "ms"))
    var t1: Int = 500

    func validate() throws {
        try Quantity.check("--expires", Int(expires), in: 60...86_400, "s")
        try Quantity.check("--t1", t1, in: 10...5000, "ms")
        guard dns == nil || hosts == nil else {
            throw ValidationError("'--hosts' takes the place of name servers. Leave out '--dns', or it.")
        }
        if account == nil {
            let given = [
                ("--user", user != nil), ("--password-file", passwordFile != nil), ("--registrar", registrar != nil),
            ]
            if let wrong = given.first(where: \.1)?.0 {
                throw ValidationError("'\(wrong)' belongs to an account. Give '--account', or leave it out.")
            }
        }
        _ = try identity().map { _ in }
        _ = try routes()
        if let registrar { _ = try Self.uri(registrar, "--registrar") }
    }

    /// A URI of a flag or an argument.
    ///
    /// - Throws: `ValidationError` that names it
    static func uri(_ text: String, _ flag: String) throws -> SIPURI {
        do throws(SIPError) {
            let uri = try SIPURI(text)
            guard uri.scheme == .sip || uri.scheme == .sips else {
                throw SIPError(.unsupportedScheme, "It is no sip: URI. Give one such as sip:alice@example.org.")
            }
            guard uri.scheme == .sip else {
                throw SIPError(.unsupportedScheme, "TLS is not there yet. Give a sip: URI.")
            }
            return uri
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
        case nil: [.udp, .tcp]
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
        guard let password = try Self.password(passwordFile) else { return nil }
        let name = user ?? identity.uri.user ?? ""
        return Credentials(userName: name, password: password)
    }

    private static func password(_ file: String?) throws -> String? {
        guard let file else { return ProcessEnvironment.variables["MEDIA_TOOL_SIP_PASSWORD"] }
        let path = InputPath.path(of: file)
        var status = stat()
        if file != "-", stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 {
            throw ToolFailure("Others may read \(file). Say: chmod 600 \(file)")
        }
        let text = String(decoding: try TextFile.read(path, limit: 4096), as: UTF8.self)
        return String(text.prefix { !$0.isNewline })
    }

    /// An agent with its sockets, on the way to `target` or to its registrar.
    ///
    /// - Throws: `ToolFailure` when the target has no address, or the port is another's
    func open(towards target: SIPURI?, product: String = "media-tool") async throws -> SIPParty {
        let (identity, names) = (try identity(), try names())
        let local = try await localAddress(towards: target, identity, names)
        let host = local.isIPv4 ? local.host : "[\(local.host)]"
        let anonymous = NameAddress(try SIPURI("sip:\(host)"))
        var configuration = AgentConfiguration(identity: identity ?? anonymous)
        configuration.transports = transports
        configuration.families = local.isIPv4 ? [.ipv4] : [.ipv6]
        configuration.product = product
        configuration.advertised = try advertise?.resolve()
        let timers = TransactionTimers(t1: .milliseconds(t1), t2: .milliseconds(max(t1, 4000)))
        let agent = UserAgent(configuration, seed: .random(in: .min ... .max), timers: timers)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let endpoint = SIPEndpoint(agent, on: loop) { question in await names.answer(to: question) }
        let bound: SocketAddress
        do {
            bound = try await endpoint.open(at: local, transports)
        } catch {
            await endpoint.close()
            throw ToolFailure("\(error)")
        }
        var handle: AccountHandle?
        if let identity {
            var wishes = AccountConfiguration(identity: identity)
            wishes.credentials = try credentials(identity).map { [$0] } ?? []
            wishes.routes = try routes()
            wishes.registrar = try registrar.map { try Self.uri($0, "--registrar") }
            wishes.expires = expires
            let made = wishes
            handle = await endpoint.perform { agent, _ in agent.addAccount(made) }
        }
        return SIPParty(endpoint: endpoint, local: bound, account: handle, transports: transports)
    }

    private func localAddress(
        towards target: SIPURI?,
        _ identity: NameAddress?,
        _ names: NameLookup.Names
    ) async throws -> SocketAddress {
        if let local { return local.address }
        var next = target
        if let registrar { next = try Self.uri(registrar, "--registrar") } else if let identity { next = identity.uri }
        if let first = try routes().first { next = first.uri }
        guard let next else { return .loopback(port: 0) }
        var lookup = NameLookup(seed: 1)
        let targets = try await lookup.resolve(next, by: names).targets
        for target in targets {
            if let address = await SourceAddress.towards(target.address) { return address }
        }
        throw ToolFailure(
            "There is no way to \(targets.first.map { "\($0.address)" } ?? "the target"). Check the network."
        )
    }
}

/// What carries SIP, as flags name it.
enum SIPTransportName: String, ExpressibleByArgument, CaseIterable { case udp, tcp }

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
    let transports: [Flow.Transport]

    /// Where it listens, as scripts are told.
    var addresses: [String] { transports.map { "\($0.name)".lowercased() + " \(local)" } }

    /// Takes the account's binding away, waits until what was sent last has its answers, a second at most, and closes the sockets.
    func close() async {
        if let account { await endpoint.perform { agent, now in agent.unregister(account, at: now) } }
        let end = MonotonicClock.current + .seconds(1)
        while await endpoint.perform({ agent, _ in agent.openRequestCount }) > 0, MonotonicClock.current < end {
            try? await Task.sleep(for: .milliseconds(5))
        }
        await endpoint.close()
    }
}
