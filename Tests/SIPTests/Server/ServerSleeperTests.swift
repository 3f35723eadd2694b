import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Alice calls and writes to Bob, whose phone sleeps and is woken by a push.
@Suite struct ServerSleeperTests {
    private func open(
        transport: String = "",
        _ change: @escaping (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> ServerWorld {
        var world = try ServerWorld(transport: transport) { configuration in
            configuration.push = PushSettings()
            change(&configuration)
        }
        let push = try PushParameters(
            team: "ABCD1234",
            bundle: "org.example.phone",
            tokens: [.voip: Secret("00FC"), .remote: Secret("C112")]
        )
        let bob = world.accounts[1]
        world.network.with(1) { agent, now in agent.setPush(push, of: bob, at: now) }
        try world.register(0, 1)
        return world
    }

    private func refresh(_ world: inout ServerWorld) {
        let bob = world.accounts[1]
        world.network.with(1) { agent, now in agent.refresh(bob, at: now) }
    }

    private func lines(_ world: ServerWorld, since count: Int, of index: String) -> [String] {
        world.network.lines[count...].filter { $0.hasPrefix(index) }.map { String($0.dropFirst(index.count + 1)) }
    }

    @Test func `the binding says how the phone is woken, and the answer that it is`() throws {
        let world = try open()
        let server = world.network.servers[0].server
        let binding = try #require(server.locations.bindings(of: "bob").first)
        #expect(binding.push?.tokens[.voip] == Secret("00FC"))
        #expect(
            binding.contact.uri.bytes.text.hasSuffix(
                ";pn-provider=apns;pn-param=ABCD1234.org.example.phone.voip&remote;pn-prid=00FC:voip&C112:remote"
            )
        )
        let own = world.network.nodes[1].agent.binding(of: world.accounts[1])
        #expect(own?.isPushServed == true && own?.wakeSeconds == nil)
        #expect(world.network.nodes[0].agent.binding(of: world.accounts[0])?.isPushServed == nil)
    }

    @Test func `a call waits for the phone that a push wakes`() throws {
        var world = try open()
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(5))
        let events = world.network.takeEvents(ofServer: 0)
        guard case .push(let push)? = events.first, events.count == 2 else { return _ = Issue.record("\(events)") }
        #expect(push.kind == .voip && push.user == "bob" && push.from == "sip:alice@example.test")
        #expect(events.last == .parked(user: "bob", callID: push.callID))
        #expect(!"\(events)".contains("00FC") && push.contact.bytes.text.contains("00FC"))
        // Nothing has reached the phone.
        #expect(world.network.words(1).isEmpty)
        refresh(&world)
        world.network.run(for: .milliseconds(200))
        #expect(world.network.takeEvents(ofServer: 0).last == .released(user: "bob", callID: push.callID))
        try world.answer(1)
        world.network.run(for: .seconds(1))
        #expect(world.network.words(0) == ["agreed sendsreceives", "established"])
        let handle = try world.network.call(1)
        world.network.with(1) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        world.expectEmpty(bindings: 2)
    }

