import ArgumentParser
import CallCore
import Testing

@testable import media_tool

/// How a server of TURN is written (RFC 7065, with a user).
@Suite struct TURNPlaceTests {
    @Test(arguments: [
        ("turn.example.test", "", "turn.example.test", TURNServer.Transport.any),
        ("alice@192.0.2.1:5000", "alice", "192.0.2.1", .any),
        ("turn:alice@[2001:db8::1]:5000", "alice", "2001:db8::1", .any),
        ("turn:a@b.test@turn.example.test?transport=udp", "a@b.test", "turn.example.test", .udp),
        ("turn:alice@turn.example.test?transport=tcp", "alice", "turn.example.test", .tcp),
        ("turns:alice@turn.example.test", "alice", "turn.example.test", .tls(name: "turn.example.test")),
        ("turns:turn.example.test?transport=tcp", "", "turn.example.test", .tls(name: "turn.example.test")),
    ])
    func `it tells the user, the server and the way to it`(
        text: String,
        user: String,
        host: String,
        transport: TURNServer.Transport
    ) throws {
        let place = try #require(TURNPlace(argument: text))
        #expect(place.user == user && place.server.host == host && place.transport == transport)
    }

    @Test(arguments: [("turn:192.0.2.1", 3478), ("turns:192.0.2.1", 5349), ("turns:192.0.2.1:443", 443)])
    func `each way has its own port`(text: String, port: UInt16) async throws {
        let place = try #require(TURNPlace(argument: text))
        #expect(try await STUNServer.addresses(of: [place.server]).map(\.port) == [port])
    }

    @Test(arguments: [
        "", "alice@", "turn:", "turn:host?transport=sctp", "turns:host?transport=udp", "turn:host?ttl=1", "host:0",
    ])
    func `what is none is refused`(text: String) { #expect(TURNPlace(argument: text) == nil) }

    @Test func `certificates are for a server by TLS, and from a file that has some`() async throws {
        #expect(throws: (any Error).self) { try NATServerOptions.parse(["--turn", "host", "--turn-ca", "ca.pem"]) }
        #expect(throws: (any Error).self) { try NATServerOptions.parse(["--turn", "turns:host", "--turn-ca", "-"]) }
        let options = try NATServerOptions.parse(["--turn", "turns:127.0.0.1", "--turn-ca", "/none/ca.pem"])
        let failure = await #expect(throws: ToolFailure.self) { _ = try await options.relay() }
        #expect(failure?.description.contains("/none/ca.pem") == true)
    }
}
