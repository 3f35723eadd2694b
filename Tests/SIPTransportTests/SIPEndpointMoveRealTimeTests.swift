import CallBasics
import TestSupport
import Testing

@testable import SIP
@testable import SIPTransport

/// Agents whose own address becomes another one, on 127.0.0.1 and 127.0.0.2.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPEndpointMoveRealTimeTests {
    private typealias Phone = SIPEndpoint<UserAgent>

    private static func address(_ host: String) throws -> SocketAddress {
        try #require(SocketAddress(host: host, port: 0))
    }

    /// The contacts of the bindings of "alice" at a server.
    private static func contacts(_ server: SIPEndpoint<SIPServer>) async -> [String] {
        await server.perform { server, _ in server.locations.bindings(of: "alice").map { $0.contact.uri.bytes.text } }
    }

    private func awaitRegistration(_ iterator: inout AsyncStream<AgentEvent>.AsyncIterator) async throws {
        while let event = await iterator.next() {
            if case .registration(_, .ok, _) = event { return }
            if case .registration(_, .failed, let reason) = event { Issue.record("\(reason)") }
        }
        Issue.record("It was not registered.")
    }

    @Test(arguments: [Flow.Transport.udp, .tcp])
    func `an agent that moves takes the place of its binding`(transport: Flow.Transport) async throws {
        let server = SIPEndpoint(SIPServer(ServerConfiguration(domain: "example.test"), seed: 3)) { _ in .failure }
        let registrar = try await server.open(at: .loopback(port: 0), [.udp, .tcp])
        let identity = NameAddress(try SIPURI("sip:alice@example.test"))
        var configuration = AgentConfiguration(identity: identity)
        configuration.transports = [transport]
        let phone = Phone(UserAgent(configuration, seed: 4)) { _ in .failure }
        let first = try await phone.open(at: .loopback(port: 0), [.udp, .tcp])
        var account = AccountConfiguration(identity: identity)
        account.instance = "urn:uuid:00000000-0000-4000-8000-000000000001"
        account.registrar = try SIPURI("sip:\(registrar)" + (transport == .tcp ? ";transport=tcp" : ""))
        let made = account
        try await phone.perform { agent, now in try agent.register(agent.addAccount(made), at: now) }
        var iterator = phone.events.makeAsyncIterator()
        try await awaitRegistration(&iterator)
        let second = try await phone.move(to: try Self.address("127.0.0.2"))
        #expect(second.host == "127.0.0.2" && second.port == first.port)
        #expect(await phone.listening.allSatisfy { $0.address == second })
        try await awaitRegistration(&iterator)
        let contacts = await Self.contacts(server)
        #expect(contacts.count == 1 && contacts[0].contains("127.0.0.2:\(second.port)"), "\(contacts)")
        // The former address is free again.
        let other = Phone(UserAgent(configuration, seed: 5)) { _ in .failure }
        #expect(try await other.open(at: first, [.udp, .tcp]) == first)
        for endpoint in [phone, other] { await endpoint.close() }
        await server.close()
    }

    @Test func `an address that is none of this machine changes nothing`() async throws {
        let identity = NameAddress(try SIPURI("sip:alice@example.test"))
        let phone = Phone(UserAgent(AgentConfiguration(identity: identity), seed: 6)) { _ in .failure }
        let first = try await phone.open(at: .loopback(port: 0), [.udp, .tcp])
        await #expect(throws: SIPSocketError.self) { try await phone.move(to: try Self.address("192.0.2.1")) }
        #expect(await phone.listening.allSatisfy { $0.address == first })
        let asking = Phone(UserAgent(AgentConfiguration(identity: identity), seed: 7)) { _ in .failure }
        _ = try await asking.open(at: .loopback(port: 0), [.udp])
        let target = try SIPURI("sip:\(first)")
        _ = try await asking.perform { agent, now in try agent.send(.options, to: target, at: now) }
        var status: Int?
        for await event in asking.events {
            if case .response(_, let response, _) = event { status = response.statusCode }
            if status != nil { break }
        }
        #expect(status == 200)
        for endpoint in [phone, asking] { await endpoint.close() }
    }
}
