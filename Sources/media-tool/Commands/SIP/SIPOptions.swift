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
            "Take --account from there, by its address or name, and run as the core of the group meanwhile.",
            valueName: "dir"
        ),
        completion: .directory
    )
    var group: String?

    @Option(
        help: ArgumentHelp(
            "The only realm that the password is for. Default: any that is asked for.",
            valueName: "name"
        )
    )
    var realm: String?

    @Option(
        help: ArgumentHelp(
            "The UUID that this phone is known by at the server. Default: the account's, which is made once and kept.",
            valueName: "uuid"
        )
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

    @Option(help: ArgumentHelp("How long to be registered, 60 to 86400. Default: 3600.", valueName: "s"))
    var expires: UInt32?

    @Flag(help: "Do not register --account before calls.")
    var noRegister = false

    @Option(
        help: ArgumentHelp(
            "A header of the request, or of REGISTER where calls and texts are waited for; more for more.",
            valueName: "'N: V'"
        )
    )
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            "Give up a request that was not answered for so long, 0.1 to 600; all but INVITE end after 32 in any case.",
            valueName: "s"
        )
    )
    var timeout: Double?

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
        try Quantity.check("--expires", expires.map { Int($0) }, in: 60...86_400, "s")
        try Quantity.check("--timeout", timeout, in: 0.1...600, "s")
        _ = try headers()
        try Quantity.check("--t1", t1, in: 10...5000, "ms")
        guard !unredacted || sipTrace != nil else {
            throw ValidationError("'--unredacted' is about '--sip-trace'. Give it, or leave it out.")
        }
        guard dns == nil || hosts == nil else {
            throw ValidationError("'--hosts' takes the place of name servers. Leave out '--dns', or it.")
        }
        guard !noRegister || !own.wantsPush else {
            throw ValidationError("'--push-...' is about registrations. Leave out '--no-register', or it.")
        }
        if group == nil {
            try own.check([("--realm", realm != nil), ("--instance", instance != nil)])
        } else {
            let given =
                own.given + [
                    ("--realm", realm != nil), ("--instance", instance != nil), ("--expires", expires != nil),
                    ("--proxy", !proxy.isEmpty),
                ]
            if let wrong = given.first(where: \.1)?.0 {
                throw ValidationError("'\(wrong)' is what the group knows. Leave it out, or '--group'.")
            }
        }
        if let instance, !Self.isUUID(instance) {
            throw ValidationError(
                "The value '\(instance.printable)' of '--instance' is no UUID. "
                    + "Give one such as f81d4fae-7dec-11d0-a765-00a0c91e6bf6."
            )
        }
        if group == nil { _ = try own.account.map { try Self.uri($0, "--account") } }
        _ = try routes()
        if let registrar { _ = try Self.uri(registrar, "--registrar") }
    }

    /// Whether there is somebody to be registered.
    var hasAccount: Bool { own.account != nil || group != nil }
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

    func routes() throws -> [NameAddress] { try proxy.map { NameAddress(try Self.uri($0, "--proxy")) } }

    var transports: [Flow.Transport] {
        switch transport {
        case .udp?: [.udp]
        case .tcp?: [.tcp]
        case .tls?: [.tls]
        case nil: [.udp, .tcp, .tls]
        }
    }

    /// The account that the flags tell of; nil without one.
    func accountOfFlags() throws -> AccountConfiguration? {
        guard let text = own.account else { return nil }
        var account = AccountConfiguration(identity: NameAddress(try Self.uri(text, "--account")))
        if let password = try own.password() {
            let name = own.user ?? account.identity.uri.user ?? ""
            account.credentials = [Credentials(userName: name, password: password, realm: realm)]
        }
        account.routes = try routes()
        account.registrar = try registrar.map { try Self.uri($0, "--registrar") }
        (account.expires, account.push) = (expires ?? 3600, try own.pushParameters())
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
        var options = self
        (options.own.account, options.instance) = (numbered, nil)
        guard var made = try options.accountOfFlags() else { throw ToolFailure("\(numbered) is no account.") }
        made.headers = try registerHeaders()
        return made
    }

    func registerHeaders() throws -> [RegistrationConfiguration.Header] {
        try headers().map { .init($0.name, $0.value) }
    }

    /// Refuses what has no meaning in virtual time, `others` among it, or only there.
    ///
    /// - Throws: `ValidationError` that names the first
    func check(virtual: Bool, seed: UInt64?, _ others: [(String, Bool)]) throws {
        guard virtual else {
            guard seed == nil else { throw ValidationError("'--seed' is about '--virtual'. Give it, or leave it out.") }
            return
        }
        let given = [("--transport", transport != nil)] + ofNetworks.filter { $0.0 != "--account" } + others
        if let wrong = given.first(where: \.1)?.0 {
            throw ValidationError("'\(wrong)' needs a network that is there. Leave out '--virtual', or it.")
        }
    }

    /// What only a network that is there gives a meaning, but `--transport`, and whether it was given.
    var ofNetworks: [(String, Bool)] {
        [
            ("--account", account != nil), ("--local", local != nil), ("--proxy", !proxy.isEmpty),
            ("--registrar", registrar != nil), ("--user", own.user != nil), ("--group", group != nil),
            ("--password-file", own.passwordFile != nil), ("--push-...", own.wantsPush),
            ("--instance", instance != nil), ("--realm", realm != nil), ("--header", !header.isEmpty),
            ("--dns", dns != nil), ("--hosts", hosts != nil), ("--advertise", advertise != nil),
            ("--timeout", timeout != nil), ("--expires", expires != nil), ("--no-register", noRegister),
            ("--sip-trace", sipTrace != nil), ("--t1", t1 != 500),
        ] + tls.given
    }

    /// The headers that are told.
    func headers() throws -> [(name: String, value: String)] {
        try header.map { line in
            guard let colon = line.firstIndex(of: ":"), !line.contains(where: \.isNewline), colon > line.startIndex,
                line[..<colon].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-.!%*_+`'~".contains($0)) })
            else {
                throw ValidationError("The value '\(line.printable)' of '--header' is no header. Write 'Name: value'.")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            return (String(line[..<colon]), String(value))
        }
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
