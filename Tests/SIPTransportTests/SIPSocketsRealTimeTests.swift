import CallBasics
import NIOCore
import NIOPosix
import SIP
import SIPTransport
import TestSupport
import Testing

/// Real sockets of loopback under two agents.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SIPSocketsRealTimeTests {
    private func endpoint(
        _ name: String,
        on loop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()
    ) throws -> SIPEndpoint<UserAgent> {
        var configuration = AgentConfiguration(identity: NameAddress(try SIPURI("sip:\(name)@127.0.0.1")))
        configuration.requestPatience = .seconds(5)
        let agent = UserAgent(configuration, seed: .random(in: .min ... .max))
        return SIPEndpoint(agent, on: loop) { _ in .failure }
    }

    /// Asks, and gives the status of the answer; nil when there was none.
    private func ask(_ asking: SIPEndpoint<UserAgent>, _ uri: String) async throws -> Int? {
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

    @Test(arguments: ["127.0.0.1", "::1"], ["udp", "tcp"])
    func `a question is answered`(host: String, transport: String) async throws {
        let (one, other) = try (endpoint("a"), endpoint("b"))
        let address = try #require(SocketAddress(host: host, port: 0))
        let bound = try await other.open(at: address, [.udp, .tcp])
        _ = try await one.open(at: address, [.udp, .tcp])
        #expect(try await ask(one, "sip:b@\(bound);transport=\(transport)") == 200)
        await one.close()
        await other.close()
    }

    @Test(arguments: ["192.0.2.1:9", "127.0.0.1:1", "255.255.255.255:5060", "224.0.0.1:5060"])
    func `a datagram that cannot be sent does not end the socket`(address: String) async throws {
        let (one, other) = try (endpoint("a"), endpoint("b"))
        let bound = try await other.open(at: .loopback(port: 0), [.udp])
        let own = try await one.open(at: .loopback(port: 0), [.udp])
        let hostile = try SIPURI("sip:x@\(address)")
        // What becomes of it is told by the kernel, or by nobody; the next request waits for neither.
        _ = try await one.perform { agent, now in try agent.send(.options, to: hostile, at: now) }
        var status: Int?
        for _ in 0..<3 where status == nil { status = try await ask(one, "sip:b@\(bound);transport=udp") }
        #expect(status == 200)
        #expect(try await ask(other, "sip:a@\(own);transport=udp") == 200)
        await one.close()
        await other.close()
    }

    @Test(.namespaces) func `a socket whose address went is there again with it, at the first datagram`() async throws {
        // Its sockets are where its thread began.
        let (network, group) = try await NetworkNamespace.make { MultiThreadedEventLoopGroup(numberOfThreads: 1) }
        try network.ip("link set lo up; address add 192.0.2.1/32 dev lo; address add 192.0.2.2/32 dev lo")
        let (one, other) = try (endpoint("a", on: group.next()), endpoint("b", on: group.next()))
        let own = try await one.open(at: try #require(SocketAddress(host: "192.0.2.1", port: 0)), [.udp])
        let target =
            "sip:b@\(try await other.open(at: try #require(SocketAddress(host: "192.0.2.2", port: 0)), [.udp]))"
        #expect(try await ask(one, target) == 200)
        try network.ip("address del 192.0.2.1/32 dev lo")
        for _ in 0..<2 { #expect(try await ask(one, target) == nil) }
        try network.ip("address add 192.0.2.1/32 dev lo")
        #expect(try await ask(one, target) == 200)
        #expect(try await ask(other, "sip:a@\(own)") == 200)
        await one.close()
        await other.close()
        try await group.shutdownGracefully()
    }

    @Test func `a port that is taken is told, and is free after the end`() async throws {
        let (one, other) = try (endpoint("a"), endpoint("b"))
        let bound = try await one.open(at: .loopback(port: 0), [.udp, .tcp])
        let error = await #expect(throws: SIPSocketError.self) { try await other.open(at: bound, [.udp, .tcp]) }
        #expect(error?.code == .portInUse)
        await one.close()
        #expect(try await other.open(at: bound, [.udp, .tcp]) == bound)
        await other.close()
    }

    @Test func `a connection that is refused is told at once`() async throws {
        let (one, other) = try (endpoint("a"), endpoint("b"))
        let bound = try await other.open(at: .loopback(port: 0), [.tcp])
        await other.close()
        _ = try await one.open(at: .loopback(port: 0), [.udp, .tcp])
        #expect(try await ask(one, "sip:b@\(bound);transport=tcp") == nil)
        await one.close()
    }

    @Test func `a port that is opened while all are closed is closed, too`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let sockets = try await loop.submit { NIOLoopBound(SIPSockets(on: loop, SIPSecurity()), eventLoop: loop) }.get()
        let bound = try await loop.flatSubmit {
            let address = sockets.value.listen(.tcp, at: .loopback(port: 0))
            _ = sockets.value.closeAll()
            return address
        }.get()
        let one = try endpoint("a")
        _ = try await one.open(at: .loopback(port: 0), [.udp, .tcp])
        #expect(try await ask(one, "sip:b@\(bound);transport=tcp") == nil)
        await one.close()
    }
}
