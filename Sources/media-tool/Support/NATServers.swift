import ArgumentParser
import CallBasics
import CallCore
import MediaEngine

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
