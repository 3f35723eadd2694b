import CallBasics
import Foundation
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import SIP
@testable import SIPTransport

/// Agents that talk by TLS over real sockets of loopback.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SecureSocketsRealTimeTests {
    private typealias Endpoint = SIPEndpoint<UserAgent>

    private static func security(_ certificate: String?, _ change: (inout SIPSecurity) -> Void = { _ in })
        -> SIPSecurity
    {
        var security = SIPSecurity()
        security.authoritiesPath = TestCertificates.authority
        security.certificate = certificate.map { name in
            let paths = TestCertificates.of(name)
            return SIPSecurity.Certificate(path: paths.path, keyPath: paths.keyPath)
        }
        change(&security)
        return security
    }

    private func endpoint(_ security: SIPSecurity) throws -> Endpoint {
        var configuration = AgentConfiguration(identity: NameAddress(try SIPURI("sip:a@127.0.0.1")))
        configuration.requestPatience = .seconds(5)
        configuration.transports = [.udp, .tcp, .tls]
        let agent = UserAgent(configuration, seed: .random(in: .min ... .max))
        return SIPEndpoint(agent, security: security) { question in
            guard question.kind == .a else { return .noData(nil) }
            return .records([DNSRecord(question.name, seconds: 60, .address(.loopback(port: 0)))])
        }
    }

    /// Two of them, and where the second one is called.
    private func pair(_ client: SIPSecurity, _ server: SIPSecurity) async throws -> (Endpoint, Endpoint, UInt16) {
        let (one, other) = try (endpoint(client), endpoint(server))
        _ = try await one.open(at: .loopback(port: 0), [.udp, .tls])
        let bound = try await other.open(at: .loopback(port: 0), [.tls])
        return (one, other, bound.port)
    }

    /// Asks, and gives the status of the answer; nil when there was none.
    private func ask(_ asking: Endpoint, _ uri: String) async throws -> Int? {
        let target = try SIPURI(uri)
        let id = try await asking.perform { agent, now in try agent.send(.options, to: target, at: now) }
        for await event in asking.events {
            switch event {
            case .response(id, let response, _): return response.statusCode
            case .failed(id, _): return nil
            default: break
            }
        }
        return nil
    }

    private func close(_ endpoints: Endpoint...) async { for endpoint in endpoints { await endpoint.close() } }

    @Test(arguments: ["sip:b@127.0.0.1:PORT;transport=tls", "sips:b@127.0.0.1:PORT", "sips:b@localhost:PORT"])
    func `a question is answered by TLS, the next one by the same connection`(uri: String) async throws {
        let (one, other, port) = try await pair(Self.security(nil), Self.security("loopback"))
        let uri = uri.replacing("PORT", with: "\(port)")
        #expect(try await ask(one, uri) == 200)
        #expect(try await ask(one, uri) == 200)
        #expect(await one.takeSecurityFailure() == nil)
        for endpoint in [one, other] {
            let flows = await endpoint.perform { agent, _ in agent.counts.flows.flows }
            #expect(flows == 1)
        }
        await close(one, other)
    }

    @Test func `the name of the URI's domain is proved, whatever its host is called`() async throws {
        let (one, other, port) = try await pair(Self.security(nil), Self.security("domain"))
        #expect(try await ask(one, "sips:b@example.test:\(port)") == 200)
        // The certificate is for that host, too, but not for its domain.
        #expect(try await ask(one, "sips:b@other.test:\(port)") == nil)
        let failure = await one.takeSecurityFailure()
        #expect(failure?.code == .wrongName)
        #expect(failure?.message.contains("is for example.test, other.test, not for other.test") == true)
        await close(one, other)
    }

    @Test func `wildcards are taken where they are asked for`() async throws {
        for accepts in [false, true] {
            let client = Self.security(nil) { $0.acceptsWildcards = accepts }
            let (one, other, port) = try await pair(client, Self.security("wildcard"))
            #expect(try await ask(one, "sips:b@sip.example.test:\(port)") == (accepts ? 200 : nil))
            #expect(await one.takeSecurityFailure()?.code == (accepts ? nil : .wrongName))
            await close(one, other)
        }
    }

    @Test func `who is proved by nobody is left, unless nobody has to be`() async throws {
        let strict = Self.security(nil) { $0.authoritiesPath = nil }
        let (one, other, port) = try await pair(strict, Self.security("loopback"))
        #expect(try await ask(one, "sips:b@127.0.0.1:\(port)") == nil)
        #expect(await one.takeSecurityFailure()?.code == .untrusted)
        try await one.secure(by: Self.security(nil) { $0.verifiesServers = false })
        #expect(try await ask(one, "sips:b@anybody.test:\(port)") == 200)
        try await one.secure(by: Self.security(nil) { $0.serverName = "localhost" })
        #expect(try await ask(one, "sips:b@somebody.test:\(port)") == 200)
        await close(one, other)
    }

    @Test func `a certificate is changed while it runs`() async throws {
        let (one, other, port) = try await pair(Self.security(nil), Self.security("loopback"))
        #expect(try await ask(one, "sips:b@127.0.0.1:\(port)") == 200)
        try await other.secure(by: Self.security("domain"))
        // That connection stays; the next one sees the other certificate.
        #expect(try await ask(one, "sips:b@127.0.0.1:\(port)") == 200)
        #expect(try await ask(one, "sips:b@localhost:\(port)") == nil)
        #expect(try await ask(one, "sips:b@example.test:\(port)") == 200)
        let missing = Self.security(nil) { $0.authoritiesPath = "/nowhere.pem" }
        let error = await #expect(throws: SIPSocketError.self) { try await other.secure(by: missing) }
        #expect(error?.code == .security && error?.message.contains("/nowhere.pem") == true)
        await close(one, other)
    }

    @Test func `a key that is another's is told when the port is opened`() async throws {
        var mixed = Self.security("domain")
        mixed.certificate?.keyPath = TestCertificates.of("loopback").keyPath
        let one = try endpoint(mixed)
        let error = await #expect(throws: SIPSocketError.self) { try await one.open(at: .loopback(port: 0), [.tls]) }
        #expect(error?.code == .security)
        await close(one)
    }

    @Test func `without a certificate the port is held, and nobody gets in`() async throws {
        let (one, other, port) = try await pair(Self.security(nil), Self.security(nil))
        #expect(await other.listening.isEmpty)
        #expect(try await ask(one, "sips:b@127.0.0.1:\(port)") == nil)
        #expect(await one.takeSecurityFailure()?.code == .untrusted)
        #expect(await other.perform { agent, _ in agent.counts.flows.flows } == 0)
        await close(one, other)
    }

    @Test(arguments: [false, true])
    func `who closes before the hello is told as that, by whatever the kernel says of it`(resets: Bool) async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                let pause = linger(l_onoff: resets ? 1 : 0, l_linger: 0)
                return (channel as? any SocketOptionProvider)?.setSoLinger(pause).flatMap { channel.close() }
                    ?? channel.eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let one = try endpoint(Self.security(nil))
        _ = try await one.open(at: .loopback(port: 0), [.udp, .tls])
        for _ in 1...20 {
            #expect(try await ask(one, "sips:b@127.0.0.1:\(listener.localAddress?.port ?? 0)") == nil)
            let failure = await one.takeSecurityFailure()
            #expect(failure?.code == .untrusted, "\(failure?.message ?? "none")")
        }
        await close(one)
        try await listener.close()
    }

    @Test func `who is not listened to by TLS is registered with the end of its connection`() async throws {
        let server = SIPEndpoint(
            SIPServer(ServerConfiguration(domain: "127.0.0.1"), seed: 3),
            security: Self.security("loopback")
        ) { _ in .failure }
        let bound = try await server.open(at: .loopback(port: 0), [.tls])
        let identity = NameAddress(try SIPURI("sip:alice@127.0.0.1"))
        var configuration = AgentConfiguration(identity: identity)
        (configuration.isReachableByTLS, configuration.transports) = (false, [.tls])
        let one = Endpoint(UserAgent(configuration, seed: 4), security: Self.security(nil)) { _ in .failure }
        _ = try await one.open(at: .loopback(port: 0), [.tls])
        var account = AccountConfiguration(identity: identity)
        account.registrar = try SIPURI("sip:\(bound);transport=tls")
        account.instance = "urn:uuid:00000000-0000-4000-8000-000000000001"
        let made = account
        try await one.perform { agent, now in try agent.register(agent.addAccount(made), at: now) }
        var count = 0
        for await event in one.events {
            if case .registration(_, .ok, _) = event { count += 1 }
            if case .registration(_, .failed, let reason) = event { Issue.record("\(reason)") }
            if case .registrationFailed = event { break }
            if count == 2 { break }
        }
        let bindings = await server.perform { server, _ in server.locations.bindings(of: "alice") }
        let ends = bindings.compactMap(\.flow).map { "sip:alice@\($0.remote);transport=tls" }
        #expect(bindings.map { $0.contact.uri.bytes.text } == ends && ends.count == 1)
        await one.close()
        await server.close()
    }

    @Test func `who speaks no TLS is told from one who has no trust`() async throws {
        let (one, other) = try (endpoint(Self.security(nil)), endpoint(Self.security(nil)))
        _ = try await one.open(at: .loopback(port: 0), [.udp, .tls])
        let bound = try await other.open(at: .loopback(port: 0), [.tcp])
        #expect(try await ask(one, "sips:b@\(bound)") == nil)
        let failure = await one.takeSecurityFailure()
        #expect(failure?.code == .untrusted)
        #expect(failure?.message.contains("handshake") == true)
        await close(one, other)
    }

    @Test func `bytes that are no TLS end their connection, and leave nothing`() async throws {
        let (one, other, port) = try await pair(Self.security(nil), Self.security("loopback"))
        let garbage: [[UInt8]] = [
            Array("OPTIONS sip:a@127.0.0.1 SIP/2.0\r\n\r\n".utf8), Array(repeating: 0xFF, count: 20_000),
            [0x16, 0x03, 0x01, 0x02, 0x00] + Array(repeating: 0x00, count: 512), [0x16], [],
        ]
        for bytes in garbage {
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: Int(port)).get()
            try? await channel.writeAndFlush(ByteBuffer(bytes: bytes))
            if bytes.count > 1 { try await channel.closeFuture.get() } else { try await channel.close() }
        }
        #expect(try await ask(one, "sips:b@127.0.0.1:\(port)") == 200)
        #expect(await Polling.eventually { await other.perform { agent, _ in agent.counts.flows.flows } == 1 })
        await close(one, other)
    }
}
