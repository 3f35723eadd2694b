import SIPTesting
import Testing

@testable import SIP

@Suite("A server as proxy")
struct ServerProxyTests {
    @Test(
        "A call goes through the server, with its password, and so do its ACK and BYE",
        arguments: ["", ";transport=tcp"]
    )
    func whole(_ transport: String) throws {
        var world = try ServerWorld(transport: transport)
        try world.register(0, 1)
        let sentCount = world.network.sent.count
        let handle = try world.call("sip:bob@example.test\(transport)")
        world.network.run(for: .milliseconds(200))
        try world.answer(1)
        world.network.run(for: .seconds(1))
        #expect(world.network.words(0) == ["agreed sendsreceives", "established"])
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended us hungUp"])
        #expect(world.network.words(1).last == "ended them hungUp")
        let methods = world.network.lines[sentCount...].map { $0.split(separator: " ")[0...1].joined(separator: " ") }
        #expect(
            methods.filter { !$0.hasSuffix("SIP/2.0") } == [
                "0 INVITE", "0 ACK", "0 INVITE", "s0 INVITE", "0 ACK", "s0 ACK", "0 BYE", "s0 BYE",
            ]
        )
        world.expectEmpty(bindings: 2)
    }

    @Test("The called side's BYE finds the caller through the server, too")
    func calledSideEnds() throws {
        var world = try ServerWorld()
        try world.register(0, 1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(200))
        try world.answer(1)
        world.network.run(for: .seconds(1))
        let handle = try world.network.call(1)
        world.network.with(1) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0).last == "ended them hungUp")
        #expect(world.network.lines.contains { $0.hasPrefix("s0 BYE sip:alice@192.0.2.1") })
    }

    @Test("Who has no account calls by the proxy that it was given")
    func byProxy() throws {
        var world = try ServerWorld()
        try world.register(1)
        let route = NameAddress(try SIPURI("sip:198.51.100.1;lr"))
        let stranger = try world.network.add("stranger") { $0.routes = [route] }
        _ = try world.network.with(stranger) { agent, now in
            let wishes = UserAgent.CallWishes(session: .plain("192.0.2.9"))
            return try agent.call(SIPURI("sip:bob@example.test"), wishes, at: now)
        }
        world.network.run(for: .milliseconds(200))
        #expect(world.network.words(1) == ["incoming"])
        let first = try #require(world.network.sent.last { $0.place == .agent(stranger) })
        #expect(try SIPMessage(datagram: first.bytes).first(.route)?.text == "<sip:198.51.100.1;lr>")
    }

    @Test("Without Record-Route the call goes on past the server")
    func leavesTheWay() throws {
        var world = try ServerWorld { $0.staysOnWay = false }
        try world.register(0, 1)
        let handle = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(200))
        try world.answer(1)
        world.network.run(for: .seconds(1))
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1).last == "ended them hungUp")
        #expect(!world.network.lines.contains { $0.hasPrefix("s0 BYE") || $0.hasPrefix("s0 ACK") })
    }

    @Test("Between UDP and TCP each side gets a Record-Route of its own")
    func twoTransports() throws {
        var world = try ServerWorld(transport: ";transport=tcp")
        try world.register(1)
        let handle = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(300))
        let invite = try SIPMessage(
            datagram: #require(world.network.sent.last { $0.startLine.hasPrefix("INVITE") }).bytes
        )
        let routes = try invite.list(.recordRoute, as: NameAddress.self).map { $0.uri.parameter("transport") }
        #expect(routes == ["tcp", nil])
        try world.answer(1)
        world.network.run(for: .seconds(1))
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1).last == "ended them hungUp")
        world.expectEmpty(bindings: 1)
    }

    @Test("Who is busy, is not there, or does not exist", arguments: [(486, 486), (603, 603), (503, 500)])
    func refusals(_ status: Int, _ expected: Int) throws {
        var world = try ServerWorld()
        try world.register(1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(200))
        try world.reject(1, status)
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended them refused(\(expected))"])
        _ = try world.call("sip:carol@example.test")
        world.network.run(for: .seconds(60))
        _ = try world.call("sip:nobody@example.test")
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended them refused(480)", "ended them refused(404)"])
        world.expectEmpty(bindings: 1)
    }

    @Test("A call that is taken back ends at all phones")
    func cancelled() throws {
        var world = try ServerWorld()
        try world.register(1, 2)
        let handle = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended us cancelled"])
        #expect(world.network.words(1) == ["incoming", "ended them cancelled"])
        #expect(world.network.words(2) == ["incoming", "ended them cancelled"])
        world.expectEmpty(bindings: 2)
    }

    @Test("A caller whose connection is gone: the phone does not ring on")
    func callerGone() throws {
        var world = try ServerWorld()
        try world.register(1)
        _ = try world.call("sip:bob@example.test;transport=tcp")
        world.network.run(for: .milliseconds(500))
        let server = world.network.servers[0].server
        let flow = try #require(server.forwards.names.first.flatMap { server.forwards[$0]?.flow })
        #expect(flow.transport == .tcp)
        world.network.handle(.failed(flow), at: .server(0))
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1) == ["incoming", "ended them cancelled"])
        world.expectEmpty(bindings: 1)
    }

    @Test("An answer that crosses the CANCEL reaches the caller, who hangs up")
    func crossing() throws {
        var world = try ServerWorld()
        try world.register(1)
        let handle = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        try world.answer(1)
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1).last == "ended them hungUp")
        #expect(world.network.words(0).last == "ended us cancelled")
        world.expectEmpty(bindings: 1)
    }

    @Test("Two phones ring; the one that answers gets the call, the other one's ends")
    func forked() throws {
        var world = try ServerWorld()
        try world.register(1, 2)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        try world.answer(2)
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["agreed sendsreceives", "established"])
        #expect(world.network.words(1) == ["incoming", "ended them cancelled"])
        #expect(world.network.words(2) == ["incoming", "agreed sendsreceives", "established"])
        world.expectEmpty(bindings: 2)
    }

    @Test("Both phones answer at once: the caller takes the first, and hangs up the other")
    func bothAnswer() throws {
        var world = try ServerWorld()
        try world.register(1, 2)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        try world.answer(1)
        try world.answer(2)
        world.network.run(for: .seconds(60))
        let ends = [world.network.words(1).last, world.network.words(2).last]
        #expect(Set(ends) == ["established", "ended them hungUp"])
        #expect(world.network.words(0) == ["agreed sendsreceives", "established"])
        world.expectEmpty(bindings: 2)
    }

    @Test("One phone refuses: the other rings on. One declines for all: nobody rings")
    func bestAnswer() throws {
        var world = try ServerWorld()
        try world.register(1, 2)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        try world.reject(1, 486)
        world.network.run(for: .seconds(1))
        #expect(world.network.words(0) == [])
        try world.reject(2, 480)
        world.network.run(for: .seconds(60))
        // Both are of one class: the first one stands.
        #expect(world.network.words(0) == ["ended them refused(486)"])
        _ = world.network.takeEvents(2)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        try world.reject(1, 603)
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended them refused(603)"])
        #expect(world.network.words(2) == ["incoming", "ended them cancelled"])
        world.expectEmpty(bindings: 2)
    }

    @Test("With fork first the newest phone rings alone")
    func first() throws {
        var world = try ServerWorld { $0.forking = .first }
        try world.register(1)
        try world.register(2)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        #expect(world.network.words(1).isEmpty)
        #expect(world.network.words(2) == ["incoming"])
    }

    @Test("A phone that never answers: after timer C the call is over")
    func timerC() throws {
        var world = try ServerWorld { $0.ringPatience = .seconds(20) }
        try world.register(1)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(19))
        #expect(world.network.words(0) == [])
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended them refused(487)"])
        #expect(world.network.words(1) == ["incoming", "ended them cancelled"])
        world.expectEmpty(bindings: 1)
    }

    @Test("A phone that is gone: 408 once nobody answers there; another one of the user is still reached")
    func gone() throws {
        var world = try ServerWorld()
        try world.register(1)
        world.network.arrives = { !$0.hasPrefix("INVITE sip:bob@192.0.2.2") }
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(120))
        #expect(world.network.words(0) == ["ended them refused(408)"])
        try world.register(2)
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .milliseconds(500))
        try world.answer(2)
        world.network.run(for: .seconds(120))
        #expect(world.network.words(0) == ["agreed sendsreceives", "established"])
        world.expectEmpty(bindings: 2)
    }

    @Test("Messages and questions go through; what cannot be answered in time is not")
    func messages() throws {
        var world = try ServerWorld()
        try world.register(1)
        let account = world.accounts[0]
        let uri = try SIPURI("sip:bob@example.test")
        func send(_ method: SIPMethod, _ body: String = "") throws {
            _ = try world.network.with(0) { agent, now in
                try agent.send(
                    method,
                    to: uri,
                    account: account,
                    type: body.isEmpty ? nil : "text/plain",
                    body: Array(body.utf8),
                    at: now
                )
            }
            world.network.run(for: .seconds(20))
        }
        try send(.message, "Hello")
        #expect(world.network.words(1) == ["message Hello"])
        try send(.options)
        #expect(world.network.words(0) == ["response 200", "response 200"])
        world.network.arrives = { !$0.hasPrefix("MESSAGE sip:bob@192.0.2.2") }
        try send(.message, "Hello?")
        world.network.run(for: .seconds(60))
        #expect(!world.network.lines.contains { $0.hasPrefix("s0 SIP/2.0 408") })
        world.expectEmpty(bindings: 1)
    }
}