    @Test func `a call to a phone that does not wake ends after a while`() throws {
        var world = try open()
        _ = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(31))
        #expect(world.network.words(0) == ["ended them refused(480)"])
        guard case .gaveUp(user: "bob", _)? = world.network.takeEvents(ofServer: 0).last else {
            return _ = Issue.record("not told")
        }
        refresh(&world)
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1) == ["registration refreshing", "registration ok"])
        world.expectEmpty(bindings: 2)
    }

    @Test func `a caller who gives up ends the waiting`() throws {
        var world = try open()
        let handle = try world.call("sip:bob@example.test")
        world.network.run(for: .seconds(1))
        world.network.with(0) { agent, now in agent.hangUp(handle, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(0) == ["ended us cancelled"])
        refresh(&world)
        world.network.run(for: .seconds(60))
        #expect(!world.network.words(1).contains("incoming"))
        world.expectEmpty(bindings: 2)
    }

    @Test func `a phone that holds a connection is not woken, and one that lost it is`() throws {
        var world = try open(transport: ";transport=tcp")
        let call = try world.call("sip:bob@example.test;transport=tcp")
        world.network.run(for: .seconds(1))
        #expect(world.network.words(1) == ["incoming"])
        #expect(world.network.takeEvents(ofServer: 0).isEmpty)
        world.network.with(0) { agent, now in agent.hangUp(call, at: now) }
        world.network.run(for: .seconds(1))
        let flow = try #require(world.network.servers[0].server.locations.bindings(of: "bob").first?.flow)
        world.network.handle(.failed(flow), at: .server(0))
        _ = try world.call("sip:bob@example.test;transport=tcp")
        world.network.run(for: .seconds(1))
        guard case .push? = world.network.takeEvents(ofServer: 0).first else { return _ = Issue.record("not woken") }
    }

    @Test func `a service that is not served, or cannot be read, is refused`() throws {
        var world = try ServerWorld { configuration in
            configuration.users = nil
            configuration.push = PushSettings()
        }
        let to = "sip:carol@example.test"
        for (contact, line) in [
            (
                "<sip:carol@203.0.113.9;pn-provider=webpush;pn-prid=x>",
                "SIP/2.0 555 Push Notification Service Not Supported"
            ),
            ("<sip:carol@203.0.113.9;pn-provider=apns;pn-prid=x>", "SIP/2.0 400 Bad Request"),
            ("<sip:carol@203.0.113.9;pn-provider=fcm;pn-param=p;pn-prid=x>;+sip.pnsreg", "SIP/2.0 200 OK"),
        ] {
            let request = ServerWorld.request("REGISTER", "sip:example.test", to: to, id: "\(contact.utf8.count)")
            #expect(try world.send(request + ["Contact: \(contact)"]) == [line])
        }
        let answer = try SIPMessage(datagram: #require(world.network.sent.last).bytes)
        #expect(answer.first(.featureCaps)?.text == "*;+sip.pns=\"fcm\";+sip.pnsreg=\"120\"")
    }

    @Test func `texts are kept, in their order, for a user who sleeps or is not there`() throws {
        var world = try open()
        let (alice, bob) = (world.accounts[0], world.accounts[1])
        world.network.with(1) { agent, now in agent.unregister(bob, at: now) }
        world.network.run(for: .seconds(1))
        _ = world.network.words(1)
        for text in ["one", "two", "three"] {
            if text == "three" {
                try world.network.with(1) { agent, now in try agent.register(bob, at: now) }
                world.network.run(for: .seconds(1))
                _ = world.network.takeEvents(ofServer: 0)
            }
            try world.network.with(0) { agent, now in
                _ = try agent.send(
                    .message,
                    to: SIPURI("sip:bob@example.test"),
                    account: alice,
                    type: "text/plain",
                    body: Array(text.utf8),
                    at: now
                )
            }
            world.network.run(for: .seconds(1))
        }
        #expect(world.network.words(0) == ["response 202", "response 202", "response 202"])
        #expect(world.network.words(1).filter { $0.hasPrefix("message") } == ["message one", "message two"])
        let events = world.network.takeEvents(ofServer: 0)
        guard case .push(let push)? = events.first else { return _ = Issue.record("\(events)") }
        #expect(push.kind == .message && events.last == .kept(user: "bob", callID: push.callID))
        refresh(&world)
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1).filter { $0.hasPrefix("message") } == ["message three"])
        #expect(world.network.takeEvents(ofServer: 0).last == .fetched(user: "bob", callID: push.callID))
        world.expectEmpty(bindings: 2)
    }

    @Test(arguments: [false, true])
    func `no more texts are kept than there may be, and none for ever`(areLarge: Bool) throws {
        var world = try open { configuration in
            if areLarge { configuration.keptTextBytes = 600 } else { configuration.keptTextsPerUser = 2 }
            configuration.textPatience = .seconds(100)
        }
        for number in 1...3 {
            let request = ServerWorld.request("MESSAGE", "sip:bob@example.test", number: number, id: "kept")
            let answer = try world.send(request + ["Content-Type: text/plain"], body: "hello")
            #expect(answer == [number < 3 ? "SIP/2.0 202 Accepted" : "SIP/2.0 480 Temporarily Unavailable"])
        }
        let nobody = ServerWorld.request("MESSAGE", "sip:nobody@example.test", id: "nobody")
        #expect(try world.send(nobody) == ["SIP/2.0 404 Not Found"])
        #expect(world.network.servers[0].server.counts.texts == 2)
        world.network.run(for: .seconds(101))
        world.expectEmpty(bindings: 2)
    }

    @Test func `a text for sips does not leave in the clear, and holds up no other`() throws {
        var world = try ServerWorld { $0.users = nil }
        for (number, uri) in ["sips:bob@example.test", "sip:bob@example.test"].enumerated() {
            let request = ServerWorld.request("MESSAGE", uri, number: number + 1, id: "kept")
            #expect(try world.send(request + ["Content-Type: text/plain"], body: uri) == ["SIP/2.0 202 Accepted"])
        }
        let bob = world.accounts[1]
        try world.network.with(1) { agent, now in try agent.register(bob, at: now) }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(1).filter { $0.hasPrefix("message") } == ["message sip:bob@example.test"])
        #expect(world.network.servers[0].server.counts.texts == 1)
        // Another phone of his comes by TLS.
        try world.network.with(2) { agent, now in
            let identity = NameAddress(try SIPURI("sips:bob@example.test"))
            try agent.register(agent.addAccount(AccountConfiguration(identity: identity)), at: now)
        }
        world.network.run(for: .seconds(60))
        #expect(world.network.words(2).last == "message sips:bob@example.test")
        world.expectEmpty(bindings: 2)
    }

    @Test func `a text that a phone cannot take now waits for the next time, one that it refuses does not`() throws {
        var world = try open()
        let request = ServerWorld.request("MESSAGE", "sip:bob@example.test", id: "odd")
        #expect(try world.send(request + ["Content-Type: image/png"], body: "x") == ["SIP/2.0 202 Accepted"])
        world.network.arrives = { !$0.hasPrefix("MESSAGE") }
        refresh(&world)
        world.network.run(for: .seconds(60))
        #expect(world.network.servers[0].server.counts.texts == 1)
        world.network.arrives = { _ in true }
        refresh(&world)
        world.network.run(for: .seconds(60))
        #expect(world.network.lines.contains("1 SIP/2.0 415 Unsupported Media Type"))
        world.expectEmpty(bindings: 2)
    }

    @Test func `a text on its way to a process that has died goes to the one that takes its place`() throws {
        var world = try open()
        var account = AccountConfiguration(identity: NameAddress(try SIPURI("sip:bob@example.test")))
        account.credentials = [Credentials(userName: "bob", password: "builder")]
        account.instance = "urn:uuid:00000000-0000-4000-8000-000000000001"
        account.push = try PushParameters(team: "T", bundle: "b", tokens: [.remote: Secret("C112")])
        let former = world.accounts[1]
        world.network.with(1) { agent, now in agent.unregister(former, at: now) }
        world.network.run(for: .seconds(1))
        // Its token is not in the Contact that takes the binding away.
        #expect(world.network.servers[0].server.counts.bindings == 1)
        let made = account
        var bobs: [Int: AccountHandle] = [:]
        for index in [1, 2] { bobs[index] = world.network.with(index) { agent, _ in agent.addAccount(made) } }
        let (first, second) = (try #require(bobs[1]), try #require(bobs[2]))
        try world.network.with(1) { agent, now in try agent.register(first, at: now) }
        world.network.run(for: .seconds(1))
        let request = ServerWorld.request("MESSAGE", "sip:bob@example.test", id: "late")
        #expect(try world.send(request + ["Content-Type: text/plain"], body: "Tea?") == ["SIP/2.0 202 Accepted"])
        // The first process registers, and dies before the text is there.
        world.network.arrives = { !$0.hasPrefix("MESSAGE sip:bob@192.0.2.2") }
        world.network.with(1) { agent, now in agent.refresh(first, at: now) }
        world.network.run(for: .seconds(2))
        try world.network.with(2) { agent, now in try agent.register(second, at: now) }
        world.network.run(for: .seconds(1))
        #expect(world.network.words(2).contains("message Tea?"))
        // What comes of the former way changes nothing any more.
        world.network.run(for: .seconds(60))
        #expect(!world.network.words(2).contains("message Tea?"))
        #expect(world.network.servers[0].server.counts.texts == 0)
        world.expectEmpty(bindings: 2)
    }
}
