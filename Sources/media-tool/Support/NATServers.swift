import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
internal import SIPTransport

/// Servers that help to find the way: such as tell how this side is seen, and one that passes on what both sides send.
struct NATServerOptions: ParsableArguments {
    @Option(help: STUNServer.help)
    var stun: [STUNServer] = []

    @Option(
        help: ArgumentHelp(
            """
            A server that passes on what both sides send where no other way leads (TURN), port 3478 unless given; by UDP, and \
            by TCP where that is not answered. By one alone: turn:USER@HOST?transport=udp, or tcp. By TLS: turns:USER@HOST, \
            port 5349.
            """,
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

    @Option(
        help: ArgumentHelp(
            "The certificates in PEM that prove that of --turn, by TLS. Default: those of the machine.",
            valueName: "file"
        ),
        completion: .file()
    )
    var turnCa: String?

    func validate() throws {
        guard turnCa == nil || turn?.isSecured ?? false else {
            throw ValidationError("'--turn-ca' is for a server by TLS. Give '--turn turns:USER@HOST', or leave it out.")
        }
        guard turn != nil || turnPasswordFile == nil else {
            throw ValidationError("'--turn-password-file' belongs to a server. Give '--turn', or leave it out.")
        }
        for (name, path) in [("--turn-password-file", turnPasswordFile), ("--turn-ca", turnCa)] where path == "-" {
            throw ValidationError("Calls may read standard input. Give '\(name)' a file.")
        }
    }

    /// The one that passes on; nil without.
    ///
    /// - Throws: `ToolFailure` when it has no address, or its password is not there or cannot be read
    func relay() async throws -> TURNServer? {
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
        var server = TURNServer(
            address: address,
            user: turn.user,
            password: password ?? "",
            transport: turn.transport
        )
        if let turnCa {
            do { _ = try TLSContexts.certificates(at: turnCa) } catch { throw ToolFailure("\(error)") }
        }
        server.authoritiesPath = turnCa
        return server
    }

    /// Refuses them where nobody looks for the way.
    ///
    /// - Throws: `ValidationError`, which names the option that is missing
    func requireSearch(_ isThere: Bool, by option: String) throws {
        guard !isThere, let name = turn != nil ? "--turn" : stun.isEmpty ? nil : "--stun" else { return }
        throw ValidationError("'\(name)' is for a side that looks for the way. Add '\(option)', or leave it out.")
    }

    /// This side of ICE, which looks for the way by them.
    ///
    /// - Throws: `ToolFailure` when a server has no address, or its password is not there or cannot be read
    func configuration() async throws -> ICEConfiguration {
        ICEConfiguration(servers: try await STUNServer.addresses(of: stun), relay: try await relay())
    }
}

/// A server of TURN and its user, written USER@HOST or USER@HOST:PORT, or without a user where none is asked for; as a URI, it
/// tells how the server is reached.
///
/// Source: RFC 7065, section 3.1, but for the user, which that has not.
struct TURNPlace: ExpressibleByArgument {
    let user: String
    let server: STUNServer
    let transport: TURNServer.Transport

    init?(argument: String) {
        var rest = argument[...]
        let isSecured = rest.hasPrefix("turns:")
        if isSecured || rest.hasPrefix("turn:") {
            rest = rest[rest.index(after: rest.firstIndex(of: ":") ?? rest.startIndex)...]
        }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let at = parts[0].lastIndex(of: "@")
        let host = at.map { parts[0][parts[0].index(after: $0)...] } ?? parts[0]
        guard let server = STUNServer(argument: String(host), port: isSecured ? 5349 : 3478) else { return nil }
        (user, self.server) = (at.map { String(parts[0][..<$0]) } ?? "", server)
        switch (isSecured, parts.count > 1 ? parts[1] : nil) {
        case (false, nil): transport = .any
        case (false, "transport=udp"): transport = .udp
        case (false, "transport=tcp"): transport = .tcp
        case (true, nil), (true, "transport=tcp"): transport = .tls(name: server.host)
        default: return nil
        }
    }

    var isSecured: Bool { if case .tls = transport { true } else { false } }
}

/// A server that tells how this side is seen from outside, written HOST or HOST:PORT.
struct STUNServer: ExpressibleByArgument {
    private let place: HostPort

    static let help = ArgumentHelp(
        "A server that tells how this side is seen from outside (STUN), port 3478 unless given; more for more.",
        valueName: "host"
    )

    init?(argument: String) { self.init(argument: argument, port: 3478) }

    /// One at `port` unless another is written.
    init?(argument: String, port: UInt16) {
        let isAddress = SocketAddress(host: argument, port: 0).map { !$0.isIPv4 } ?? false
        let name = isAddress ? "[\(argument)]" : argument
        guard let place = HostPort(argument: name) ?? HostPort(argument: "\(name):\(port)") else { return nil }
        self.place = place
    }

    var host: String { place.host }

    /// Where they are.
    ///
    /// - Throws: `ToolFailure` when a name has no address
    static func addresses(of servers: [STUNServer]) async throws -> [SocketAddress] {
        try await BlockingWork.run { try servers.map { try $0.place.resolve() } }
    }
}
