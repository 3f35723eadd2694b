import SIPTesting
import Testing

@testable import SIP

@Suite("A server as registrar")
struct ServerRegistrarTests {
    /// A server that asks for no password.
    private func open(_ change: (inout ServerConfiguration) -> Void = { _ in }) throws -> ServerWorld {
        try ServerWorld { configuration in
            configuration.users = nil
            change(&configuration)
        }
    }

    /// A REGISTER of Carol's with Contacts.
    private func register(_ contacts: String..., number: Int = 1, id: String = "a", expires: Int? = nil) -> [String] {
        ServerWorld.request("REGISTER", "sip:example.test", to: "sip:carol@example.test", number: number, id: id)
            + contacts.map { "Contact: \($0)" } + (expires.map { ["Expires: \($0)"] } ?? [])
    }

    private func lastResponse(_ world: ServerWorld) throws -> SIPMessage {
        try SIPMessage(datagram: #require(world.network.sent.last).bytes)
    }

    @Test("A phone registers with its password, is told of, and leaves again", arguments: ["", ";transport=tcp"])
    func whole(_ transport: String) throws {
        var world = try ServerWorld(transport: transport)
        let account = world.accounts[0]
        try world.network.with(0) { agent, now in try agent.register(account, at: now) }
        world.network.run(for: .seconds(1))
        #expect(world.network.words(0).last == "registration ok")
        let contact = "sip:alice@192.0.2.1:5060\(transport)"
        #expect(world.network.takeEvents(ofServer: 0) == [.binding(user: "alice", contact: contact, seconds: 3600)])
        world.expectEmptyAfterMinute(bindings: 1)
        world.network.with(0) { agent, now in agent.unregister(account, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0).last == "registration cleared")
        #expect(world.network.takeEvents(ofServer: 0) == [.binding(user: "alice", contact: contact, seconds: 0)])
        world.expectEmpty()
    }

    @Test("A wrong password, that of another user, and an unknown user get nothing", arguments: ["wrong", "other"])
    func refused(_ kind: String) throws {
        var world = try ServerWorld()
        let identity = NameAddress(try SIPURI("sip:\(kind == "wrong" ? "alice" : "bob")@example.test"))
        var configuration = AccountConfiguration(identity: identity)
        let password = kind == "wrong" ? "queen" : "wonderland"
        configuration.credentials = [Credentials(userName: "alice", password: password)]
        let made = configuration
        try world.network.with(0) { agent, now in
            let account = agent.addAccount(made)
            try agent.register(account, at: now)
        }
        world.network.run(for: .seconds(30))
        #expect(world.network.words(0).last == "registration failed")
        #expect(world.network.servers[0].server.counts.bindings == 0)
        #expect(
            try world.send(ServerWorld.request("REGISTER", "sip:example.test", to: "sip:eve@example.test")) == [
                "SIP/2.0 404 Not Found"
            ]
        )
    }

    @Test("A phone that falls silent is forgotten when its time is over")
    func expired() throws {
        var world = try open()
        #expect(try world.send(register("<sip:carol@203.0.113.9>;expires=60")) == ["SIP/2.0 200 OK"])
        #expect(try lastResponse(world).contacts().map { try $0.expires() } == [60])
        world.network.run(for: .seconds(59))
        #expect(world.network.servers[0].server.counts.bindings == 1)
        world.network.run(for: .seconds(2))
        world.expectEmpty()
        #expect(
            world.network.takeEvents(ofServer: 0).last
                == .binding(user: "carol", contact: "sip:carol@203.0.113.9", seconds: 0)
        )
    }

    @Test("A binding is replaced by its URI, and by instance and reg-id when its address changes")
    func replaced() throws {
        var world = try open()
        let instance = ";+sip.instance=\"<urn:uuid:00000000-0000-4000-8000-000000000001>\";reg-id=1"
        _ = try world.send(register("<sip:carol@203.0.113.9>\(instance)"))
        _ = try world.send(register("<sip:carol@203.0.113.10>\(instance)", id: "b"))
        #expect(try lastResponse(world).contacts().map(\.uri.description) == ["sip:carol@203.0.113.10"])
        _ = try world.send(register("<sip:carol@203.0.113.11>;q=0.5", id: "c"))
        _ = try world.send(register("<sip:carol@203.0.113.11>;q=0.7;expires=10", id: "d"))
        let contacts = try lastResponse(world).contacts()
        #expect(contacts.map(\.uri.description) == ["sip:carol@203.0.113.10", "sip:carol@203.0.113.11"])
        #expect(contacts.last?.preference == 700)
        // A question changes nothing.
        _ = try world.send(register(id: "e"))
        #expect(try lastResponse(world).contacts().count == 2)
    }

    @Test("The asterisk removes all bindings, with Expires: 0 alone")
    func wildcard() throws {
        var world = try open()
        _ = try world.send(register("<sip:carol@203.0.113.9>", "<sip:carol@203.0.113.10>"))
        #expect(world.network.servers[0].server.counts.bindings == 2)
        #expect(try world.send(register("*", number: 2, expires: 60)) == ["SIP/2.0 400 Bad Request"])
        #expect(try world.send(register("*", number: 1, id: "b", expires: 0)) == ["SIP/2.0 200 OK"])
        #expect(world.network.servers[0].server.counts.bindings == 0)
    }

    @Test("A REGISTER that is older than one of its Call-ID changes nothing")
    func late() throws {
        var world = try open()
        _ = try world.send(register("<sip:carol@203.0.113.9>", number: 5))
        #expect(
            try world.send(register("<sip:carol@203.0.113.9>;expires=0", number: 4)) == [
                "SIP/2.0 500 Server Internal Error"
            ]
        )
        #expect(world.network.servers[0].server.counts.bindings == 1)
    }

    @Test("Too short, too many, leading back here, by a Path that was not offered, or with what is unknown: refused")
    func refusals() throws {
        var world = try open { configuration in
            configuration.expires = 30...600
            configuration.bindingsPerUser = 2
        }
        #expect(try world.send(register("<sip:carol@203.0.113.9>;expires=10")) == ["SIP/2.0 423 Interval Too Brief"])
        #expect(try lastResponse(world).first(.minExpires)?.text == "30")
        #expect(try world.send(register("<sip:bob@example.test>", id: "b")) == ["SIP/2.0 403 Forbidden"])
        let three = (1...3).map { "Contact: <sip:carol@203.0.113.\($0)>" }
        #expect(try world.send(register(id: "c") + three) == ["SIP/2.0 503 Service Unavailable"])
        #expect(world.network.servers[0].server.counts.bindings == 0)
        _ = try world.send(register("<sip:carol@203.0.113.9>;expires=9999", id: "d"))
        #expect(try lastResponse(world).contacts().map { try $0.expires() } == [600])
        let path = register("<sip:carol@203.0.113.9>", id: "e") + ["Path: <sip:203.0.113.1;lr>"]
        #expect(try world.send(path) == ["SIP/2.0 421 Extension Required"])
        #expect(try world.send(register(id: "f") + ["Require: magic"]) == ["SIP/2.0 420 Bad Extension"])
        #expect(try lastResponse(world).first(.unsupported)?.text == "magic")
    }
}

extension ServerWorld {
    /// After a minute nothing is left but bindings.
    mutating func expectEmptyAfterMinute(bindings: Int, _ sourceLocation: SourceLocation = #_sourceLocation) {
        network.run(for: .seconds(60))
        expectEmpty(bindings: bindings, sourceLocation)
    }
}
