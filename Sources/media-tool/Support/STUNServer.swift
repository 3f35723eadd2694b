import ArgumentParser
import CallBasics
import MediaEngine

/// This side of ICE.
enum ICEWish: String, ExpressibleByArgument, CaseIterable {
    case lite, full
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
