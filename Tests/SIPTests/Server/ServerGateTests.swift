import CallBasics
import SIPTesting
import Testing

@testable import SIP

@Suite("What a server does not pass on, and what it does wrong when told to")
struct ServerGateTests {
    @Test("Strangers reach users, and nobody else through the server")
    func strangers() throws {
        var world = try ServerWorld()
        try world.register(1)
        #expect(try world.send(ServerWorld.request("MESSAGE", "sip:bob@example.test")) == ["SIP/2.0 200 OK"])
        let elsewhere = ServerWorld.request("MESSAGE", "sip:bob@192.0.2.2", id: "b")
        #expect(try world.send(elsewhere) == ["SIP/2.0 403 Forbidden"])
        // A Route does not open the way, signed or not.
        for route in ["<sip:198.51.100.1;lr>", "<sip:198.51.100.1;lr;way=000000000000000000000000>"] {
            let routed = ServerWorld.request("BYE", "sip:bob@192.0.2.2", id: route.count.description, "Route: \(route)")
            #expect(try world.send(routed) == ["SIP/2.0 403 Forbidden"])
        }
        // A user's address opens no way to others, either.
        let target = "sip:bob@example.test"
        let relayed = ServerWorld.request("MESSAGE", target, id: "c", "Route: <sip:198.51.100.77;lr>")
        #expect(try world.send(relayed) == ["SIP/2.0 403 Forbidden"])
        world.network.run(for: .seconds(60))
        world.expectEmpty(bindings: 1)
    }

    @Test(
        "Who says to be a user proves it",
        arguments: [
            ("alice@example.test", "407 Proxy Authentication Required"), ("eve@example.test", "403 Forbidden"),
            ("alice@example.test:9999", "407 Proxy Authentication Required"),
            ("alice@example.test.", "407 Proxy Authentication Required"), ("alice@example.test.net", "200 OK"),
        ]
    )
    func pretenders(_ address: String, _ answer: String) throws {
        var world = try ServerWorld()
        try world.register(1)
        let request = ServerWorld.request("MESSAGE", "sip:bob@example.test", from: "sip:\(address)")
        #expect(try world.send(request) == ["SIP/2.0 \(answer)"])
    }

