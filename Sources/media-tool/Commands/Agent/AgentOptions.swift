public import AgentSockets
public import ArgumentParser
import CallBasics

extension AgentFormat: ExpressibleByArgument {}

/// Which agent is talked to, and how.
struct AgentOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The agent: ws://HOST:PORT/PATH, wss://..., audiosocket:HOST:PORT, audiosocket:/PATH.",
            valueName: "address"
        )
    )
    var to: String?

    @Option(
        help: ArgumentHelp(
            "In the place of --to: where agents dial in, each at the path that a line says, in Asterisk's format. At 0.0.0.0 the path alone counts.",
            valueName: "host:port"
        )
    )
    var agentsAt: LocalAddress?

    @Option(
        help: ArgumentHelp("A certificate in PEM, by which agents dial in by wss.", valueName: "file"),
        completion: .file()
    )
    var agentsCert: String?

    @Option(
        help: ArgumentHelp("The key of --agents-cert in PEM, without a password.", valueName: "file"),
        completion: .file()
    )
    var agentsKey: String?

    @Option(help: "What an agent by WebSocket speaks: \(AgentFormat.allCases.map(\.rawValue).joined(separator: ", ")).")
    var format: AgentFormat?

    @Option(
        help: ArgumentHelp("Samples a second: 8000, 16000, 24000 or 48000, where the format has them.", valueName: "hz")
    )
    var rate: Int?

    @Option(
        help: ArgumentHelp(
            "What the agent is told of a call, as purpose=survey; more for more.",
            valueName: "name=value"
        )
    )
    var parameter: [String] = []

    @Option(
        help: ArgumentHelp("A header field of the request by WebSocket; more for more.", valueName: "name: value")
    )
    var agentHeader: [String] = []

    @Option(
        help: ArgumentHelp(
            "Certificates (PEM) that prove the agent's by wss, in the place of the machine's.",
            valueName: "file"
        ),
        completion: .file()
    )
    var agentCa: String?

    @Option(
        help: ArgumentHelp(
            "An auth token, its file's first line, that signs the request as Twilio does (X-Twilio-Signature).",
            valueName: "file"
        ),
        completion: .file()
    )
    var agentTokenFile: String?

    @Flag(
        inversion: .prefixedNo,
        help:
            "Pause what the agent says as soon as somebody speaks into it, until it clears that, for 600 ms at most. Default: where it can clear."
    )
    var pause: Bool?

    func validate() throws {
        guard (to == nil) != (agentsAt == nil) else {
            throw ValidationError("Give '--to', an agent that is dialled, or '--agents-at', where agents dial in.")
        }
        _ = try address()
        var files = FileArguments()
        try files.read("--agent-ca", agentCa)
        try files.read("--agent-token-file", agentTokenFile)
        try files.read("--agents-cert", agentsCert)
        try files.read("--agents-key", agentsKey)
        let isWeb = to?.lowercased().hasPrefix("ws") ?? true
        let rates = isWeb ? spoken.sampleRates.sorted() : [8000, 16_000, 24_000, 48_000]
        if let rate, !rates.contains(rate) {
            let known = rates.map(String.init).joined(separator: ", ")
            throw ValidationError("The value '\(rate)' of '--rate' is none that the format has. Give one of \(known).")
        }
        let ofWeb = [
            ("--format", format != nil), ("--agent-header", !agentHeader.isEmpty), ("--parameter", !parameter.isEmpty),
            ("--agent-ca", agentCa != nil), ("--agent-token-file", agentTokenFile != nil),
        ]
        if let other = ofWeb.first(where: \.1)?.0, !isWeb {
            throw ValidationError("'\(other)' is for WebSocket. Leave it out, or take ws:// or wss://.")
        }
        try validateWay()
        guard spoken != .asteriskPlain || parameter.isEmpty else {
            throw ValidationError("'--parameter' is told in JSON alone. Leave it out, or take '--format asterisk'.")
        }
        if agentTokenFile == "-" {
            throw ValidationError("'--agent-token-file' is read for each call. Give a file, not standard input.")
        }
        if agentTokenFile != nil, spoken != .twilio {
            throw ValidationError(
                "'--agent-token-file' is for Twilio's format. Leave it out, or take '--format twilio'."
            )
        }
        _ = try (parameters(), headers(), token())
    }

    /// Refuses what is for agents that are dialled where they dial in, and the other way round.
    private func validateWay() throws {
        let (ofCertificate, ofDialling) = (
            [("--agents-cert", agentsCert), ("--agents-key", agentsKey)],
            [
                ("--agent-header", agentHeader.first), ("--agent-ca", agentCa), ("--agent-token-file", agentTokenFile),
            ]
        )
        guard agentsAt != nil else {
            if let (option, _) = ofCertificate.first(where: { $0.1 != nil }) {
                throw ValidationError("'\(option)' is for agents that dial in. Leave it out, or give '--agents-at'.")
            }
            if agentCa != nil, !(to?.lowercased().hasPrefix("wss:") ?? false) {
                throw ValidationError("'--agent-ca' is for TLS. Leave it out, or take wss://.")
            }
            return
        }
        if let (option, _) = ofDialling.first(where: { $0.1 != nil }) {
            throw ValidationError("'\(option)' is for agents that are dialled. Leave it out, or give '--to'.")
        }
        guard spoken.dialsIn else {
            throw ValidationError(
                "Agents of the format '\(spoken.rawValue)' are dialled. Give '--to', or '--format asterisk'."
            )
        }
        guard (agentsCert == nil) == (agentsKey == nil) else {
            throw ValidationError("'--agents-cert' and '--agents-key' belong together. Give both, or leave both out.")
        }
        if let (option, _) = ofCertificate.first(where: { $0.1 == "-" }) {
            throw ValidationError("'\(option)' is no standard input. Give a file.")
        }
    }

    /// What is spoken by WebSocket.
    private var spoken: AgentFormat { format ?? (agentsAt == nil ? .twilio : .asterisk) }

    /// Where the agent is; nil where agents dial in.
    private func address() throws -> AgentAddress? {
        guard let to else { return nil }
        do throws(AgentError) { return try AgentAddress(to) } catch { throw ValidationError(error.description) }
    }

    /// Where the agent is, without a path; nil where agents dial in.
    var place: String? { (try? address())?.place }

    /// Whether what is said goes through the network in the clear.
    var isInTheClear: Bool {
        get throws { try address()?.isInTheClear ?? (agentsCert == nil && agentsAt?.address.isLoopback == false) }
    }

    /// What the agent is told of each call; the last one of a name counts.
    func parameters() throws -> [String: String] {
        let told = try parameter.map { try Self.pair($0, "=", "--parameter") }
        return Dictionary(told.map { ($0.name, $0.value) }) { $1 }
    }

    private func headers() throws -> [(name: String, value: String)] {
        try agentHeader.map { try Self.pair($0, ":", "--agent-header") }
    }

    private func token() throws -> String? {
        guard let path = agentTokenFile else { return nil }
        let token = try SecretFile.line(of: path)
        guard !token.isEmpty else {
            throw ValidationError("The first line of \(path) is empty. Give '--agent-token-file' a file with a token.")
        }
        return token
    }

    private static func pair(_ text: String, _ mark: Character, _ option: String) throws -> (
        name: String, value: String
    ) {
        guard let place = text.firstIndex(of: mark), place > text.startIndex else {
            throw ValidationError("The value '\(text)' of '\(option)' has no '\(mark)' behind a name.")
        }
        let value = text[text.index(after: place)...]
        return (String(text[..<place]), String(mark == ":" ? value.drop { $0 == " " } : value))
    }

    /// How agents are taken that dial in.
    var receptionOptions: AgentReception.Options {
        var options = AgentReception.Options()
        (options.format, options.sampleRate, options.isPausedBySpeech) = (spoken, rate, pause)
        if let agentsCert, let agentsKey {
            options.certificate = AgentReception.Certificate(
                path: agentsCert,
                keyPath: agentsKey
            )
        }
        return options
    }

    /// Dials the agent.
    ///
    /// - Parameter call: What it is told; nil when it is told later.
    /// - Returns: The line.
    /// - Throws: `AgentError` when it is not there, `ToolFailure` when the token cannot be read
    func dial(_ call: AgentCall?) async throws -> AgentLine {
        guard let address = try address() else { throw ToolFailure("There is no agent to dial. Give '--to'.") }
        var options = AgentLine.Options()
        (options.format, options.sampleRate) = (spoken, rate)
        options.headers = try headers()
        options.authoritiesPath = agentCa
        options.authToken = try token()
        options.isPausedBySpeech = pause
        return try await AgentLine.open(to: address, call, options)
    }
}
