import ArgumentParser
internal import CallBasics

/// Who one is at a server.
///
/// Pushes are no group of their own: ArgumentParser proves groups within groups anew at each level, at every start of a debug
/// build.
struct AccountOptions: ParsableArguments {
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

    @Option(help: ArgumentHelp("The server to register at. Default: the domain of --account.", valueName: "uri"))
    var registrar: String?

    @Option(
        help: ArgumentHelp(
            "A proxy that requests go through, such as 'sip:192.0.2.1;lr'; more for more.",
            valueName: "uri"
        )
    )
    var proxy: [String] = []

    @Option(help: ArgumentHelp("The push service, such as fcm; Apple's by --push-team.", valueName: "name"))
    var pushProvider: String?

    @Option(help: ArgumentHelp("What pn-param says with --push-provider, as a project.", valueName: "text"))
    var pushParam: String?

    @Option(help: ArgumentHelp("The token with --push-provider.", valueName: "token"))
    var pushPrid: String?

    @Option(help: ArgumentHelp("The team of an application of Apple's push service.", valueName: "id"))
    var pushTeam: String?

    @Option(help: ArgumentHelp("The bundle of the application, such as org.example.phone.", valueName: "id"))
    var pushBundle: String?

    @Option(help: ArgumentHelp("The token that wakes it for calls.", valueName: "token"))
    var pushVoipToken: String?

    @Option(help: ArgumentHelp("The token that wakes it for texts.", valueName: "token"))
    var pushRemoteToken: String?

    func validate() throws { _ = try pushParameters() }

    /// What belongs to an account, and whether it was given.
    var given: [(name: String, isGiven: Bool)] {
        [
            ("--user", user != nil), ("--password-file", passwordFile != nil), ("--registrar", registrar != nil),
            ("--push-...", wantsPush),
        ]
    }

    /// Refuses flags that only an account gives a meaning.
    ///
    /// - Parameter flags: Others of that kind, and whether each was given.
    /// - Throws: `ValidationError` that names the first
    func check(_ flags: [(name: String, isGiven: Bool)]) throws {
        guard account == nil, let wrong = (given + flags).first(where: \.isGiven)?.name else { return }
        throw ValidationError("'\(wrong)' belongs to an account. Give '--account', or leave it out.")
    }

    /// What proves who one is; nil when nothing does.
    ///
    /// - Throws: `ToolFailure` when the file cannot be read, or others may read it
    func password() throws -> String? {
        guard let passwordFile else { return ProcessEnvironment.variables["MEDIA_TOOL_SIP_PASSWORD"] }
        return try SecretFile.line(of: passwordFile)
    }
}