    @Test("The signature of one call does not open the way for another")
    func foreignSignature() throws {
        var world = try ServerWorld()
        try world.register(0, 1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        let invite = try SIPMessage(
            datagram: #require(world.network.sent.last { $0.startLine.hasPrefix("INVITE") }).bytes
        )
        let route = try #require(invite.first(.recordRoute)).text
        let callID = try #require(invite.callID).text
        let caller = try #require(try invite.from()?.tag).text
        var count = 0
        func send(_ method: String, _ uri: String, toTag: String?, id: String) throws -> [String] {
            count += 1
            var lines = ServerWorld.request(method, uri, from: "sip:alice@example.test", number: count, id: id)
            lines[3] += toTag.map { ";tag=\($0)" } ?? ""
            return try world.send(lines + ["Route: \(route)"])
        }
        let (target, unproved) = ("sip:bob@192.0.2.2:5060", ["SIP/2.0 407 Proxy Authentication Required"])
        // From the side that was called.
        let gone = ["SIP/2.0 481 Call/Transaction Does Not Exist"]
        #expect(try send("INFO", target, toTag: caller, id: callID) == gone)
        #expect(try send("INFO", target, toTag: "y", id: callID) == unproved)
        #expect(try send("INFO", target, toTag: caller, id: "other") == unproved)
        // It is no pass for what is in no call.
        for tag in [nil, caller] {
            #expect(try send("MESSAGE", "sip:bob@example.test", toTag: tag, id: callID) == unproved)
        }
    }

    @Test(
        "Of a domain is who has its name, or its number and port",
        arguments: [
            ("example.test", "sip:a@EXAMPLE.test.:9", true), ("example.test", "sip:a@b.example.test", false),
            ("192.0.2.100", "sip:a@192.0.2.100:5070", false), ("[::1]", "sip:a@[::1]:5070", false),
        ]
    )
    func domains(_ domain: String, _ address: String, _ isClaimed: Bool) throws {
        let server = SIPServer(ServerConfiguration(domain: domain), seed: 1)
        #expect(server.claimsDomain(try SIPURI(address)) == isClaimed)
    }

    @Test("No hops left, an unknown Proxy-Require, and a request that comes round")
    func limits() throws {
        var world = try ServerWorld()
        try world.register(1)
        let target = "sip:bob@example.test"
        #expect(
            try world.send(ServerWorld.request("MESSAGE", target, "Max-Forwards: 0")) == ["SIP/2.0 483 Too Many Hops"]
        )
        #expect(
            try world.send(ServerWorld.request("OPTIONS", target, id: "b", "Max-Forwards: 0")) == ["SIP/2.0 200 OK"]
        )
        #expect(
            try world.send(ServerWorld.request("MESSAGE", target, id: "c", "Proxy-Require: magic")) == [
                "SIP/2.0 420 Bad Extension"
            ]
        )
        #expect(try world.send(ServerWorld.request("OPTIONS", "sip:example.test", id: "d")) == ["SIP/2.0 200 OK"])
        // As it was passed on, but bound for the user again: that is a spiral, and as it came first, a loop.
        _ = try world.send(ServerWorld.request("MESSAGE", target, id: "e", "Max-Forwards: 9"))
        let passed = try #require(world.network.sent.last { $0.startLine.hasPrefix("MESSAGE") }).bytes
        var message = try SIPMessage(datagram: passed)
        #expect(message.first(.maxForwards)?.text == "8")
        message.setRequestURI(try SIPURI(target))
        let before = world.network.sent.count
        world.network.handle(
            .datagram(message.bytes, local: world.server, remote: world.stranger),
            at: .server(0)
        )
        world.network.run(for: .seconds(1))
        #expect(world.network.sent[before...].map(\.startLine) == ["SIP/2.0 482 Loop Detected"])
    }

    @Test("Credentials for this server are not shown to others")
    func credentials() throws {
        var world = try ServerWorld()
        try world.register(0, 1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        let invites = try world.network.sent.filter { $0.startLine.hasPrefix("INVITE") }
            .map { try SIPMessage(datagram: $0.bytes) }
        #expect(invites.map { $0.first(.proxyAuthorization) != nil } == [false, true, false])
    }

    @Test("Rules: answered, lost, late, twice, as often as they say")
    func script() throws {
        var world = try ServerWorld { configuration in
            configuration.script = [
                ServerRule(.answer(503), method: .message, times: 1),
                ServerRule(.drop, method: .options, times: 2),
                ServerRule(.delay(.seconds(3)), method: .info),
                ServerRule(.duplicate, method: .message, user: "bob"),
            ]
        }
        try world.register(1)
        let target = "sip:bob@example.test"
        #expect(try world.send(ServerWorld.request("MESSAGE", target)) == ["SIP/2.0 503 Service Unavailable"])
        let before = world.network.lines.count
        #expect(try world.send(ServerWorld.request("MESSAGE", target, id: "b")) == ["SIP/2.0 200 OK"])
        #expect(world.network.lines[before...].count { $0.hasPrefix("s0 MESSAGE") } == 2)
        #expect(world.network.words(1) == ["message "])
        #expect(try world.send(ServerWorld.request("OPTIONS", target, id: "c")) == [])
        #expect(try world.send(ServerWorld.request("OPTIONS", target, id: "c")) == [])
        #expect(try world.send(ServerWorld.request("OPTIONS", target, id: "c")) == ["SIP/2.0 200 OK"])
        #expect(try world.send(ServerWorld.request("INFO", target, id: "d")) == [])
        #expect(world.network.servers[0].server.counts.delayed == 1)
        world.network.run(for: .seconds(60))
        #expect(world.network.lines.contains { $0.hasPrefix("s0 INFO") })
        world.expectEmpty(bindings: 1)
    }

    @Test("Calls that ring at many phones do not keep the ACKs of others")
    func manyBranches() throws {
        var world = try ServerWorld { $0.users = nil }
        try world.register(0, 1)
        let contacts = (1...3).map { "Contact: <sip:carol@203.0.113.\($0)>" }
        _ = try world.send(
            ServerWorld.request("REGISTER", "sip:example.test", to: "sip:carol@example.test") + contacts
        )
        for number in 1...520 {
            let invite = ServerWorld.request("INVITE", "sip:carol@example.test", number: number, id: "i\(number)")
            let text = (invite + ["Content-Length: 0"]).joined(separator: "\r\n") + "\r\n\r\n"
            world.network.handle(
                .datagram(Array(text.utf8), local: world.server, remote: world.stranger),
                at: .server(0)
            )
        }
        #expect(world.network.servers[0].server.counts.branches == 1560)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(300))
        try world.answer(1)
        world.network.run(for: .milliseconds(300))
        #expect(world.network.lines.contains { $0.hasPrefix("s0 ACK sip:bob@192.0.2.2") })
    }

    @Test("A rule that cuts closes the connection; the phone comes by another one")
    func cut() throws {
        var world = try ServerWorld(transport: ";transport=tcp") { configuration in
            configuration.script = [ServerRule(.cut, method: .register, times: 1)]
        }
        let account = world.accounts[0]
        try world.network.with(0) { agent, now in try agent.register(account, at: now) }
        world.network.run(for: .seconds(120))
        #expect(world.network.words(0).last == "registration ok")
    }

    @Test(
        "Three of ten datagrams are lost: calls still come about and end, and nothing is left",
        arguments: 1...4 as ClosedRange<UInt64>
    )
    func loss(_ seed: UInt64) throws {
        var conditions = VirtualNetwork.Conditions()
        conditions.loss = 0.3
        var world = try ServerWorld(seed: seed, conditions)
        for index in 0..<2 {
            let account = world.accounts[index]
            try world.network.with(index) { agent, now in try agent.register(account, at: now) }
        }
        world.network.run(for: .seconds(40))
        let handle = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(20))
        if let bob = world.network.nodes[1].events.compactMap(\.call).last {
            try? world.network.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        }
        world.network.run(for: .seconds(10))
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(200))
        world.expectEmpty(bindings: 2)
    }

    @Test(
        "The messages of calls and registrations, each changed in many ways: nothing is left behind",
        arguments: 0..<4
    )
    func mutations(_ seed: Int) throws {
        var wire = try ServerWorld()
        try wire.register(0, 1)
        let handle = try wire.call("sip:bob@example.test")
        wire.network.run(for: .milliseconds(500))
        try wire.answer(1)
        wire.network.run(for: .seconds(1))
        wire.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        wire.network.run(for: .seconds(1))
        var generator = SeededGenerator(seed: UInt64(seed) + 77)
        for _ in 0..<20 {
            var world = try ServerWorld()
            try world.register(0, 1)
            _ = try world.call("sip:bob@example.test")
            for message in wire.network.sent {
                guard case .agent(let index) = message.place else { continue }
                let changed = message.bytes.mutated(&generator)
                let from = generator.next() % 2 == 0 ? world.network.nodes[index].address : world.stranger
                world.network.handle(.datagram(changed, local: world.server, remote: from), at: .server(0))
                world.network.run(for: .milliseconds(30))
            }
            world.network.run(for: .seconds(600))
            var counts = world.network.servers[0].server.counts
            (counts.flows, counts.lookups.kept, counts.bindings) = (FlowCounts(), 0, 0)
            #expect(counts == ServerCounts())
        }
    }
}
