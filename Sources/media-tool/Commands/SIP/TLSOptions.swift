import ArgumentParser
internal import CallBasics
import SIP
import SIPTransport

/// Whom to trust by TLS, and who one is.
struct TLSOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The certificates in PEM that prove those of servers. Default: those of the machine.",
            valueName: "file"
        ),
        completion: .file()
    )
    var tlsCa: String?

    @Option(
        help: ArgumentHelp(
            "The name that the server's certificate has to show. Default: the domain of the URI.",
            valueName: "name"
        )
    )
    var tlsName: String?

    @Option(help: SIPSecurity.Certificate.help, completion: .file())
    var tlsCert: String?

    @Option(help: SIPSecurity.Certificate.keyHelp, completion: .file())
    var tlsKey: String?

    @Flag(help: "Take any certificate: whoever is on the way can read and change everything.")
    var tlsInsecure = false

    func validate() throws {
        try SIPSecurity.Certificate.check(tlsCert, key: tlsKey)
        guard !tlsInsecure || tlsCa == nil && tlsName == nil else {
            throw ValidationError(
                "'--tls-insecure' looks at no certificate. Leave it out, or '--tls-ca' and '--tls-name'."
            )
        }
    }

    /// The options, and whether they were given.
    var given: [(String, Bool)] {
        [
            ("--tls-ca", tlsCa != nil), ("--tls-name", tlsName != nil), ("--tls-cert", tlsCert != nil),
            ("--tls-insecure", tlsInsecure),
        ]
    }

    /// Who one is.
    var certificate: SIPSecurity.Certificate? { SIPSecurity.Certificate(file: tlsCert, key: tlsKey) }

    /// What connections are secured by; says on standard error when that is nothing.
    func security() -> SIPSecurity {
        var security = SIPSecurity()
        security.authoritiesPath = tlsCa.map { InputPath.path(of: $0) }
        security.serverName = tlsName
        security.certificate = certificate
        security.verifiesServers = !tlsInsecure
        if tlsInsecure { StandardError.write("Warning: by --tls-insecure nobody proves who they are.\n") }
        return security
    }
}

extension SIPSecurity.Certificate {
    static let help = ArgumentHelp(
        "The own certificate in PEM, with those that prove it behind it: to be called by TLS.",
        valueName: "file"
    )
    static let keyHelp = ArgumentHelp("The key of --tls-cert in PEM, without a password.", valueName: "file")

    /// Refuses a certificate without its key, and a key alone.
    ///
    /// - Throws: `ValidationError`
    static func check(_ file: String?, key: String?) throws {
        guard (file == nil) == (key == nil) else {
            throw ValidationError("'--tls-cert' and '--tls-key' belong together. Give both, or leave both out.")
        }
    }

    /// The certificate of two flags; nil without them.
    init?(file: String?, key: String?) {
        guard let file, let key else { return nil }
        self.init(path: InputPath.path(of: file), keyPath: InputPath.path(of: key))
    }
}

extension SIPParty {
    /// Why the last connection by TLS could not be made, with the remedy; nil where that is not what failed.
    var securityFailure: String? {
        get async {
            guard let failure = await endpoint.takeSecurityFailure() else { return nil }
            switch failure.code {
            case .wrongName: return "\(failure) Give --tls-name, or mend the server."
            case .untrusted: return "\(failure) Give --tls-ca with who signed it, or mend the server."
            default: return "\(failure)"
            }
        }
    }

    /// What failed, with the remedy.
    func failure(_ failure: RequestFailure, _ peer: String) async -> ToolFailure {
        var text = failure.text(peer)
        if case .unanswered = failure, let cause = await securityFailure { text = cause }
        var told = ToolFailure(text)
        told.status = failure.status
        return told
    }
}
