import ArgumentParser
import CallBasics
import CallCore
import MediaEngine

/// Servers that help to find the way: such as tell how this side is seen, and one that passes on what both sides send.
struct NATServerOptions: ParsableArguments {
    @Option(help: STUNServer.help)
    var stun: [STUNServer] = []

    @OptionGroup var relay: TURNOptions

    /// Refuses them where nobody looks for the way.
    ///
    /// - Throws: `ValidationError`, which names the option that is missing
    func requireSearch(_ isThere: Bool, by option: String) throws {
        guard !isThere, let name = relay.turn != nil ? "--turn" : stun.isEmpty ? nil : "--stun" else { return }
        throw ValidationError("'\(name)' is for a side that looks for the way. Add '\(option)', or leave it out.")
    }

    /// This side of ICE, which looks for the way by them.
    ///
    /// - Throws: `ToolFailure` when a server has no address, or its password is not there or cannot be read
    func configuration() async throws -> ICEConfiguration {
        ICEConfiguration(servers: try await STUNServer.addresses(of: stun), relay: try await relay.server())
    }
}

/// A server that passes on what both sides send.
struct TURNOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A server that passes on what both sides send where no other way leads (TURN, by UDP), port 3478 unless given.",
            valueName: "user@host"
        )
    )
    var turn: TURNPlace?

    @Option(
        help: ArgumentHelp(
            "The file with the password at --turn, mode 0600. Default: $MEDIA_TOOL_TURN_PASSWORD.",
            valueName: "file"
        ),
        completion: .file()
    )
    var turnPasswordFile: String?

    func validate() throws {
        guard turn != nil || turnPasswordFile == nil else {
            throw ValidationError("'--turn-password-file' belongs to a server. Give '--turn', or leave it out.")
        }
        guard turnPasswordFile != "-" else {
            throw ValidationError("Calls may read standard input. Give '--turn-password-file' a file.")
        }
    }

    /// The server; nil without.
    ///
    /// - Throws: `ToolFailure` when it has no address, or its password is not there or cannot be read
    func server() async throws -> TURNServer? {
        guard let turn else { return nil }
        let password =
            try turnPasswordFile.map { try SecretFile.line(of: $0) }
            ?? ProcessEnvironment.variables["MEDIA_TOOL_TURN_PASSWORD"]
        guard turn.user.isEmpty || password != nil else {
            throw ToolFailure(
                "The relay wants a password for '\(turn.user)'. Give '--turn-password-file', or MEDIA_TOOL_TURN_PASSWORD."
            )
        }
        let address = try await STUNServer.addresses(of: [turn.server])[0]
        return TURNServer(address: address, user: turn.user, password: password ?? "")
    }
}

/// A server of TURN and its user, written USER@HOST or USER@HOST:PORT, or without a user where none is asked for.
struct TURNPlace: ExpressibleByArgument {
    let user: String
    let server: STUNServer

    init?(argument: String) {
        let at = argument.lastIndex(of: "@")
        let host = at.map { argument[argument.index(after: $0)...] } ?? argument[...]
        guard let server = STUNServer(argument: String(host)) else { return nil }
        (user, self.server) = (at.map { String(argument[..<$0]) } ?? "", server)
    }
}

/// A server that tells how this side is seen from outside, written HOST or HOST:PORT.
struct STUNServer: ExpressibleByArgument {
    private let place: HostPort

    static let help = ArgumentHelp(
        "A server that tells how this side is seen from outside (STUN), port 3478 unless given; more for more.",
        valueName: "host"
    )

    init?(argument: String) {
        let isAddress = SocketAddress(host: argument, port: 0).map { !$0.isIPv4 } ?? false
        let name = isAddress ? "[\(argument)]" : argument
        guard let place = HostPort(argument: name) ?? HostPort(argument: "\(name):3478") else { return nil }
        self.place = place
    }

    /// Where they are.
    ///
    /// - Throws: `ToolFailure` when a name has no address
    static func addresses(of servers: [STUNServer]) async throws -> [SocketAddress] {
        try await BlockingWork.run { try servers.map { try $0.place.resolve() } }
    }
}
