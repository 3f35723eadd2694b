import ArgumentParser
import CallBasics
import CallCore
import MediaEngine

/// How calls by SIP find the way to the other side.
struct ICEOptions: ParsableArguments {
    @Flag(help: "Find the way by ICE (RFC 8445), through NATs, too, where the sound is secured by DTLS.")
    var ice = false

    @Option(help: STUNServer.help)
    var stun: [STUNServer] = []

    /// Refuses what does not go with `srtp`.
    ///
    /// - Throws: `ValidationError`
    func check(_ srtp: SRTPWish) throws {
        guard !ice || srtp == .dtls || srtp == .auto else {
            throw ValidationError(
                "'--ice' goes with keys by DTLS. Add '--srtp dtls' or '--srtp auto', or leave it out."
            )
        }
        guard ice || stun.isEmpty else {
            throw ValidationError("'--stun' is for a side that looks for the way. Add '--ice', or leave it out.")
        }
    }

    /// The same for calls.
    ///
    /// - Returns: What was asked for; nil for no ICE.
    /// - Throws: `ToolFailure` when a server has no address
    func configuration() async throws -> ICEConfiguration? {
        ice ? ICEConfiguration(servers: try await STUNServer.addresses(of: stun)) : nil
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
